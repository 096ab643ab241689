package qrbill

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Reader reads QR-bills from files. It is safe for concurrent use and bounds
// how much is done at the same time.
type Reader struct {
	limits Limits
	wait   time.Duration
	slots  chan struct{}
	engine *engine
	idle   *idle

	ending context.Context // ends when the Reader is closed
	end    context.CancelFunc
	closed sync.Once
}

// NewReader makes a Reader. The PDF engine starts only with the first PDF.
func NewReader(config Config) *Reader {
	config = config.withDefaults()
	r := &Reader{
		limits: config.Limits, wait: config.Wait, slots: make(chan struct{}, config.Slots),
		engine: newEngine(config.CacheDir, config.Slots), idle: &idle{},
	}
	r.ending, r.end = context.WithCancel(context.Background())
	return r
}

// Close gives up what is being read, with ErrBusy, and stops the PDF engine. Nothing is read any more. When the context
// ends before all is given up, the engine stays as it is: nothing may be taken from under a computation.
func (r *Reader) Close(ctx context.Context) {
	r.closed.Do(func() {
		r.end()
		r.idle.close()
		for range cap(r.slots) {
			select {
			case r.slots <- struct{}{}:
			case <-ctx.Done():
				return
			}
		}
		r.engine.close(ctx)
	})
}

// EngineStarted tells whether the PDF engine is in memory.
func (r *Reader) EngineStarted() bool { return r.engine.started() }

// MaxBytes is the size of the largest file the Reader accepts.
func (r *Reader) MaxBytes() int { return r.limits.Bytes }

// Options say what is wanted of a file.
type Options struct {
	// Page is the only page to search, counted from 1; 0 searches all.
	Page int
	// Strict refuses a bill with any violation of the standard.
	Strict bool
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
	if options.Page < 0 {
		return nil, because(PageOutOfRange, "page %d", options.Page)
	}
	if len(file) > r.limits.Bytes {
		return nil, because(TooLarge, "file of %d bytes", len(file))
	}
	if err := r.enter(ctx); err != nil {
		return nil, err
	}
	r.idle.busy()
	defer func() {
		r.idle.done()
		<-r.slots
	}()
	ctx, cancel := context.WithTimeout(ctx, r.limits.Time)
	defer cancel()
	defer context.AfterFunc(r.ending, cancel)()
	result, err := r.read(ctx, file, options)
	if errors.Is(err, context.Canceled) && r.ending.Err() != nil {
		err = ErrBusy
	}
	if err == nil && options.Strict {
		if broken := Violations(result.Findings); len(broken) > 0 {
			return nil, &Error{Reason: InvalidPayload, Findings: broken}
		}
	}
	return result, err
}

// enter takes a slot, or gives up after a short wait.
func (r *Reader) enter(ctx context.Context) error {
	if r.ending.Err() != nil {
		return ErrBusy
	}
	select {
	case r.slots <- struct{}{}:
		return nil
	default:
	}
	timer := time.NewTimer(r.wait)
	defer timer.Stop()
	select {
	case r.slots <- struct{}{}:
		return nil
	case <-timer.C:
		return ErrBusy
	case <-r.ending.Done():
		return ErrBusy
	case <-ctx.Done():
		return ctx.Err()
	}
}

// read does the work inside a slot. A panic of any decoder is an answer.
func (r *Reader) read(ctx context.Context, file []byte, options Options) (result *Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			result, err = nil, because(DamagedFile, "a decoder failed: %v", p)
		}
	}()
	src, err := r.open(ctx, file)
	if err != nil {
		return nil, err
	}
	defer src.close()
	first, last := 0, src.pages()
	switch {
	case options.Page > last:
		return nil, because(PageOutOfRange, "page %d of %d", options.Page, last)
	case options.Page > 0:
		first, last = options.Page-1, options.Page
	case last > r.limits.Pages:
		return nil, because(TooComplex, "%d pages", last)
	}
	s := &search{source: src, deadline: ctx}
	s.quick(first, last)
	if len(s.bills) == 0 {
		s.thorough()
	}
	return s.result()
}

// contextError says why work ended early, and is nil where it did not.
func contextError(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &Error{Reason: TooComplex, cause: ctx.Err()}
	}
	return ctx.Err()
}
