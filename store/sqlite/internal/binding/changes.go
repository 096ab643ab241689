package binding

import (
	"encoding/binary"
	"maps"
	"slices"
)

// Changes collects the numbers of the pages that are written to a log.
type Changes struct{ frames *frames }

// TrackChanges begins to collect the pages that any connection of this process writes to the log of a database. The caller
// must have a connection to the database, and call Close. There is one collection for each database at a time.
func TrackChanges(path string) (*Changes, error) {
	full, err := fullPath(path)
	if err != nil {
		return nil, err
	}
	l := openFrames(full + Log.suffix())
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changed = map[int64]struct{}{}
	l.tracked.Store(true)
	return &Changes{frames: l}, nil
}

// Take returns the numbers of the pages that were written since the last call, in order. Call it between two transactions.
func (c *Changes) Take() []int64 {
	c.frames.mu.Lock()
	defer c.frames.mu.Unlock()
	taken := slices.Sorted(maps.Keys(c.frames.changed))
	clear(c.frames.changed)
	return taken
}

// Any reports whether Take would return something.
func (c *Changes) Any() bool {
	c.frames.mu.Lock()
	defer c.frames.mu.Unlock()
	return len(c.frames.changed) > 0
}

// Close ends the collection.
func (c *Changes) Close() {
	c.frames.tracked.Store(false)
	c.frames.mu.Lock()
	c.frames.changed = nil
	c.frames.mu.Unlock()
	c.frames.close()
}

// noteChange collects the page of a frame whose header is written.
func (l *frames) noteChange(size int64, buffer uintptr, n int32, offset int64) {
	if !l.tracked.Load() || n != frameHeaderBytes || size == 0 || (offset-logHeaderBytes)%(size+frameHeaderBytes) != 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.changed != nil {
		l.changed[int64(binary.BigEndian.Uint32(memory(buffer, int64(n))))] = struct{}{}
	}
}
