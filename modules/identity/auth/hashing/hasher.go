// Package hashing computes the Argon2id sums of passwords, in child processes where the system has them.
//
// A sum takes 22 ms of a core. The Go scheduler does not interrupt it in favour of short requests: it looks for other work every
// ten milliseconds only, and a request needs several turns. So a flood of sign-ins multiplied the times of all other requests.
// The kernel does better. It gives the processor to a thread of normal priority at once, when all that runs are processes of
// low priority. A single sign-in has normal priority, so that a busy machine does not starve it, see [priorities]. See
// docs/adr/0033-passwords-are-hashed-in-child-processes.md and docs/adr/0038-a-single-sign-in-has-normal-priority.md.
//
// A child receives the password, the salt and the cost over a pipe, and answers with the sum. Comparing is left to the caller. The
// package sandbox starts and confines the children: they have no files, no network, no environment and no core dumps. The first
// password starts a child, and one that is idle for a minute ends. A child that ends during a sum, hangs or answers nonsense is
// replaced, and the sum is computed again. It never yields a wrong sum.
//
// Where workers cannot be confined, or none can be started, the sum is computed in the server's own process.
package hashing

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/argon2"

	"kontor/modules/kit/sandbox"
)

// ErrUnavailable is returned when several workers in a row have failed to compute a sum, or after Close.
var ErrUnavailable = errors.New("no worker could compute the sum of a password")

// Hasher computes sums, a limited number at once. It is safe for concurrent use.
type Hasher struct {
	slots   chan struct{}
	waiting atomic.Int64  // callers that wait for a slot
	pool    *sandbox.Pool // workers of low priority; nil: sums are computed in this process
	prompt  *sandbox.Pool // the worker of normal priority
	order   priorities
	log     *slog.Logger
	timeout time.Duration
	now     func() time.Time

	// failedAt is the time of the latest start of a worker that failed, in Unix nanoseconds. 0: none has.
	failedAt atomic.Int64
	made     atomic.Int64
}

// New returns a Hasher with a number of slots. With inProcess, or on a system that cannot confine workers, it starts none.
func New(slots int, inProcess bool, log *slog.Logger) *Hasher {
	h := &Hasher{slots: make(chan struct{}, slots), log: log, timeout: sumTimeout, now: time.Now}
	if !inProcess && sandbox.Confines {
		h.setPools(worker)
	}
	return h
}

func (h *Hasher) setPools(kind string) {
	h.pool, h.prompt = newPool(kind, sandbox.Lowest), newPool(kind, sandbox.Normal)
}

// Made returns the number of sums since the start, with those that failed.
func (h *Hasher) Made() int64 { return h.made.Load() }

// Close ends the workers and waits for them, or until the context ends. A sum that is being computed fails.
func (h *Hasher) Close(ctx context.Context) {
	if h.pool != nil {
		h.pool.Close(ctx)
		h.prompt.Close(ctx)
	}
}

