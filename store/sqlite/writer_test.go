package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"kontor/store"
	"kontor/store/sqlite"
	"kontor/store/storetest"
	"kontor/store/testenv"
)

func TestInTx_FailedJobIsUndoneAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
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
	})
}

// The bubble fails the test when a goroutine of the database does not end.
func TestClose_AnswersAcceptedJobsAndRejectsOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
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
	})
}

func TestCheckpoint_RunsWhenNothingIsWritten(t *testing.T) {
	db := open(t)
	ctx := t.Context()
	if err := db.InTx(ctx, func(tx *store.Tx) error { return storetest.InsertRole(ctx, tx, "a") }); err != nil {
		t.Fatal(err)
	}
	testenv.Wait(t, "a copy of the log", func() bool { return db.Stats().Checkpoints > 0 })
}

// A view whose context ends leaves its reader outside a transaction. SQLite checks the context only every few thousand
// steps, so it takes many views until a rollback is the step that checks.
func TestView_CancelledLeavesItsReaderUsable(t *testing.T) {
	db := open(t)
	for range 8000 {
		ctx, cancel := context.WithCancel(t.Context())
		err := db.View(ctx, func(v *store.View) error {
			err := v.QueryRow(ctx, "SELECT count(*) FROM roles").Scan(new(int))
			cancel()
			return err
		})
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		cancel()
	}
	allReadersSeeWrites(t, db, "after the cancelled views")
}

// The same holds for a query that is interrupted in a view, and for rows that were never closed.
func TestView_EndedInAQueryLeavesItsReaderUsable(t *testing.T) {
	db := open(t)
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		err := db.View(ctx, func(v *store.View) error {
			rows, err := v.Query(ctx, endless)
			if err != nil {
				return err
			}
			cancel()
			for rows.Next() { // never closed
			}
			return rows.Err()
		})
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v, want context.Canceled", err)
		}
	}
	allReadersSeeWrites(t, db, "after the cancelled queries")
}

