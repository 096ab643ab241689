package qrbill

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
)

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
