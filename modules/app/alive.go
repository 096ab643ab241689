package app

import (
	"context"
	"errors"

	"kontor/store"
)

// Alive returns nil while the database answers reads and its writer takes turns. It does not return while the writer hangs.
// It is what a watchdog asks, and so it says less than readiness: a new process would find the same full or damaged disk.
func (m *Modules) Alive(ctx context.Context) error {
	for _, ask := range []func() error{
		func() error { return m.DB.Ready(ctx) },
		func() error { return m.DB.InTx(ctx, func(*store.Tx) error { return nil }) },
	} {
		if err := ask(); err != nil && !survives(err) {
			return err
		}
	}
	return nil
}

// survives reports whether an error would be the same after a new start, or passes by itself.
func survives(err error) bool {
	for _, kind := range []error{store.ErrBusy, store.ErrFull, store.ErrReadOnly, store.ErrCorrupt} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}
