package jobs

import (
	"fmt"
	"log/slog"
	"runtime/debug"
)

// Loop calls step until it reports that no more work comes. It records the goroutine that does so. When that goroutine ends early
// (a panic in step, or runtime.Goexit in a job), abandon answers what was begun, and another goroutine continues.
func (g *Goroutine) Loop(step func() (more bool), abandon func(error), log *slog.Logger) {
	finished := false
	g.SetCurrent()
	defer func() {
		if finished {
			return
		}
		cause := recover()
		if cause == nil {
			cause = "its goroutine was ended"
		}
		log.Error("the goroutine of the writer ended; another one continues", "cause", cause, "stack", string(debug.Stack()))
		abandon(fmt.Errorf("transaction was not finished: %v", cause))
		go g.Loop(step, abandon, log)
	}()
	for step() {
	}
	finished = true
}
