package sqlite

import (
	"fmt"
	"os"
	"sync/atomic"

	"kontor/store/engine"
	"kontor/store/sqlite/internal/binding"
)

// disk ends the process when a write or a sync of a data file has failed.
//
// After such a failure the content of the disk is unknown: the system discards pages that it could not write, a second sync
// succeeds without them, and a checkpoint or a new log would make the damage permanent. So no file is changed any more, not
// even at exit, and no write is acknowledged. The next start reads what the disk has.
type disk struct {
	watch   binding.Watch
	failure atomic.Pointer[error]
	serving atomic.Bool // before that, the start fails with the error
	fatal   func(error)
}

func newDisk(fatal func(error)) *disk {
	d := &disk{fatal: fatal}
	if fatal == nil {
		d.fatal = exit
	}
	d.watch.Failed = func(err *binding.IOError) {
		if err.Op != binding.Read {
			_ = d.fail(err) // SQLite reports its own error to the caller
		}
	}
	return d
}

// fail stops all writing after a failed write or sync. It returns the error for callers that wait, when the process
// does not end.
func (d *disk) fail(cause error) error {
	d.watch.Stop()
	err := fmt.Errorf("%w: %w", engine.ErrIO, cause)
	if !d.failure.CompareAndSwap(nil, &err) {
		return *d.failure.Load()
	}
	if d.serving.Load() {
		d.fatal(err)
	}
	return err
}

// err returns the failure, or nil.
func (d *disk) err() error {
	if failure := d.failure.Load(); failure != nil {
		return *failure
	}
	return nil
}

// prefer returns the failure of the disk, if there is one, instead of an error that it caused.
func (d *disk) prefer(err error) error {
	if failure := d.err(); failure != nil && err != nil {
		return failure
	}
	return err
}

// exit prints one line and ends the process without running anything else.
func exit(err error) {
	fmt.Fprintf(os.Stderr, "kontor: %v\n", err)
	os.Exit(1)
}
