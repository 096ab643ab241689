package sqlite_test

import (
	"errors"
	"runtime"
	"testing"

	"go.uber.org/goleak"

	"kontor/store"
	"kontor/store/storetest"
)

func TestInTx_FailedJobIsUndoneAlone(t *testing.T) {
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
		tx.AfterCommit(func() { t.Error("hook of a job that failed was called") })
		return refused
	})
	alsoGood := enqueue(db, func(tx *store.Tx) error { return storetest.InsertRole(ctx, tx, "also good") })
	before := db.Stats().Commits
	free()
	if err := <-good; err != nil {
		t.Error(err)
	}
	if err := <-bad; !errors.Is(err, refused) {
		t.Errorf("got %v, want the job's own error", err)
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
		t.Errorf("%d audit entries, err %v: the failed job left one", n, err)
	}
}

func TestClose_AnswersAcceptedJobsAndRejectsOthers(t *testing.T) {
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

func TestCheckpoint_RunsWhenNothingIsWritten(t *testing.T) {
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
