package sqlite_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"kontor/store"
	"kontor/store/storetest"
)

func TestInTx_FailingClosureRollsBackAlone(t *testing.T) {
	db := open(t)
	ctx := t.Context()
	refused := errors.New("refused")
	free := hold(t, db)
	good := enqueue(db, func(tx *store.Tx) error { return storetest.InsertRole(ctx, tx, "good") })
	bad := enqueue(db, func(tx *store.Tx) error {
		if err := storetest.InsertRole(ctx, tx, "bad"); err != nil {
			return err
		}
		tx.Audit(store.AuditEntry{Action: "bad"})
		tx.AfterCommit(func() { t.Error("hook of a closure that failed was called") })
		return refused
	})
	alsoGood := enqueue(db, func(tx *store.Tx) error { return storetest.InsertRole(ctx, tx, "also good") })
	before := db.Stats().Commits
	free()
	if err := <-good; err != nil {
		t.Error(err)
	}
	if err := <-bad; !errors.Is(err, refused) {
		t.Errorf("got %v, want the closure's own error", err)
	}
	if err := <-alsoGood; err != nil {
		t.Error(err)
	}
	if n := db.Stats().Commits - before; n != 1 {
		t.Errorf("%d commits, want one for the group", n)
	}
	if n := storetest.CountRoles(t, db); n != 2 {
		t.Errorf("%d rows, want 2", n)
	}
	if n, err := db.VerifyAudit(ctx); n != 0 || err != nil {
		t.Errorf("%d audit entries, err %v: the failed closure left one", n, err)
	}
}

func TestInTx_PanicReachesItsCallerOnly(t *testing.T) {
	db := open(t)
	ctx := t.Context()
	free := hold(t, db)
	good := enqueue(db, func(tx *store.Tx) error { return storetest.InsertRole(ctx, tx, "good") })
	caught := make(chan any, 1)
	go func() {
		defer func() { caught <- recover() }()
		db.InTx(ctx, func(tx *store.Tx) error {
			storetest.InsertRole(ctx, tx, "bad")
			panic("boom")
		})
	}()
	free()
	if v := <-caught; !strings.HasPrefix(fmt.Sprint(v), "boom") {
		t.Errorf("caller got %v, want the panic", v)
	}
	if err := <-good; err != nil {
		t.Error(err)
	}
	if n := storetest.CountRoles(t, db); n != 1 {
		t.Errorf("%d rows, want 1", n)
	}
}

func TestInTx_SurvivesGoexit(t *testing.T) {
	db := open(t)
	ctx := t.Context()
	err := db.InTx(ctx, func(tx *store.Tx) error {
		storetest.InsertRole(ctx, tx, "lost")
		runtime.Goexit() // as t.FailNow does
		return nil
	})
	if err == nil {
		t.Error("no error for a closure that never returned")
	}
	if err := db.InTx(ctx, func(tx *store.Tx) error { return storetest.InsertRole(ctx, tx, "later") }); err != nil {
		t.Errorf("the writer is gone: %v", err)
	}
	if n := storetest.CountRoles(t, db); n != 1 {
		t.Errorf("%d rows, want 1", n)
	}
}

func TestInTx_FailedStatementFailsTheClosure(t *testing.T) {
	db := open(t)
	ctx := t.Context()
	err := db.InTx(ctx, func(tx *store.Tx) error {
		storetest.InsertRole(ctx, tx, "a")
		storetest.InsertRole(ctx, tx, "a") // its error is dropped
		return nil
	})
	if !errors.Is(err, store.ErrDuplicate) {
		t.Errorf("got %v, want ErrDuplicate", err)
	}
	if n := storetest.CountRoles(t, db); n != 0 {
		t.Errorf("%d rows, want none", n)
	}
}

func TestClose_AnswersWhatItTookInAndRefusesTheRest(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	db := open(t)
	ctx := t.Context()
	free := hold(t, db)
	waiting := enqueue(db, func(tx *store.Tx) error { return storetest.InsertRole(ctx, tx, "a") })
	closed := make(chan error)
	go func() { closed <- db.Close() }()
	free()
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if err := <-waiting; err != nil && !errors.Is(err, store.ErrClosed) {
		t.Error(err)
	}
	if err := db.InTx(ctx, func(*store.Tx) error { return nil }); !errors.Is(err, store.ErrClosed) {
		t.Errorf("InTx gives %v, want ErrClosed", err)
	}
	if err := db.QueryRow(ctx, "SELECT 1").Scan(new(int)); !errors.Is(err, store.ErrClosed) {
		t.Errorf("QueryRow gives %v, want ErrClosed", err)
	}
	if err := db.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

func TestCheckpoint_ComesWhenNothingIsWritten(t *testing.T) {
	db := open(t)
	ctx := t.Context()
	if err := db.InTx(ctx, func(tx *store.Tx) error { return storetest.InsertRole(ctx, tx, "a") }); err != nil {
		t.Fatal(err)
	}
	for db.Stats().Checkpoints == 0 {
		if t.Context().Err() != nil {
			t.Fatal("the log was never copied")
		}
		runtime.Gosched()
	}
}
