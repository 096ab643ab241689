package qrbill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"kontor/modules/kit/sandbox"
)

// Reader reads QR-bills from files. It limits how many files are read concurrently, and decodes them in worker processes of
// the same executable, see package sandbox. It is safe for concurrent use.
type Reader struct {
	limits    Limits
	wait      time.Duration
	now       func() time.Time
	queue     *sandbox.Queue
	documents *sandbox.Pool
	pictures  *sandbox.Pool
	cacheDir  string // empty: none
	tempDir   string // cache directory that Close removes; empty when the caller has one

	closing   context.Context //nolint:containedctx // it ends with the Reader
	end       context.CancelFunc
	closeOnce sync.Once
}

// NewReader returns a Reader. It starts no process before the first file.
func NewReader(config Config) *Reader {
	config = config.withDefaults()
	r := &Reader{limits: config.Limits, wait: config.Wait, now: config.Now, queue: sandbox.NewQueue(config.Slots, config.Wait, config.Limits.Bytes)}
	r.closing, r.end = context.WithCancel(context.Background())
	cache := config.CacheDir
	if cache == "" {
		// A cache saves later workers from compiling the engine again. Without one they compile it.
		cache, _ = os.MkdirTemp("", "qrbill-engine-")
		r.tempDir = cache
	}
	r.cacheDir = cache
	r.documents = sandbox.NewPool(sandbox.Config{Kind: documentWorker, Args: []string{cache},
		Memory: r.limits.documentMemory(), Resident: residentAfterFile, MaxAnswer: maxAnswer})
	r.pictures = sandbox.NewPool(sandbox.Config{Kind: pictureWorker,
		Memory: r.limits.pictureMemory(), Resident: residentAfterFile, MaxAnswer: maxAnswer})
	return r
}

// maxAnswer exceeds the encoded size of the longest code, and of a preview.
const maxAnswer = max(4*maxTextBytes, maxPreviewBytes+1<<10)

// Close cancels running reads, which return ErrBusy, and ends the workers. It waits for them until the context ends. Later
// reads return ErrBusy.
func (r *Reader) Close(ctx context.Context) {
	r.closeOnce.Do(func() {
		r.end()
		r.documents.Close(ctx)
		r.pictures.Close(ctx)
		if r.tempDir != "" {
			_ = os.RemoveAll(r.tempDir) // a leftover temporary directory does no harm
		}
	})
}

// untilClosed returns a context that also ends when the Reader is closed.
func (r *Reader) untilClosed(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(r.closing, cancel)
	return ctx, func() { stop(); cancel() }
}

// EngineStarted reports whether the PDF engine was ever started.
func (r *Reader) EngineStarted() bool { return r.documents.Started() }

// MaxBytes returns the size of the largest file that the Reader accepts.
func (r *Reader) MaxBytes() int { return r.limits.Bytes }

// Options are the options of reading a file.
type Options struct {
	// Page is the only page to search, counted from 1; 0 searches all pages.
	Page int
	// Strict rejects a bill that violates the standard.
	Strict bool
	// Caller identifies the caller. One caller cannot use all workers or fill the queue. An empty name is exempt.
	Caller string
	// Waiting is the size of what the caller keeps in memory while the file waits, in bytes; 0: that of the largest file.
	Waiting int
}

// Result is a bill with its findings.
type Result struct {
	Bill     *Bill
	Page     int // counted from 1
	Findings []Finding
	// Others are the other bills of the file in page order, without duplicates.
	Others []Other
}

// Other is another bill of the same file.
type Other struct {
	Page int
	Bill *Bill
}

// Read returns the first QR-bill of a file: by page, then from top to bottom. It returns an *Error when there is none, and
// ErrBusy when all workers are busy or the Reader is closed. With Options.Strict, a bill that violates the standard yields
// an *Error with InvalidPayload and all violations.
func (r *Reader) Read(ctx context.Context, file []byte, options Options) (*Result, error) {
	options.Waiting = len(file)
	return r.ReadFunc(ctx, func() ([]byte, error) { return file, nil }, options)
}

// ReadFunc is like Read for a file that it loads only when a slot is free. It returns errors of load unchanged.
func (r *Reader) ReadFunc(ctx context.Context, load func() ([]byte, error), options Options) (*Result, error) {
	if options.Page < 0 {
		return nil, errorf(PageOutOfRange, "page %d", options.Page)
	}
	c := collection{at: r.now()}
	end, crash, err := r.inSlot(ctx, options.Caller, options.Waiting, load, job{Page: options.Page}, c.add)
	if err != nil {
		return nil, err
	}
	unfinished, failed := crash, end.err()
	if end.Unfinished {
		unfinished, failed = failed, nil
	}
	result, err := c.result(unfinished, failed) // a bill that was read counts, even if the worker failed later
	if err == nil && options.Strict {
		if violations := Violations(result.Findings); len(violations) > 0 {
			return nil, &Error{Reason: InvalidPayload, Findings: violations}
		}
	}
	return result, err
}

