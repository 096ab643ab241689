package qrbill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"kontor/modules/sandbox"
)

// Reader reads QR-bills from files. It is safe for concurrent use and bounds
// how much is done at the same time. Files are decoded in worker processes of
// the same executable, see package sandbox.
type Reader struct {
	limits    Limits
	wait      time.Duration
	queue     *sandbox.Queue
	documents *sandbox.Pool
	pictures  *sandbox.Pool
	scratch   string // a cache directory of our own

	ending context.Context // ends when the Reader is closed
	end    context.CancelFunc
	closed sync.Once
}

// NewReader makes a Reader. Processes start with the first files.
func NewReader(config Config) *Reader {
	config = config.withDefaults()
	r := &Reader{limits: config.Limits, wait: config.Wait, queue: sandbox.NewQueue(config.Slots, config.Wait)}
	cache := config.CacheDir
	if cache == "" {
		// Workers come and go, and none must have to compile what another one has compiled. Without such a place they do.
		cache, _ = os.MkdirTemp("", "qrbill-engine-")
		r.scratch = cache
	}
	r.documents = sandbox.NewPool(sandbox.Config{Kind: documentWorker, Args: []string{cache},
		Memory: r.limits.documentMemory(), Resident: residentAfterFile, MaxAnswer: maxAnswer})
	r.pictures = sandbox.NewPool(sandbox.Config{Kind: pictureWorker,
		Memory: r.limits.pictureMemory(), Resident: residentAfterFile, MaxAnswer: maxAnswer})
	r.ending, r.end = context.WithCancel(context.Background())
	return r
}

// maxAnswer is far more than a sighting of the longest text takes.
const maxAnswer = 4 * maxTextBytes

// Close gives up what is being read, with ErrBusy, and ends the workers, at the latest when the context ends. Nothing
// is read any more.
func (r *Reader) Close(ctx context.Context) {
	r.closed.Do(func() {
		r.end()
		r.documents.Close(ctx)
		r.pictures.Close(ctx)
		if r.scratch != "" {
			_ = os.RemoveAll(r.scratch) // a temporary directory more does no harm
		}
	})
}

// EngineStarted reports whether the PDF engine was ever needed.
func (r *Reader) EngineStarted() bool { return r.documents.Started() }

// MaxBytes is the size of the largest file the Reader accepts.
func (r *Reader) MaxBytes() int { return r.limits.Bytes }

// Options say what is wanted of a file.
type Options struct {
	// Page is the only page to search, counted from 1; 0 searches all.
	Page int
	// Strict refuses a bill with any violation of the standard.
	Strict bool
	// Caller names who asks. One caller never takes all workers and all places in the queue; without a name there is no such bound.
	Caller string
}

// Result is a bill with what is to be known about it.
type Result struct {
	Bill     *Bill
	Page     int // counted from 1
	Findings []Finding
	// Others are further bills of the file, each once, in page order.
	Others []Other
}

// Other is a further bill of the same file.
type Other struct {
	Page int
	Bill *Bill
}

// Read searches a file for the first QR-bill: by page, then from top to bottom.
// The error is an *Error that says why there is none, or ErrBusy. With
// Options.Strict a bill that violates the standard is an Error with
// InvalidPayload and all violations. After Close the error is ErrBusy.
func (r *Reader) Read(ctx context.Context, file []byte, options Options) (*Result, error) {
	return r.ReadFunc(ctx, func() ([]byte, error) { return file, nil }, options)
}

// ReadFunc is Read for a file that is made only once there is a slot for it.
// An error of load is returned as it is.
func (r *Reader) ReadFunc(ctx context.Context, load func() ([]byte, error), options Options) (*Result, error) {
	if options.Page < 0 {
		return nil, because(PageOutOfRange, "page %d", options.Page)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.ending, cancel)()
	result, err := r.inSlot(ctx, load, options)
	if r.ending.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, sandbox.ErrClosed)) {
		err = ErrBusy
	}
	if err == nil && options.Strict {
		if broken := Violations(result.Findings); len(broken) > 0 {
			return nil, &Error{Reason: InvalidPayload, Findings: broken}
		}
	}
	return result, err
}

// inSlot waits for a slot and reads the file there.
func (r *Reader) inSlot(ctx context.Context, load func() ([]byte, error), options Options) (*Result, error) {
	leave, err := r.queue.Acquire(ctx, options.Caller)
	if errors.Is(err, sandbox.ErrBusy) {
		err = ErrBusy
	}
	if err != nil {
		return nil, err
	}
	defer leave()
	file, err := load()
	if err != nil {
		return nil, err
	}
	if len(file) > r.limits.Bytes {
		return nil, because(TooLarge, "file of %d bytes", len(file))
	}
	kind, readable := sniff(file)
	if !readable {
		return nil, &Error{Reason: UnsupportedFile, Format: kind}
	}
	pool := r.pictures
	if kind == kindPDF {
		pool = r.documents
	}
	lease, err := r.acquire(ctx, pool)
	if err != nil {
		return nil, err
	}
	return r.read(ctx, lease, file, order{Kind: kind, Page: options.Page, Limits: r.limits})
}

// startWait is how long a file waits at least for a worker that is being started, in addition to its own time.
const startWait = 15 * time.Second

// acquire takes a worker. When none becomes ready, the file is not to blame.
func (r *Reader) acquire(ctx context.Context, pool *sandbox.Pool) (*sandbox.Lease, error) {
	starting, cancel := context.WithTimeout(ctx, max(startWait, r.limits.Time, r.wait))
	defer cancel()
	lease, err := pool.Acquire(starting)
	switch {
	case err == nil:
		return lease, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, sandbox.ErrClosed):
		return nil, err
	default:
		return nil, &Error{Reason: reasonOverloaded, cause: err}
	}
}

// graceAfter is how much longer than the worker itself its caller waits for the end of the time: the worker may still
// say what it has found.
const graceAfter = 500 * time.Millisecond

// read has a worker read the file, and makes the most of what it found.
func (r *Reader) read(ctx context.Context, lease *sandbox.Lease, file []byte, o order) (*Result, error) {
	o.Left = r.limits.Time
	request, err := json.Marshal(o)
	if err != nil {
		lease.Release()
		return nil, fmt.Errorf("order: %w", err)
	}
	limited, cancel := context.WithTimeout(ctx, r.limits.Time+graceAfter)
	defer cancel()
	var c collection
	answer, err := lease.Run(limited, request, file, c.add)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return c.result(crashError(err), nil)
	}
	var end outcome
	if err := json.Unmarshal(answer, &end); err != nil {
		return nil, because(DamagedFile, "answer of the worker: %w", err)
	}
	if end.Unfinished {
		return c.result(end.err(), nil)
	}
	return c.result(nil, end.err())
}

// crashError says what the end of a worker means for the file it read.
func crashError(err error) error {
	reason := DamagedFile
	if crash, ok := errors.AsType[*sandbox.CrashError](err); ok {
		switch crash.Failure {
		case sandbox.OutOfTime, sandbox.OutOfMemory:
			reason = TooComplex
		case sandbox.Killed:
			reason = reasonOverloaded
		case sandbox.Crashed:
		}
	} else if errors.Is(err, context.DeadlineExceeded) {
		reason = TooComplex
	}
	return &Error{Reason: reason, cause: err}
}
