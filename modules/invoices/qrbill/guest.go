package qrbill

import (
	"sync"
	"time"
)

// guestMemory is the memory that a WebAssembly instance computes in. Keeping it
// in our own hands bounds its size, returns it at once, and gives a way to end a
// computation that runs away.
//
// WebAssembly code cannot be interrupted from outside; checks for it would make
// every page five to ten times slower. But it is confined to this memory: when
// all of it is overwritten, the next pointer it follows leads outside, and the
// instance stops with an error. It is thrown away then anyway.
type guestMemory struct {
	mutex  sync.Mutex
	bytes  []byte
	most   uint64
	denied bool
}

const (
	guestStep      = 4 << 20 // smallest growth, so that small ones do not copy everything
	poison         = 0xff
	poisonInterval = 20 * time.Millisecond
)

// Reallocate resizes the memory; nil refuses.
func (g *guestMemory) Reallocate(size uint64) []byte {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if size > g.most {
		g.denied = true
		return nil
	}
	if size > uint64(cap(g.bytes)) {
		room := min(max(size+guestStep, size+size/4), g.most)
		grown := make([]byte, size, max(room, size))
		copy(grown, g.bytes)
		g.bytes = grown
	}
	g.bytes = g.bytes[:size]
	return g.bytes
}

// Free lets the memory go.
func (g *guestMemory) Free() {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.bytes = nil
}

// exhausted tells whether more memory was asked for than is allowed.
func (g *guestMemory) exhausted() bool {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	return g.denied
}

// poisonAfter overwrites the memory after a time, again and again until stopped,
// because the instance may be copying to a larger one meanwhile. The returned
// function stops it and tells whether it came to that.
func (g *guestMemory) poisonAfter(limit time.Duration) (stop func() bool) {
	done, stopped := make(chan struct{}), make(chan bool, 1)
	go func() {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		poisoned := false
		for {
			select {
			case <-done:
				stopped <- poisoned
				return
			case <-timer.C:
				poisoned = true
				g.overwrite()
				timer.Reset(poisonInterval)
			}
		}
	}()
	return func() bool {
		close(done)
		return <-stopped
	}
}

func (g *guestMemory) overwrite() {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	for i := range g.bytes {
		g.bytes[i] = poison
	}
}