// A reader that cannot leave its transaction is replaced.
func TestView_ReaderThatKeepsItsTransactionIsReplaced(t *testing.T) {
	db := open(t)
	engineOf(db).OnRollback(func() error { return errors.New("rollback failed") })
	for range 2 * sqlite.Readers {
		err := db.View(t.Context(), func(v *store.View) error {
			return v.QueryRow(t.Context(), "SELECT count(*) FROM roles").Scan(new(int))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	allReadersSeeWrites(t, db, "after the failed rollbacks")
}

// endless returns rows without an end.
const endless = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n`

// allReadersSeeWrites writes a row and reads it with each reader at the same time.
func allReadersSeeWrites(t *testing.T, db *store.DB, when string) {
	t.Helper()
	if err := db.InTx(t.Context(), func(tx *store.Tx) error { return storetest.InsertRole(t.Context(), tx, when) }); err != nil {
		t.Fatal(err)
	}
	for i := range sqlite.Readers {
		rows, err := db.Query(t.Context(), "SELECT name FROM roles WHERE name = $1 UNION ALL SELECT 'more'", when)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		var name string
		if !rows.Next() {
			t.Fatal(rows.Err())
		}
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		if name != when {
			t.Errorf("%s, reader %d does not see a new row", when, i)
		}
	}
}

// hold keeps the writer busy in a job until the returned function is called, which waits for the end of the job.
func hold(t *testing.T, db *store.DB) (free func()) {
	t.Helper()
	begun, end, done := make(chan struct{}), make(chan struct{}), make(chan error)
	begin := sync.OnceFunc(func() { close(begun) }) // the job may run twice
	go func() {
		done <- db.InTx(context.Background(), func(*store.Tx) error {
			begin()
			<-end
			return nil
		})
	}()
	<-begun
	return sync.OnceFunc(func() {
		close(end)
		if err := <-done; err != nil {
			t.Errorf("job that held the writer: %v", err)
		}
	})
}

// enqueue calls InTx in a goroutine of its own and returns when the job waits in the queue. It needs a bubble, whose clock stands still:
// jobs that wait for long do not share a group.
func enqueue(db *store.DB, fn func(tx *store.Tx) error) (result chan error) {
	result = start(context.Background(), db, fn)
	synctest.Wait()
	return result
}

// All jobs that come during a sync are committed together.
func TestInTx_CommitsInGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const jobs = 100
		db := open(t)
		ctx := t.Context()
		disk := newSlowDisk(db)
		results := []chan error{start(ctx, db, func(tx *store.Tx) error { return storetest.InsertRole(ctx, tx, "first") })}
		<-disk.asked
		for i := range jobs {
			results = append(results, start(ctx, db, func(tx *store.Tx) error { return storetest.InsertRole(ctx, tx, fmt.Sprint(i)) }))
		}
		synctest.Wait()
		disk.done <- struct{}{}
		<-disk.asked
		disk.done <- struct{}{}
		for _, result := range results {
			if err := <-result; err != nil {
				t.Error(err)
			}
		}
		if n := storetest.CountRoles(t, db); n != 1+jobs {
			t.Errorf("%d rows, want %d", n, 1+jobs)
		}
		if s := db.Stats(); s.Writes != 1+jobs || s.Commits != 2 {
			t.Errorf("%d commits for %d writes, want 2 for %d", s.Commits, s.Writes, 1+jobs)
		}
	})
}

func TestInTx_RejectsWhenTooManyWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := open(t)
		ctx := t.Context()
		free := hold(t, db)
		defer free()
		var wg sync.WaitGroup
		for range sqlite.QueueLength {
			wg.Go(func() {
				if err := db.InTx(ctx, func(*store.Tx) error { return nil }); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		err := db.InTx(ctx, func(*store.Tx) error { return nil })
		if !errors.Is(err, store.ErrBusy) || !store.Temporary(err) {
			t.Errorf("got %v, want ErrBusy", err)
		}
		free()
		wg.Wait()
		if n := db.Stats().Refused; n != 1 {
			t.Errorf("%d rejected, want 1", n)
		}
	})
}

// by returns a context of a caller.
func by(t *testing.T, caller string) context.Context {
	return context.WithValue(t.Context(), store.CallerKey{}, caller)
}

// slow runs n endless queries of a caller and returns when each has a reader. The results come as the queries end.
func slow(ctx context.Context, t *testing.T, db *store.DB, n int) (results chan error) {
	t.Helper()
	results = make(chan error, n)
	var running sync.WaitGroup
	for range n {
		running.Add(1)
		go func() {
			results <- db.View(ctx, func(v *store.View) error {
				running.Done()
				return v.QueryRow(ctx, "SELECT count(*) FROM ("+endless+")").Scan(new(int))
			})
		}()
	}
	running.Wait()
	return results
}

// While no other caller waits, one caller may use all readers without a limit. Queries without a caller are never ended.
func TestReaders_OnlyCallersThatBlockOthersAreLimited(t *testing.T) {
	for holder, waits := range map[string]string{"greedy": "greedy", "": "user"} {
		t.Run("held by "+holder, func(t *testing.T) {
			db := open(t)
			ctx, cancel := context.WithCancel(by(t, holder))
			results := slow(ctx, t, db, sqlite.Readers)
			further := make(chan error, 1)
			waiting, leave := context.WithCancel(by(t, waits))
			go func() { further <- db.QueryRow(waiting, "SELECT 1").Scan(new(int)) }()
			testenv.Wait(t, "a query that waits", func() bool { return db.Stats().Readers > 0 })
			engineOf(db).EnforceShares(waits)
			leave()
			if err := <-further; !errors.Is(err, context.Canceled) {
				t.Errorf("the query that waited got %v", err)
			}
			cancel() // not before: the query that waits may prefer a reader to the end of its context
			for range sqlite.Readers {
				if err := <-results; !errors.Is(err, context.Canceled) {
					t.Errorf("got %v, want context.Canceled", err)
				}
			}
			if n := db.Stats().Revoked; n != 0 {
				t.Errorf("%d queries were ended", n)
			}
		})
	}
}

// The waiting queries of one caller are bounded, which does not affect other callers.
func TestReaders_BoundTheWaitingQueriesOfOneCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := open(t)
		var held []*store.Rows
		for range sqlite.Readers {
			rows, err := db.Query(by(t, "flood"), "SELECT 1 UNION ALL SELECT 2")
			if err != nil {
				t.Fatal(err)
			}
			held = append(held, rows)
		}
		var wg sync.WaitGroup
		for range sqlite.MaxWaitingPerCaller {
			wg.Go(func() {
				if err := db.QueryRow(by(t, "flood"), "SELECT 1").Scan(new(int)); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if err := db.QueryRow(by(t, "flood"), "SELECT 1").Scan(new(int)); !errors.Is(err, store.ErrBusy) {
			t.Errorf("got %v, want ErrBusy", err)
		}
		wg.Go(func() {
			if err := db.QueryRow(by(t, "other"), "SELECT 1").Scan(new(int)); err != nil {
				t.Errorf("another caller got %v", err)
			}
		})
		synctest.Wait()
		if n := db.Stats().Readers; n != sqlite.MaxWaitingPerCaller+1 {
			t.Errorf("%d queries wait", n)
		}
		for _, rows := range held {
			rows.Close()
		}
		wg.Wait()
	})
}

// An announcement must cost no more than the function of AfterCommit that it replaces.
func TestAnnounce_AllocatesNoMoreThanAfterCommit(t *testing.T) {
	db := open(t)
	engineOf(db).HoldCheckpoints() // they allocate, too
	key := "some key"
	receive := func(string) {}
	topic := db.Topic("changes", receive)
	count := func(job func(tx *store.Tx)) float64 {
		return testing.AllocsPerRun(200, func() {
			if err := db.InTx(t.Context(), func(tx *store.Tx) error { job(tx); return nil }); err != nil {
				t.Fatal(err)
			}
		})
	}
	local := func() {}
	if with, before := count(func(tx *store.Tx) { tx.Announce(topic, key) }), count(func(tx *store.Tx) { tx.AfterCommit(func() { receive(key) }) }); with > before {
		t.Errorf("Announce allocates %.0f times, AfterCommit %.0f times", with, before)
	}
	if with, before := count(func(tx *store.Tx) { tx.Publish(topic, key, local) }), count(func(tx *store.Tx) { tx.AfterCommit(local) }); with > before {
		t.Errorf("Publish allocates %.0f times, AfterCommit %.0f times", with, before)
	}
}
