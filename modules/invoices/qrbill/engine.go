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

	"kontor/modules/sandbox"
)

const engineMemory = 192 << 20 // most that one PDF may take inside the engine

// engine is PDFium compiled to WebAssembly. It lives in a worker and shows one document at a time.
type engine struct {
	pool   pdfium.Pool
	memory *guestMemory // of the newest instance
}

// newEngine compiles the engine, which takes some seconds, or loads what an earlier one left in cacheDir. Without a
// directory, or with one that cannot be used, it compiles.
func newEngine(cacheDir string) (*engine, error) {
	e := &engine{}
	config := wazero.NewRuntimeConfig() // guestMemory limits the memory and knows when it did
	if cacheDir != "" && os.MkdirAll(cacheDir, 0o700) == nil {
		if cache, err := wazero.NewCompilationCacheWithDir(cacheDir); err == nil {
			config = config.WithCompilationCache(cache)
		}
	}
	ctx := experimental.WithMemoryAllocator(context.Background(), experimental.MemoryAllocatorFunc(
		func(_, _ uint64) experimental.LinearMemory {
			e.memory = newGuestMemory()
			return e.memory
		}))
	var err error
	e.pool, err = webassembly.Init(webassembly.Config{
		Context: ctx, MaxTotal: 1, RuntimeConfig: config,
		FSConfig: wazero.NewFSConfig(), // no file of the host is visible inside
		Stdout:   io.Discard, Stderr: io.Discard,
	})
	if err != nil {
		return nil, fmt.Errorf("compile the PDF engine: %w", err)
	}
	// The first instance has the engine do what it does only once.
	m, err := e.instance()
	if err != nil {
		return nil, err
	}
	e.release(m)
	return e, nil
}

// machine is one instance of the engine, used for one document.
type machine struct {
	pdfium.Pdfium
	memory *guestMemory
	broken bool
}

// instance makes an instance. There is one at a time.
func (e *engine) instance() (*machine, error) {
	instance, err := e.pool.GetInstanceWithContext(context.Background())
	if err != nil {
		return nil, fmt.Errorf("start the PDF engine: %w", err)
	}
	return &machine{Pdfium: instance, memory: e.memory}, nil
}

// within runs one step of the engine. A step that computes for longer than the limit ends the worker.
func (m *machine) within(limits Limits, step func() error) (err error) {
	if m.broken {
		return because(TooComplex, "the document was given up before")
	}
	stop := sandbox.LimitCPU(limits.Page)
	defer stop()
	defer func() {
		if p := recover(); p != nil {
			m.broken = true
			err = because(DamagedFile, "the PDF engine failed: %v", p)
		}
		if m.memory.denied {
			m.broken = true
			err = because(TooComplex, "more than %d MB needed", engineMemory>>20)
		}
	}()
	return step()
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
