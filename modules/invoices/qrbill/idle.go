package qrbill

import (
	"runtime/debug"
	"sync"
	"time"
)

// idleBefore is how long nothing must be read before memory goes back to the system.
const idleBefore = 2 * time.Second

// idle returns memory to the system after work. Pictures of pages are large, and
// without it the process would keep for minutes what a busy moment took.
type idle struct {
	mutex   sync.Mutex
	running int
	timer   *time.Timer
	closed  bool
}

func (i *idle) busy() {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	i.running++
	if i.timer != nil {
		i.timer.Stop()
	}
}

func (i *idle) done() {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	i.running--
	if i.running > 0 || i.closed {
		return
	}
	if i.timer == nil {
		i.timer = time.AfterFunc(idleBefore, debug.FreeOSMemory)
		return
	}
	i.timer.Reset(idleBefore)
}

func (i *idle) close() {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	i.closed = true
	if i.timer != nil {
		i.timer.Stop()
	}
}
