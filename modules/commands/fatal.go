package commands

import (
	"fmt"
	"os"
	"time"
)

// fatalWait bounds how long the last line may take: a standard error that nobody reads must not keep the process alive.
const fatalWait = time.Second

// fatal returns what the store calls when a data file could not be written or synced: it writes one line and ends the
// process with 1. Nothing else is run, because everything that writes would do so on a disk that has failed. The log is
// closed first, so that none of its lines is cut in two by the last one.
func (p Process) fatal(closeLog func() error) func(error) {
	return func(err error) {
		written := make(chan struct{})
		go func() {
			_ = closeLog() // the process ends anyway
			p.fail(fmt.Errorf("%w; stopped at once, start again to go on with what the disk has", err))
			close(written)
		}()
		select {
		case <-written:
		case <-time.After(fatalWait):
		}
		os.Exit(1)
	}
}
