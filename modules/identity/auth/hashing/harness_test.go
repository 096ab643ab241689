//go:build linux && (amd64 || arm64)

package hashing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/argon2"

	"kontor/modules/kit/sandbox"
)

const secret = "a pass phrase that no log shows"

var (
	cheap = Cost{MemoryKiB: 64, Passes: 1, Threads: 1}
	salt  = []byte("sixteen bytes ok")
)

// faulty are workers that fail in their own way, by kind.
var faulty = map[string]sandbox.Work{
	"sum of another salt": func(request, password []byte, send func([]byte) error) ([]byte, error) {
		answer, err := work(request, password, send)
		answer[0] ^= 1
		return answer, err
	},
	"short sum": func(request, password []byte, send func([]byte) error) ([]byte, error) {
		answer, err := work(request, password, send)
		return answer[:len(answer)-1], err
	},
	"empty answer": func(_, _ []byte, _ func([]byte) error) ([]byte, error) { return nil, nil },
	"huge answer":  func(_, _ []byte, _ func([]byte) error) ([]byte, error) { return make([]byte, 1<<20), nil },
	"part of an answer": func(request, password []byte, send func([]byte) error) ([]byte, error) {
		_ = send([]byte("a part"))
		return work(request, password, send)
	},
	"no frame": func(_, _ []byte, _ func([]byte) error) ([]byte, error) {
		fmt.Print("no frame at all, but some text that is long enough to be read as the header of one")
		os.Exit(0)
		return nil, nil
	},
	"exit":  func(_, _ []byte, _ func([]byte) error) ([]byte, error) { os.Exit(0); return nil, nil },
	"panic": func(_, _ []byte, _ func([]byte) error) ([]byte, error) { panic("out of order") },
	"error": func(_, _ []byte, _ func([]byte) error) ([]byte, error) { return nil, errors.New("no") },
}

const (
	hangs      = "hash-hangs"
	unprepared = "hash-unprepared"
)

// Serve does not return in a process that was started as a worker.
func init() {
	for kind, work := range faulty {
		sandbox.Serve(kind, func([]string) (sandbox.Work, error) { return work, nil })
	}
	sandbox.Serve(hangs, func([]string) (sandbox.Work, error) {
		return func(_, _ []byte, _ func([]byte) error) ([]byte, error) {
			for {
				time.Sleep(time.Hour)
			}
		}, nil
	})
	sandbox.Serve(unprepared, func([]string) (sandbox.Work, error) { return nil, errors.New("not prepared") })
}

// log collects what is logged.
type log struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.text.String()
}

// newHasher returns a Hasher with workers of a kind, and its log.
func newHasher(t *testing.T, kind string, slots int) (*Hasher, *log) {
	t.Helper()
	l := &log{}
	h := New(slots, false, slog.New(slog.NewTextHandler(l, nil)))
	h.setPools(kind)
	t.Cleanup(func() {
		h.Close(context.Background())
		if strings.Contains(l.String(), secret) {
			t.Errorf("the log shows the password: %s", l)
		}
	})
	return h, l
}

// wanted returns the right sum of the password.
func wanted() []byte { return argon2.IDKey([]byte(secret), salt, 1, 64, 1, SumBytes) }

// expectSum reports an error unless the hasher returns the right sum.
func expectSum(t *testing.T, h *Hasher) {
	t.Helper()
	if got, err := h.Sum(t.Context(), cheap, secret, salt); err != nil || !bytes.Equal(got, wanted()) {
		t.Errorf("got %x, %v", got, err)
	}
}

// workers returns the ids of the living worker processes of this process and a kind.
func workers(t *testing.T, kind string) (pids []int) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		arguments, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // empty for a process that has ended
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		_, rest, _ := strings.Cut(string(stat), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == strconv.Itoa(os.Getpid()) &&
			strings.Contains(string(arguments), "\x00"+kind+"\x00") {
			pids = append(pids, pid)
		}
	}
	return pids
}
