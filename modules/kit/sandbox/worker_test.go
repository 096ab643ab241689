//go:build linux && (amd64 || arm64)

package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"kontor/modules/kit/sandbox"
)

// jobs are the work of the workers in these tests, by request.
var jobs = map[string]sandbox.Work{
	"echo": func(_, file []byte, _ func([]byte) error) ([]byte, error) { return file, nil },
	"pid": func(_, _ []byte, _ func([]byte) error) ([]byte, error) {
		return strconv.AppendInt(nil, int64(os.Getpid()), 10), nil
	},
	"environment": func(_, _ []byte, _ func([]byte) error) ([]byte, error) {
		return []byte(strings.Join(os.Environ(), " ")), nil
	},
	"part and panic": func(_, _ []byte, send func([]byte) error) ([]byte, error) {
		_ = send([]byte("a first part"))
		panic("hostile file")
	},
	"fail": func(_, _ []byte, _ func([]byte) error) ([]byte, error) { return nil, errors.New("no") },
	"hang": func(_, _ []byte, send func([]byte) error) ([]byte, error) {
		_ = send([]byte(strconv.Itoa(os.Getpid())))
		for {
			time.Sleep(time.Hour)
		}
	},
	"compute": func(_, _ []byte, _ func([]byte) error) ([]byte, error) {
		sandbox.LimitCPU(20 * time.Millisecond)
		for n := 0; ; n++ {
			sink = n
		}
	},
	"compute a little": func(_, _ []byte, _ func([]byte) error) ([]byte, error) {
		sandbox.LimitCPU(time.Hour)()
		return []byte("done"), nil
	},
	"memory": func(_, _ []byte, _ func([]byte) error) ([]byte, error) {
		var all [][]byte
		for {
			all = append(all, make([]byte, 16<<20))
			all[len(all)-1][0] = 1
		}
	},
	"flood": func(_, _ []byte, _ func([]byte) error) ([]byte, error) { return make([]byte, maxAnswer+1), nil },
	"grow": func(_, _ []byte, _ func([]byte) error) ([]byte, error) {
		kept = make([]byte, 64<<20)
		for i := 0; i < len(kept); i += 1 << 10 {
			kept[i] = 1
		}
		return nil, nil
	},
	"interrupted frame": func(_, _ []byte, _ func([]byte) error) ([]byte, error) {
		fmt.Print("a\x00\x00\x00\x64short")
		os.Exit(0)
		return nil, nil
	},
}

var (
	sink int
	kept []byte
)

const (
	testKind  = "sandbox-test"
	maxAnswer = 1 << 10
	memory    = 512 << 20
)

// Serve does not return in a process that was started as a worker.
func init() {
	sandbox.Serve(testKind, func(args []string) (sandbox.Work, error) {
		if len(args) > 0 && args[0] == "unprepared" {
			return nil, errors.New("not prepared")
		}
		return func(request, file []byte, send func([]byte) error) ([]byte, error) {
			return jobs[string(request)](request, file, send)
		}, nil
	})
}

func newPool(t testing.TB, change func(*sandbox.Config)) *sandbox.Pool {
	t.Helper()
	config := sandbox.Config{Kind: testKind, Memory: memory, Resident: memory, MaxAnswer: maxAnswer}
	if change != nil {
		change(&config)
	}
	pool := sandbox.NewPool(config)
	t.Cleanup(func() { pool.Close(context.Background()) })
	return pool
}

// run sends a job to a worker and returns the parts and the end of its answer.
func run(ctx context.Context, t testing.TB, pool *sandbox.Pool, job, file string) (parts []string, answer string, err error) {
	t.Helper()
	lease, err := pool.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	last, err := lease.Run(ctx, []byte(job), []byte(file), func(part []byte) error {
		parts = append(parts, string(part))
		return nil
	})
	return parts, string(last), err
}

// answer returns the answer to a job that must succeed.
func answer(t testing.TB, pool *sandbox.Pool, job, file string) string {
	t.Helper()
	_, last, err := run(t.Context(), t, pool, job, file)
	if err != nil {
		t.Fatalf("%s: %v", job, err)
	}
	return last
}

func TestRun_ReturnsTheAnswerAndKeepsTheWorker(t *testing.T) {
	pool := newPool(t, nil)
	if got := answer(t, pool, "echo", "a file"); got != "a file" {
		t.Errorf("got %q", got)
	}
	if first, second := answer(t, pool, "pid", ""), answer(t, pool, "pid", ""); first != second || first == strconv.Itoa(os.Getpid()) {
		t.Errorf("the workers are %s and %s", first, second)
	}
}