// inSlot waits for a slot, loads a file and has a worker do a job with it. receive gets the parts of the worker's answer, and end is its
// last one. crash is the error of a worker that failed.
func (r *Reader) inSlot(ctx context.Context, caller string, waiting int, load func() ([]byte, error), j job, receive func(part []byte) error) (
	end outcome, crash, err error,
) {
	ctx, cancel := r.untilClosed(ctx)
	defer cancel()
	defer func() {
		for _, e := range []*error{&crash, &err} {
			if r.closing.Err() != nil && (errors.Is(*e, context.Canceled) || errors.Is(*e, sandbox.ErrClosed)) {
				*e = ErrBusy
			}
		}
	}()
	release, err := r.queue.Acquire(ctx, caller, orDefault(waiting, r.limits.Bytes))
	if errors.Is(err, sandbox.ErrBusy) {
		err = ErrBusy
	}
	if err != nil {
		return end, nil, err
	}
	defer release()
	file, err := load()
	if err != nil {
		return end, nil, err
	}
	if len(file) > r.limits.Bytes {
		return end, nil, errorf(TooLarge, "file of %d bytes", len(file))
	}
	kind, readable := sniff(file)
	if !readable {
		return end, nil, &Error{Reason: UnsupportedFile, Format: kind}
	}
	j.Kind, j.Limits, j.Time = kind, r.limits, r.limits.Time
	request, err := json.Marshal(j)
	if err != nil {
		return end, nil, fmt.Errorf("encode job: %w", err)
	}
	pool := r.pictures
	if kind == kindPDF {
		pool = r.documents
	}
	lease, err := r.acquire(ctx, pool)
	if err != nil {
		return end, nil, err
	}
	limited, stop := context.WithTimeout(ctx, r.limits.Time+gracePeriod)
	defer stop()
	answer, err := lease.Run(limited, request, file, receive)
	if ctx.Err() != nil {
		return end, nil, ctx.Err()
	}
	if err != nil {
		return end, crashError(err), nil
	}
	if err := json.Unmarshal(answer, &end); err != nil {
		return end, nil, errorf(DamagedFile, "decode the answer of the worker: %w", err)
	}
	return end, nil, nil
}

// startWait is the minimum time that a file waits for a starting worker, in addition to its own time.
const startWait = 15 * time.Second

// acquire returns a worker. When none becomes ready, the error is temporary and not one of the file.
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

// gracePeriod is the time after the deadline of a worker in which it may still send the codes that it has read.
const gracePeriod = 500 * time.Millisecond

// crashError returns the error of a file whose worker failed.
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

// Limits limit the resources for one file.
type Limits struct {
	Bytes  int           // size of the file
	Pages  int           // pages of a document
	Pixels int           // pixels of one image or rendered page
	Memory int           // bytes for the pixels of one decoded image
	Time   time.Duration // elapsed time for the file
	Page   time.Duration // processor time for opening a PDF, and for rendering each of its pages
}

// Config configures a Reader. The zero value has sensible limits.
type Config struct {
	Limits Limits
	// Slots is the number of files that are read concurrently, each in its own process. Other files wait.
	Slots int
	// Wait is how long a file waits for a slot before ErrBusy, and the minimum time that it waits for a starting process.
	Wait time.Duration
	// CacheDir keeps the compiled PDF engine between starts. Without it, each Reader compiles the engine for its first PDF,
	// which takes some seconds.
	CacheDir string
	// Now returns the time, for rules that depend on the version of the standard. Nil means the clock of the system.
	Now func() time.Time
}

const (
	defaultBytes  = 20 << 20
	defaultPages  = 50
	defaultPixels = 60_000_000 // photos of common phones have up to 50 million
	defaultMemory = 192 << 20  // enough for a progressive JPEG in full colour with 12 megapixels
	defaultTime   = 20 * time.Second
	defaultPage   = 1500 * time.Millisecond
	defaultWait   = 10 * time.Second
)

