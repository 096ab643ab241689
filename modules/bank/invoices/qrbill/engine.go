package qrbill

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/klippa-app/go-pdfium"
	"github.com/klippa-app/go-pdfium/webassembly"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"

	"kontor/modules/kit/sandbox"
)

const engineMemory = 192 << 20 // memory that one PDF may use in the engine

// engine is PDFium, compiled to WebAssembly. It runs in a worker and renders one document at a time.
type engine struct {
	pool   pdfium.Pool
	memory *linearMemory // of the newest instance
}

// newEngine loads the compiled engine from cacheDir. It compiles the engine, which takes some seconds, when cacheDir is
// empty, unusable or does not hold it yet.
func newEngine(cacheDir string) (*engine, error) {
	e := &engine{}
	config := wazero.NewRuntimeConfig() // linearMemory limits the memory, and records a request beyond the limit
	if cacheDir != "" && os.MkdirAll(cacheDir, 0o700) == nil {
		if cache, err := wazero.NewCompilationCacheWithDir(cacheDir); err == nil {
			config = config.WithCompilationCache(cache)
		}
	}
	ctx := experimental.WithMemoryAllocator(context.Background(), experimental.MemoryAllocatorFunc(
		func(_, _ uint64) experimental.LinearMemory {
			e.memory = newLinearMemory()
			return e.memory
		}))
	var err error
	e.pool, err = webassembly.Init(webassembly.Config{
		Context: ctx, MaxTotal: 1, RuntimeConfig: config,
		FSConfig: wazero.NewFSConfig(), // the engine cannot access files of the host
		Stdout:   io.Discard, Stderr: io.Discard,
	})
	if err != nil {
		return nil, fmt.Errorf("compile the PDF engine: %w", err)
	}
	// The first instance makes the engine initialise itself.
	m, err := e.newInstance()
	if err != nil {
		return nil, err
	}
	e.release(m)
	return e, nil
}

// instance is one instance of the engine, used for one document.
type instance struct {
	pdfium.Pdfium
	memory *linearMemory
	broken bool
}

// newInstance returns a new instance. Only one may exist at a time.
func (e *engine) newInstance() (*instance, error) {
	api, err := e.pool.GetInstanceWithContext(context.Background())
	if err != nil {
		return nil, fmt.Errorf("start the PDF engine: %w", err)
	}
	return &instance{Pdfium: api, memory: e.memory}, nil
}

// limited runs one step of the engine. A step that exceeds the limit of processor time ends the worker.
func (m *instance) limited(limits Limits, step func() error) (err error) {
	if m.broken {
		return errorf(TooComplex, "a previous step of this document failed")
	}
	stop := sandbox.LimitCPU(limits.Page)
	defer stop()
	defer func() {
		if p := recover(); p != nil {
			m.broken = true
			err = errorf(DamagedFile, "the PDF engine failed: %v", p)
		}
		if m.memory.denied {
			m.broken = true
			err = errorf(TooComplex, "the document needs more than %d MB", engineMemory>>20)
		}
	}()
	return step()
}

// release closes the instance and releases its memory.
func (e *engine) release(m *instance) {
	defer func() {
		// The library panics when it closes handles of a document whose memory was released before.
		_ = recover()
	}()
	if m.broken {
		_ = m.Kill()
		return
	}
	_ = m.Close()
}
