package app_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"kontor/modules/app"
	"kontor/store"
	"kontor/store/storetest"
)

func TestAlive_HangsWithTheWriter(t *testing.T) {
	if storetest.SQLiteOnly(t, "testing/synctest cannot wait for a connection") {
		return
	}
	synctest.Test(t, func(t *testing.T) {
		m := &app.Modules{DB: storetest.Open(t)}
		if err := m.Alive(t.Context()); err != nil {
			t.Fatal(err)
		}
		hold, held := make(chan struct{}), make(chan error, 1)
		go func() {
			held <- m.DB.InTx(t.Context(), func(*store.Tx) error { <-hold; return nil })
		}()
		synctest.Wait()
		alive := make(chan error, 1)
		go func() { alive <- m.Alive(t.Context()) }()
		synctest.Wait()
		select {
		case err := <-alive:
			t.Fatalf("Alive returned %v while the writer hangs", err)
		default:
		}
		close(hold)
		if err := errors.Join(<-held, <-alive); err != nil {
			t.Error(err)
		}
	})
}
