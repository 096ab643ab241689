package store

import (
	"fmt"
	"os"
	"sync/atomic"

	"kontor/store/internal/sqlite"
)

// disk ends the process when a write or a sync of a data file has failed.
//
// After that nobody knows what the disk has: the system forgets the pages that it could not write, a second sync reports
// success without them, and a checkpoint or a log that begins anew would make the damage final. So nothing is changed any
// more, not even on the way out, and nobody is told that a write succeeded. The next start reads what the disk has.
type disk struct {
	watch   sqlite.Watch
	lost    atomic.Pointer[error]
	serving atomic.Bool // before that, the start fails with the error
	fatal   func(error)
}

func newDisk(fatal func(error)) *disk {
	d := &disk{fatal: fatal}
	if fatal == nil {
		d.fatal = exit
	}
	d.watch.Failed = func(err *sqlite.IOError) {
		if err.Op != sqlite.Read {
			_ = d.fail(err) // the engine reports its own error to the caller
		}
	}
	return d
}

// fail ends everything because of a failed write or sync. It returns what those get who still wait, when the process
// does not end.
func (d *disk) fail(cause error) error {
	d.watch.Stop()
	err := fmt.Errorf("%w: %w", ErrIO, cause)
	if !d.lost.CompareAndSwap(nil, &err) {
		return *d.lost.Load()
	}
	if d.serving.Load() {
		d.fatal(err)
	}
	return err
}

// err returns the failure, or nil.
func (d *disk) err() error {
	if lost := d.lost.Load(); lost != nil {
		return *lost
	}
	return nil
}

// prefer returns the failure of the disk, when there was one, in the place of an error that came of it.
func (d *disk) prefer(err error) error {
	if lost := d.err(); lost != nil && err != nil {
		return lost
	}
	return err
}

// exit writes one line and ends the process without running anything else.
func exit(err error) {
	fmt.Fprintf(os.Stderr, "kontor: %v\n", err)
	os.Exit(1)
}
