package commands

import (
	"fmt"
	"os"
	"time"
)

// fatalTimeout bounds writing the last line: a blocked standard error must not keep the process alive.
const fatalTimeout = time.Second

// fatal returns the function that the store calls when it could not write or sync a data file. The function prints one line
// and exits with 1. No deferred function runs, because it might write to the disk that has failed. The log is closed first,
// so that the last line does not split one of its lines.
func (p Process) fatal(closeLog func() error) func(error) {
	return func(err error) {
		written := make(chan struct{})
		go func() {
			_ = closeLog() // the process ends anyway
			p.fail(fmt.Errorf("%w; the process was stopped at once, start it again to continue with the data on the disk", err))
			close(written)
		}()
		select {
		case <-written:
		case <-time.After(fatalTimeout):
		}
		os.Exit(1)
	}
}
