package hashing

import (
	"bytes"
	"errors"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"kontor/modules/kit/sandbox"
)

// worker is the kind of the worker processes that compute sums. See package sandbox.
const worker = "password"

// A process that was started as a worker does not return from here.
func init() {
	sandbox.Serve(worker, func([]string) (sandbox.Work, error) {
		// A service manager may send the signal to end to all processes of a service. Sign-ins in progress are still answered
		// then: the server ends its workers when it has stopped.
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
		return work, nil
	})
}

const (
	workerMemory   = MaxMemoryKiB<<10 + 64<<20 // the largest sum, and the program
	workerResident = 256 << 20                 // after a sum; the sandbox releases what is above 48 MB itself
	workerSums     = 100_000                   // some 40 minutes of processor time
	workerIdle     = time.Minute

	// sumTimeout bounds a sum by the clock. It takes 22 ms of processor time, and more on a busy machine, where a worker of low
	// priority comes last. Only a worker that hangs takes as long as this.
	sumTimeout = 30 * time.Second
)

// newPool returns a pool of workers of a kind and a priority.
func newPool(kind string, priority sandbox.Priority) *sandbox.Pool {
	return sandbox.NewPool(sandbox.Config{Kind: kind, Priority: priority, Memory: workerMemory, Resident: workerResident,
		MaxAnswer: maxSaltBytes + SumBytes, Jobs: workerSums, Idle: workerIdle})
}

// work computes a sum in a worker. The answer begins with the salt: it shows the parent that it belongs to the request.
func work(request, password []byte, _ func([]byte) error) ([]byte, error) {
	cost, salt, err := decodeRequest(request)
	if err != nil {
		return nil, err
	}
	return append(bytes.Clone(salt), cost.sum(password, salt)...), nil
}

var errAnswer = errors.New("the answer of the worker does not belong to the request")

// sumOf returns the sum in an answer.
func sumOf(answer, salt []byte) ([]byte, error) {
	sum, ok := bytes.CutPrefix(answer, salt)
	if !ok || len(sum) != SumBytes {
		return nil, errAnswer
	}
	return sum, nil
}

// slowSum is the time above which a sum of low priority shows that other programs use the machine. Otherwise it takes some 22 ms of
// a core, and twice as long beside a busy server.
const slowSum = 500 * time.Millisecond

// priorities decides which sums have the priority of the server's own requests, and which a low one.
//
// At most one sum at once has normal priority, so that sign-ins never take more than the share of one process. A single sign-in has
// it: on a machine that other programs keep busy, a process of low priority may not run for seconds. While callers wait for slots,
// all sums have a low priority, so that a flood of sign-ins does not delay other requests. If even those are slow, the machine is busy
// with something else, and one sum at once has normal priority again, so that the queue moves.
type priorities struct {
	mutex   sync.Mutex
	normal  bool // a sum of normal priority is being computed
	starved bool // the latest sum of low priority was slow
}

// begin reports whether the next sum has normal priority. waiting reports whether callers wait for slots. The caller must call end.
func (p *priorities) begin(waiting bool) (normal bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	normal = !p.normal && (!waiting || p.starved)
	p.normal = p.normal || normal
	return normal
}

// end notes how long a sum took.
func (p *priorities) end(normal bool, took time.Duration) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if normal {
		p.normal = false
	} else {
		p.starved = took > slowSum
	}
}
