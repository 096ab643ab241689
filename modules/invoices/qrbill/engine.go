package qrbill

import (
	"context"
	"errors"
	"io"
	"runtime/debug"
	"sync"
	"time"

	"github.com/klippa-app/go-pdfium"
	"github.com/klippa-app/go-pdfium/webassembly"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"
)

const (
	engineMemory = 192 << 20        // most that one PDF may take inside the engine
	engineWait   = 15 * time.Second // for an instance, of which there are as many as slots
)

// engine is PDFium compiled to WebAssembly. It starts with the first PDF: the
// compiler works for some seconds, or for a tenth of one with its cache.
type engine struct {
	cacheDir string
	slots    int

	start sync.Once
	ready chan struct{}
	pool  pdfium.Pool
	cache wazero.CompilationCache
	err   error

	creating sync.Mutex // guards latest
	latest   *guestMemory
	regions  regions
}

func newEngine(cacheDir string, slots int) *engine {
	return &engine{cacheDir: cacheDir, slots: slots, ready: make(chan struct{})}
}

// started tells whether a PDF ever asked for the engine.
func (e *engine) started() bool {
	select {
	case <-e.ready:
		return e.pool != nil
	default:
		return false
	}
}

func (e *engine) compile() {
	defer close(e.ready)
	defer func() {
		if p := recover(); p != nil {
			e.err = errors.New("the PDF engine could not be compiled")
		}
	}()
	config := wazero.NewRuntimeConfig() // guestMemory limits the memory and knows when it did
	if e.cacheDir != "" {
		// A folder that cannot be written costs only the time of compiling anew.
		if cache, err := wazero.NewCompilationCacheWithDir(e.cacheDir); err == nil {
			e.cache = cache
			config = config.WithCompilationCache(cache)
		}
	}
	ctx := experimental.WithMemoryAllocator(context.Background(), experimental.MemoryAllocatorFunc(
		func(_, _ uint64) experimental.LinearMemory {
			e.latest = &guestMemory{regions: &e.regions}
			return e.latest
		}))
	module, err := withYields(pdfiumWasm)
	if err != nil {
		e.err = err
		return
	}
	e.pool, e.err = webassembly.InitWithWASM(webassembly.Config{
		WASM: module, Context: ctx, MaxTotal: e.slots, RuntimeConfig: config,
		FSConfig: wazero.NewFSConfig(), // no file of the host is visible inside
		Stdout:   io.Discard, Stderr: io.Discard,
	})
	debug.FreeOSMemory() // the compiler leaves some hundred megabytes behind
}

// machine is one instance of the engine, used for one document.
type machine struct {
	pdfium.Pdfium
	memory *guestMemory
	broken bool
}

// machine waits for the engine and makes an instance.
func (e *engine) machine(ctx context.Context) (*machine, error) {
	e.start.Do(func() { go e.compile() })
	select {
	case <-e.ready:
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return nil, ErrBusy // it is the engine that is not ready, the file is not to blame
		}
		return nil, ctx.Err()
	}
	if e.err != nil {
		return nil, e.err
	}
	e.creating.Lock()
	defer e.creating.Unlock()
	instance, err := e.pool.GetInstance(engineWait)
	if err != nil {
		return nil, err
	}
	return &machine{Pdfium: instance, memory: e.latest}, nil
}

// within runs one step of the engine and ends it by force when it takes too long, or when the context ends.
func (m *machine) within(ctx context.Context, limit time.Duration, step func() error) (err error) {
	if m.broken {
		return because(TooComplex, "the document was given up before")
	}
	defer func() {
		if p := recover(); p != nil {
			m.broken = true
			if err = contextError(ctx); err == nil {
				err = because(DamagedFile, "the PDF engine failed: %v", p)
			}
		}
	}()
	stop := m.memory.poisonAfter(ctx, limit)
	ended := false
	defer func() {
		if !ended { // a panic is on its way
			stop()
		}
	}()
	err = step()
	ended = true
	if stop() {
		m.broken = true
		if err := contextError(ctx); err != nil {
			return err
		}
		return because(TooComplex, "no result within %s of computing", limit)
	}
	if m.memory.exhausted() {
		m.broken = true
		return because(TooComplex, "more than %d MB needed", engineMemory>>20)
	}
	return err
}

// release gives the instance and its memory back.
func (e *engine) release(m *machine) {
	defer func() {
		// The library closes handles of a document that may be gone with its memory.
		_ = recover()
	}()
	if m.broken {
		_ = m.Kill()
		return
	}
	_ = m.Close()
}

// close ends the engine. One that is still being compiled when the context ends is left alone.
func (e *engine) close(ctx context.Context) {
	e.start.Do(func() { close(e.ready) }) // never started: nothing to wait for
	select {
	case <-e.ready:
	case <-ctx.Done():
		return
	}
	if e.pool != nil {
		_ = e.pool.Close()
	}
	if e.cache != nil {
		_ = e.cache.Close(context.Background())
	}
}