func TestRun_ReportsTheFailureOfAWorker(t *testing.T) {
	pool := newPool(t, nil)
	for job, want := range map[string]sandbox.Failure{
		"part and panic": sandbox.Crashed, "fail": sandbox.Crashed, "flood": sandbox.Crashed, "compute": sandbox.OutOfTime,
		"memory": sandbox.OutOfMemory, "interrupted frame": sandbox.Crashed,
	} {
		parts, _, err := run(t.Context(), t, pool, job, "")
		crash, ok := errors.AsType[*sandbox.CrashError](err)
		// The runtime of Go may crash itself when it gets no memory for its own tables.
		if !ok || crash.Failure != want && (job != "memory" || crash.Failure != sandbox.Crashed) {
			t.Errorf("%s: got %v, want %s", job, err, want)
		}
		if found := len(parts) == 1; found != (job == "part and panic") {
			t.Errorf("%s: the parts are %q", job, parts)
		}
	}
	if got := answer(t, pool, "compute a little", ""); got != "done" {
		t.Errorf("the next file: got %q", got)
	}
}

func TestRun_KillsTheWorkerWhenTheContextEnds(t *testing.T) {
	pool := newPool(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	lease, err := pool.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	_, err = lease.Run(ctx, []byte("hang"), nil, func([]byte) error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if got := answer(t, pool, "echo", "next"); got != "next" {
		t.Errorf("the next file: got %q", got)
	}
}

func TestRun_ReportsAWorkerThatWasKilled(t *testing.T) {
	pool := newPool(t, nil)
	lease, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = lease.Run(t.Context(), []byte("hang"), nil, func(part []byte) error { return kill(string(part)) })
	if crash, ok := errors.AsType[*sandbox.CrashError](err); !ok || crash.Failure != sandbox.Killed {
		t.Errorf("killed during a file: got %v", err)
	}
	first := answer(t, pool, "pid", "")
	if err := kill(first); err != nil {
		t.Fatal(err)
	}
	for { // until the parent has noticed the end
		_, second, err := run(t.Context(), t, pool, "pid", "")
		if crash, ok := errors.AsType[*sandbox.CrashError](err); ok && crash.Failure == sandbox.Killed {
			continue
		}
		if err != nil || second == first {
			t.Errorf("after an idle worker was killed: %s, %v", second, err)
		}
		return
	}
}

func kill(pid string) error {
	id, err := strconv.Atoi(pid)
	if err != nil {
		return err
	}
	process, err := os.FindProcess(id)
	if err != nil {
		return err
	}
	return process.Kill()
}

func TestPool_ReplacesWorkersByFilesAndMemory(t *testing.T) {
	byJobs := newPool(t, func(c *sandbox.Config) { c.Jobs = 1 })
	if first, second := answer(t, byJobs, "pid", ""), answer(t, byJobs, "pid", ""); first == second {
		t.Error("a worker processed more files than Jobs")
	}
	byMemory := newPool(t, func(c *sandbox.Config) { c.Resident = 48 << 20 })
	first := answer(t, byMemory, "pid", "")
	if second := answer(t, byMemory, "pid", ""); second != first {
		t.Fatal("a small worker was replaced")
	}
	answer(t, byMemory, "grow", "")
	if second := answer(t, byMemory, "pid", ""); second == first {
		t.Error("a worker above Resident processed another file")
	}
}

func TestPool_EndsIdleWorkers(t *testing.T) {
	pool := newPool(t, func(c *sandbox.Config) { c.Idle = time.Nanosecond })
	first := answer(t, pool, "pid", "")
	awaitEnd(t, first)
	if second := answer(t, pool, "pid", ""); second == first {
		t.Error("the worker has not ended")
	}
}

func TestPool_ReportsAFailedPreparation(t *testing.T) {
	pool := newPool(t, func(c *sandbox.Config) { c.Args = []string{"unprepared"} })
	if _, err := pool.Acquire(t.Context()); err == nil || !strings.Contains(err.Error(), "not prepared") {
		t.Errorf("got %v", err)
	}
}

func TestPool_KeepsAWorkerThatBecomesReadyAfterTheContextEnds(t *testing.T) {
	pool := newPool(t, nil)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := pool.Acquire(ended); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	if got := answer(t, pool, "echo", "next"); got != "next" {
		t.Errorf("got %q", got)
	}
}

func TestClose_EndsRunningWorkersAndRejectsFiles(t *testing.T) {
	pool := newPool(t, nil)
	idle := answer(t, pool, "pid", "")
	working := make(chan string)
	var group sync.WaitGroup
	for range 2 {
		lease, err := pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		group.Go(func() {
			_, err := lease.Run(context.WithoutCancel(t.Context()), []byte("hang"), nil, func(part []byte) error {
				working <- string(part)
				return nil
			})
			if err == nil {
				t.Error("Run succeeded after Close")
			}
		})
	}
	pids := []string{idle, <-working, <-working}
	pool.Close(t.Context())
	pool.Close(t.Context())
	group.Wait()
	for _, pid := range pids {
		awaitEnd(t, pid)
	}
	if _, err := pool.Acquire(t.Context()); !errors.Is(err, sandbox.ErrClosed) {
		t.Errorf("after Close: got %v", err)
	}
}
