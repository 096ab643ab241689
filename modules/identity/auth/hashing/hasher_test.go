//go:build linux && (amd64 || arm64)

package hashing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/argon2"
	"golang.org/x/sys/unix"

	"kontor/store/testenv"
)

func TestSum_IsThatOfArgon2id(t *testing.T) {
	h, _ := newHasher(t, worker, 2)
	inProcess, _ := newHasher(t, worker, 2)
	inProcess.pool = nil
	for _, cost := range []Cost{cheap, {MemoryKiB: 1 << 10, Passes: 3, Threads: 4}, {MemoryKiB: 19 << 10, Passes: 2, Threads: 1}} {
		for _, password := range []string{"", secret, "längere Sätze 🙂", strings.Repeat("x", 1<<16), "\x00\xff"} {
			want := argon2.IDKey([]byte(password), salt, cost.Passes, cost.MemoryKiB, cost.Threads, SumBytes)
			for _, h := range []*Hasher{h, inProcess} {
				if got, err := h.Sum(t.Context(), cost, password, salt); err != nil || !bytes.Equal(got, want) {
					t.Errorf("%+v, %d bytes: got %x, %v", cost, len(password), got, err)
				}
			}
		}
	}
	if !h.prompt.Started() || h.Made() != 15 || inProcess.Made() != 15 {
		t.Errorf("%d sums, workers started: %v", h.Made(), h.pool.Started())
	}
}

// niceness returns that of a process; 0 is this process.
func niceness(t *testing.T, pid int) int {
	t.Helper()
	const systemCallBase = 20 // the system call returns 20 minus the niceness
	priority, err := unix.Getpriority(unix.PRIO_PROCESS, pid)
	if err != nil {
		t.Fatal(err)
	}
	return systemCallBase - priority
}

func TestWorker_HasALowPriorityBesideOthers(t *testing.T) {
	h, _ := newHasher(t, worker, 2)
	if h.pool.Started() || h.prompt.Started() {
		t.Error("a worker was started before the first password")
	}
	expectSum(t, h)
	first := workers(t, worker)
	if len(first) != 1 || niceness(t, first[0]) != niceness(t, 0) {
		t.Fatalf("got the workers %v, want one of normal priority", first)
	}
	h.order.begin(false) // as if another sum were being computed
	expectSum(t, h)
	for _, pid := range workers(t, worker) {
		if pid != first[0] && niceness(t, pid) != max(niceness(t, 0), 10) {
			t.Errorf("niceness %d", niceness(t, pid))
		}
	}
	if !h.pool.Started() {
		t.Error("the second sum had normal priority")
	}
}

// A request that no caller sends must not exhaust the machine.
func TestWork_RejectsOtherRequests(t *testing.T) {
	for name, request := range map[string][]byte{
		"nothing":         nil,
		"no salt":         encodeRequest(cheap, nil),
		"a short salt":    encodeRequest(cheap, salt[:minSaltBytes-1]),
		"a long salt":     encodeRequest(cheap, make([]byte, maxSaltBytes+1)),
		"no memory":       encodeRequest(Cost{0, 1, 1}, salt),
		"too much memory": encodeRequest(Cost{MaxMemoryKiB + 1, 1, 1}, salt),
		"no passes":       encodeRequest(Cost{64, 0, 1}, salt),
		"too many passes": encodeRequest(Cost{64, MaxPasses + 1, 1}, salt),
		"no threads":      encodeRequest(Cost{64, 1, 0}, salt),
	} {
		if answer, err := work(request, []byte(secret), nil); err == nil {
			t.Errorf("%s: got %x", name, answer)
		}
	}
}

// A worker that fails yields an error of its own, never a sum.
func TestSum_FailsWhenAllWorkersFail(t *testing.T) {
	for kind := range faulty {
		h, l := newHasher(t, kind, 1)
		for range 2 { // the first one returns the slot
			if sum, err := h.Sum(t.Context(), cheap, secret, salt); !errors.Is(err, ErrUnavailable) || sum != nil {
				t.Errorf("%s: got %x, %v", kind, sum, err)
			} else if strings.Contains(err.Error(), secret) {
				t.Errorf("%s: the error shows the password: %v", kind, err)
			}
		}
		if got := strings.Count(l.String(), "a process that hashes passwords failed"); got != 2*tries {
			t.Errorf("%s: %d failures were logged", kind, got)
		}
	}
}

