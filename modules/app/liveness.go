package app

import (
	"context"
	"errors"

	"kontor/store"
)

// Alive returns nil while the database serves reads and its writer makes progress. It does not return while the writer
// hangs. The watchdog calls it. Unlike readiness, it ignores errors that a restart does not repair, such as a full disk.
func (m *Modules) Alive(ctx context.Context) error {
	for _, probe := range []func() error{
		func() error { return m.DB.Ready(ctx) },
		func() error { return m.DB.InTx(ctx, func(*store.Tx) error { return nil }) },
	} {
		if err := probe(); err != nil && !outlastsRestart(err) {
			return err
		}
	}
	return nil
}

// outlastsRestart reports whether an error would occur again after a restart, or passes by itself.
func outlastsRestart(err error) bool {
	for _, kind := range []error{store.ErrBusy, store.ErrFull, store.ErrReadOnly, store.ErrCorrupt, store.ErrNewerSchema} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}