// Sum returns the sum of a password. It waits for a slot. It returns the error of the context when that ends first; a sum that
// has begun then continues, and keeps its slot until it ends. It returns ErrUnavailable, with the cause, when workers fail.
func (h *Hasher) Sum(ctx context.Context, cost Cost, password string, salt []byte) ([]byte, error) {
	if err := h.takeSlot(ctx); err != nil {
		return nil, err
	}
	h.made.Add(1)
	if h.pool == nil {
		defer h.release()
		return cost.sum([]byte(password), salt), nil
	}
	type outcome struct {
		sum []byte
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		defer h.release()
		// A client that disconnects must not end a worker, which others would have to start again.
		sum, err := h.compute(context.WithoutCancel(ctx), cost, password, salt)
		done <- outcome{sum, err}
	}()
	select {
	case o := <-done:
		return o.sum, o.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// takeSlot waits for a slot, or until the context ends.
func (h *Hasher) takeSlot(ctx context.Context) error {
	select {
	case h.slots <- struct{}{}:
		return nil
	default:
	}
	h.waiting.Add(1)
	defer h.waiting.Add(-1)
	select {
	case h.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (h *Hasher) release() { <-h.slots }

// tries is the number of new workers that may fail for one sum. Failures of idle ones do not count: another process may have killed
// them before, without their parent having noticed.
const tries = 2

// compute computes a sum in a worker, or in this process if none can be started.
func (h *Hasher) compute(ctx context.Context, cost Cost, password string, salt []byte) ([]byte, error) {
	if h.mayStart() {
		sum, err := h.inWorkers(ctx, cost, password, salt)
		if !errors.Is(err, errNotStarted) {
			return sum, err
		}
		h.startFailed(err)
	}
	return cost.sum([]byte(password), salt), nil
}

// inWorkers computes a sum in one worker after another, until one succeeds.
func (h *Hasher) inWorkers(ctx context.Context, cost Cost, password string, salt []byte) ([]byte, error) {
	pool, begun := h.pool, h.now()
	normal := h.order.begin(h.waiting.Load() > 0)
	if normal {
		pool = h.prompt
	}
	defer func() { h.order.end(normal, h.now().Sub(begun)) }()
	var failures []error
	for failed := 0; failed < tries; {
		lease, err := pool.Acquire(ctx)
		if err != nil && !errors.Is(err, sandbox.ErrClosed) {
			return nil, fmt.Errorf("%w: %w", errNotStarted, err)
		}
		if err == nil {
			if lease.IsNew() {
				failed++
			}
			var sum []byte
			if sum, err = h.run(ctx, lease, cost, password, salt); err == nil {
				return sum, nil
			}
		}
		failures = append(failures, err)
		if errors.Is(err, sandbox.ErrClosed) || errors.Is(err, context.DeadlineExceeded) {
			break // the server stops, or the caller has waited long enough
		}
		h.log.Warn("a process that hashes passwords failed", "cause", err)
	}
	return nil, fmt.Errorf("%w: %w", ErrUnavailable, errors.Join(failures...))
}

var errNotStarted = errors.New("no process that hashes passwords can be started")

// run computes a sum in a worker. An error means that the worker has ended.
func (h *Hasher) run(ctx context.Context, lease *sandbox.Lease, cost Cost, password string, salt []byte) (sum []byte, err error) {
	limited, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()
	secret := []byte(password)
	defer clear(secret)
	err = lease.RunChecked(limited, encodeRequest(cost, salt), secret, func(answer []byte) (err error) {
		sum, err = sumOf(answer, salt)
		return err
	})
	return sum, err
}

// Cost holds the parameters of an Argon2id sum.
type Cost struct {
	MemoryKiB uint32
	Passes    uint32
	Threads   uint8
}

const (
	// SumBytes is the length of a sum.
	SumBytes = 32

	// MaxMemoryKiB is the greatest memory that a stored hash may require.
	MaxMemoryKiB = 1 << 20
	// MaxPasses is the greatest number of passes of a stored hash.
	MaxPasses = 64

	minSaltBytes = 8
	maxSaltBytes = 1 << 10
)

// sum computes a sum in this process.
func (c Cost) sum(password, salt []byte) []byte {
	return argon2.IDKey(password, salt, c.Passes, c.MemoryKiB, c.Threads, SumBytes)
}

// isSane reports whether a sum can be computed. A worker rejects other requests, so that a fault cannot exhaust the machine.
func (c Cost) isSane() bool {
	return c.MemoryKiB > 0 && c.MemoryKiB <= MaxMemoryKiB && c.Passes > 0 && c.Passes <= MaxPasses && c.Threads > 0
}

// costBytes is the length of a cost in a request.
const costBytes = 9

var errRequest = errors.New("invalid request for a sum")

// encodeRequest returns the request for a sum: the cost, and the salt. The password follows as the file of the request.
func encodeRequest(c Cost, salt []byte) []byte {
	request := binary.BigEndian.AppendUint32(nil, c.MemoryKiB)
	request = binary.BigEndian.AppendUint32(request, c.Passes)
	return append(append(request, c.Threads), salt...)
}

// decodeRequest parses a request.
func decodeRequest(request []byte) (c Cost, salt []byte, err error) {
	if len(request) < costBytes+minSaltBytes || len(request) > costBytes+maxSaltBytes {
		return Cost{}, nil, errRequest
	}
	c = Cost{MemoryKiB: binary.BigEndian.Uint32(request), Passes: binary.BigEndian.Uint32(request[4:]), Threads: request[8]}
	if !c.isSane() {
		return Cost{}, nil, errRequest
	}
	return c, request[costBytes:], nil
}

// startPause is the time after a failed start during which sums are computed in this process, and no start is tried.
const startPause = time.Minute

// mayStart reports whether workers may be used. After a failed start they are tried again when startPause has passed.
func (h *Hasher) mayStart() bool {
	failed := h.failedAt.Load()
	if failed == 0 {
		return true
	}
	since := h.now().Sub(time.Unix(0, failed))
	return since >= startPause || since < 0 // the clock was set back
}

// startFailed records and logs a failed start.
func (h *Hasher) startFailed(cause error) {
	h.failedAt.Store(h.now().UnixNano())
	h.log.Warn("passwords are hashed in the process of the server for a minute; sign-ins may delay other requests", "cause", cause)
}
