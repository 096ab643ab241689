package qrbill

import (
	"context"
	"runtime"
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
	regions *regions
	mutex   sync.Mutex
	region  []byte // all that may be used
	bytes   []byte // what is used so far
	denied  bool
}

const (
	poison         = 0xff
	poisonInterval = 20 * time.Millisecond
)

// regions keeps address space for guests, so that their memories neither move
// while they grow nor leave anything to the garbage collector.
type regions struct {
	mutex sync.Mutex
	free  [][]byte
}

func (r *regions) take() []byte {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if last := len(r.free) - 1; last >= 0 {
		region := r.free[last]
		r.free = r.free[:last]
		return region
	}
	return reserve(engineMemory)
}

func (r *regions) give(region []byte, used int) {
	discard(region, used)
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.free = append(r.free, region)
}

// Reallocate resizes the memory; nil refuses.
func (g *guestMemory) Reallocate(size uint64) []byte {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.region == nil {
		g.region = g.regions.take()
	}
	if size > uint64(len(g.region)) {
		g.denied = true
		return nil
	}
	g.bytes = g.region[:size]
	return g.bytes
}

// Free gives the memory back.
func (g *guestMemory) Free() {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.region != nil {
		g.regions.give(g.region, len(g.bytes))
		g.region, g.bytes = nil, nil
	}
}

// exhausted tells whether more memory was asked for than is allowed.
func (g *guestMemory) exhausted() bool {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	return g.denied
}

// patience is how many times longer than the limit a step may take when other
// work on the machine keeps it from computing.
const patience = 8

// poisonAfter overwrites the memory once the calling thread has computed for
// longer than the limit, again and again until stopped, because the instance may
// be growing or writing meanwhile. Time spent waiting for a processor does not
// count, within reason: a busy machine must not make a good file look bad. When the
// context ends there is nothing to wait for. The returned function stops it and
// tells whether it came to that.
func (g *guestMemory) poisonAfter(ctx context.Context, limit time.Duration) (stop func() bool) {
	runtime.LockOSThread()
	clock := threadClock()
	start, last := clock(), time.Now().Add(patience*limit)
	done, stopped := make(chan struct{}), make(chan bool, 1)
	go func() {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		poisoned, given := false, ctx.Done()
		for {
			select {
			case <-done:
				stopped <- poisoned
				return
			case <-given:
				given = nil
			case <-timer.C:
			}
			if left := limit - (clock() - start); left > 0 && time.Now().Before(last) && ctx.Err() == nil && !poisoned {
				timer.Reset(max(left, poisonInterval))
				continue
			}
			poisoned = true
			g.overwrite()
			timer.Reset(poisonInterval)
		}
	}()
	return func() bool {
		close(done)
		runtime.UnlockOSThread()
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