// The worker is stopped when the sum begins, and killed before it can answer.
func TestSum_IsComputedAgainWhenTheWorkerIsKilled(t *testing.T) {
	h, _ := newHasher(t, worker, 1)
	expectSum(t, h)
	first := workers(t, worker)
	if err := unix.Kill(first[0], unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	testenv.Wait(t, "the worker to stop", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", first[0]))
		return err == nil && bytes.Contains(stat, []byte(") T "))
	})
	var group sync.WaitGroup
	group.Go(func() { expectSum(t, h) })
	if err := unix.Kill(first[0], unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	group.Wait()
	if second := workers(t, worker); len(second) != 1 || second[0] == first[0] {
		t.Errorf("got the workers %v after %v", second, first)
	}
}

func TestSum_IsRightOrUnavailableWhileWorkersAreKilled(t *testing.T) {
	h, _ := newHasher(t, worker, 4)
	for range 5 {
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				sum, err := h.Sum(t.Context(), cheap, secret, salt)
				if err == nil && !bytes.Equal(sum, wanted()) || err != nil && !errors.Is(err, ErrUnavailable) {
					t.Errorf("got %x, %v", sum, err)
				}
			})
		}
		for _, pid := range workers(t, worker) {
			_ = unix.Kill(pid, unix.SIGKILL) // it may have ended
		}
		group.Wait()
	}
	expectSum(t, h)
}

// The signals with which a service manager ends all processes of a service leave sign-ins in progress alone.
func TestWorker_SurvivesSignalsThatEndTheServer(t *testing.T) {
	h, _ := newHasher(t, worker, 1)
	expectSum(t, h)
	before := workers(t, worker)
	for _, signal := range []unix.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP} {
		if err := unix.Kill(before[0], signal); err != nil {
			t.Fatal(err)
		}
		expectSum(t, h)
	}
	if after := workers(t, worker); !slices.Equal(before, after) {
		t.Errorf("got the workers %v after %v", after, before)
	}
}

func TestSum_FailsWhenAWorkerHangs(t *testing.T) {
	h, _ := newHasher(t, hangs, 1)
	h.timeout = time.Millisecond
	for range 2 {
		if sum, err := h.Sum(t.Context(), cheap, secret, salt); !errors.Is(err, ErrUnavailable) || sum != nil {
			t.Errorf("got %x, %v", sum, err)
		}
	}
}

// A caller does not wait for a worker longer than its context. The slot stays taken until the worker has ended.
func TestSum_ReturnsWhenTheContextEnds(t *testing.T) {
	h, _ := newHasher(t, hangs, 1)
	ctx, cancel := context.WithCancel(t.Context())
	returned := make(chan error)
	go func() {
		_, err := h.Sum(ctx, cheap, secret, salt)
		returned <- err
	}()
	testenv.Wait(t, "the caller to have its slot", func() bool { return h.Made() == 1 })
	waiting, stop := context.WithCancel(t.Context())
	stop()
	if _, err := h.Sum(waiting, cheap, secret, salt); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that waits for a slot got %v", err)
	}
	cancel()
	if err := <-returned; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if len(h.slots) != 1 {
		t.Error("the slot was released before the sum ended")
	}
	h.Close(t.Context())
	testenv.Wait(t, "the slot to be free", func() bool { return len(h.slots) == 0 })
}

func TestSum_FailsAfterClose(t *testing.T) {
	h, _ := newHasher(t, worker, 1)
	expectSum(t, h)
	h.Close(t.Context())
	if pids := workers(t, worker); len(pids) > 0 {
		t.Errorf("the workers %v are left", pids)
	}
	if sum, err := h.Sum(t.Context(), cheap, secret, salt); !errors.Is(err, ErrUnavailable) {
		t.Errorf("got %x, %v", sum, err)
	}
}

// Where no worker can be started, such as at a limit of processes, passwords are hashed as without workers.
func TestSum_IsComputedInTheProcessWhenNoWorkerStarts(t *testing.T) {
	h, l := newHasher(t, unprepared, 1)
	now := time.Unix(1_800_000_000, 0)
	h.now = func() time.Time { return now }
	for i, step := range []struct {
		later time.Duration
		log   int // starts that were tried
	}{{0, 1}, {0, 1}, {startPause - 1, 1}, {1, 2}, {-time.Hour, 3}} {
		now = now.Add(step.later)
		expectSum(t, h)
		if got := strings.Count(l.String(), "in the process of the server"); got != step.log {
			t.Errorf("step %d: %d warnings: %s", i, got, l)
		}
	}
	h.setPools(worker) // the limit has been raised
	now = now.Add(startPause)
	expectSum(t, h)
	if len(workers(t, worker)) != 1 {
		t.Error("no worker was started")
	}
}