func (c Config) withDefaults() Config {
	l := &c.Limits
	l.Bytes = orDefault(l.Bytes, defaultBytes)
	l.Pages = orDefault(l.Pages, defaultPages)
	l.Pixels = orDefault(l.Pixels, defaultPixels)
	l.Memory = orDefault(l.Memory, defaultMemory)
	l.Time = orDefault(l.Time, defaultTime)
	l.Page = orDefault(l.Page, defaultPage)
	c.Slots = orDefault(c.Slots, runtime.GOMAXPROCS(0))
	c.Wait = orDefault(c.Wait, defaultWait)
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// Memory of a worker.
const (
	// baseMemory covers the 64 MB steps in which the Go runtime allocates memory.
	baseMemory = 128 << 20
	// searchBytesPerPixel is for the copies of a page in several contrasts and sizes.
	searchBytesPerPixel = 8
	// residentAfterFile is more than a worker keeps after any but the largest files.
	residentAfterFile = 160 << 20
)

// documentMemory returns the memory for the engine, the file, and a page of the maximum size.
func (l Limits) documentMemory() int64 {
	return baseMemory + engineMemory + 3*int64(l.Bytes) + searchBytesPerPixel*min(maxPagePixels, int64(l.Pixels))
}

// pictureMemory returns the memory for the file, its decoder and a picture of the maximum size.
func (l Limits) pictureMemory() int64 {
	return baseMemory + 3*int64(l.Bytes) + int64(l.Memory) + searchBytesPerPixel*int64(l.Pixels)
}

func orDefault[T int | time.Duration](value, fallback T) T {
	if value <= 0 {
		return fallback
	}
	return value
}

// Prepare compiles the PDF engine into the cache directory, unless it is there. The first PDF then need not wait for that: it takes two
// seconds of computing, and much longer on a busy machine.
func (r *Reader) Prepare(ctx context.Context) error {
	if r.cacheDir == "" {
		return nil
	}
	mark := filepath.Join(r.cacheDir, preparedEngine())
	if _, err := os.Stat(mark); err == nil {
		return nil
	}
	ctx, cancel := r.untilClosed(ctx)
	defer cancel()
	lease, err := r.documents.Acquire(ctx) // a worker compiles the engine before it is ready
	if err != nil {
		return fmt.Errorf("compile the PDF engine: %w", err)
	}
	lease.Release()
	return os.WriteFile(mark, nil, 0o600)
}

// preparedEngine names the file that marks a cache with the compiled engine. Another version of the engine, or of its compiler, has
// another name.
var preparedEngine = sync.OnceValue(func() string {
	name := "engine"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			if module.Path == "github.com/klippa-app/go-pdfium" || module.Path == "github.com/tetratelabs/wazero" {
				name += "-" + module.Version
			}
		}
	}
	return name
})

// Kinds of workers. Only documents need the engine, which is slow to start and uses much memory.
const (
	documentWorker = "qrbill-document"
	pictureWorker  = "qrbill-picture"
)

// Serve does not return in a process that was started as a worker.
func init() {
	sandbox.Serve(documentWorker, func(args []string) (sandbox.Work, error) {
		e, err := newEngine(args[0])
		return worker{e}.work, err
	})
	sandbox.Serve(pictureWorker, func([]string) (sandbox.Work, error) { return worker{}.work, nil })
}

// job is the request to a worker about a file.
type job struct {
	Kind   string
	Page   int // as in Options
	Width  int // of a preview, in pixels; 0: search the file for codes
	Limits Limits
	Time   time.Duration
}

// outcome is the end of a worker's answer.
type outcome struct {
	// Unfinished reports that the time ended before all pages were searched.
	Unfinished bool
	// Reason is empty unless a page failed.
	Reason Reason
	Format string
	Detail string
	Pages  int // of the file, with a preview
}

// worker reads files in a worker process. engine is nil in a worker for pictures.
type worker struct{ engine *engine }

// work reads one file and sends each code at once.
func (w worker) work(request, file []byte, send func([]byte) error) ([]byte, error) {
	var j job
	if err := json.Unmarshal(request, &j); err != nil {
		return nil, fmt.Errorf("decode job: %w", err)
	}
	if j.Width > 0 {
		return w.preview(j, file, send)
	}
	end, err := w.search(j, file, func(code foundCode) error {
		part, err := json.Marshal(code)
		if err != nil {
			return err
		}
		return send(part)
	})
	if err != nil {
		return nil, err
	}
	return json.Marshal(end)
}

// search searches a file. It returns only errors of report.
func (w worker) search(j job, file []byte, report func(foundCode) error) (outcome, error) {
	ctx, cancel := context.WithTimeout(context.Background(), j.Time)
	defer cancel()
	src, err := open(file, j.Kind, w.engine, j.Limits)
	if err != nil {
		return outcomeOf(err), nil
	}
	defer src.close()
	first, last := 0, src.pages()
	switch {
	case j.Page > last:
		return outcomeOf(errorf(PageOutOfRange, "page %d of %d", j.Page, last)), nil
	case j.Page > 0:
		first, last = j.Page-1, j.Page
	case last > j.Limits.Pages:
		return outcomeOf(errorf(TooComplex, "%d pages", last)), nil
	}
	s := &search{source: src, report: report}
	if err := s.run(ctx, first, last); err != nil {
		return outcome{}, err
	}
	if err := ctx.Err(); err != nil {
		return outcome{Unfinished: true, Reason: TooComplex, Detail: err.Error()}, nil
	}
	return outcomeOf(s.failed), nil
}

// outcomeOf converts an error to an outcome. An error without a reason is one of the engine.
func outcomeOf(err error) outcome {
	if err == nil {
		return outcome{}
	}
	o := outcome{Reason: DamagedFile, Detail: err.Error()}
	if problem, ok := errors.AsType[*Error](err); ok {
		o.Reason, o.Format = problem.Reason, problem.Format
		if problem.cause != nil {
			o.Detail = problem.cause.Error()
		}
	}
	return o
}

// err converts an outcome to an error.
func (o outcome) err() error {
	if o.Reason == "" {
		return nil
	}
	return &Error{Reason: o.Reason, Format: o.Format, cause: errors.New(o.Detail)}
}
