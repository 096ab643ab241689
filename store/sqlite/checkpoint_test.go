package sqlite_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kontor/store"
	"kontor/store/storetest"
)

// A log that another program keeps in use is logged once, and again when it is within its limit.
func TestLog_AlarmAboutItsSize(t *testing.T) {
	var log lockedLog
	const limit = 200 << 10
	db, err := openWith(t.Context(), store.Options{Dir: storetest.Dir(t), LogLimit: limit, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	engineOf(db).HoldCheckpoints()
	storetest.Audit(t, db, 1)
	err = db.View(t.Context(), func(v *store.View) error {
		var n int
		if err := v.QueryRow(t.Context(), "SELECT COUNT(*) FROM roles").Scan(&n); err != nil {
			return err
		}
		for range 50 {
			storetest.Audit(t, db, 1)
			engineOf(db).Checkpoint()
		}
		s := db.Stats()
		if err := db.CheckLog(t.Context()); err == nil || !s.LogOverLimit || s.LogBytes <= limit || s.LogUncopied == 0 {
			t.Errorf("with a reader that stays: %+v, check %v", s, err)
		}
		if err := db.Ready(t.Context()); err != nil {
			t.Errorf("not ready: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	engineOf(db).Checkpoint()
	storetest.Audit(t, db, 1)
	storetest.Audit(t, db, 1) // before it, the writer has looked at the log after the first one
	s := db.Stats()
	if err := db.CheckLog(t.Context()); err != nil || s.LogOverLimit {
		t.Errorf("without the reader: %+v, check %v", s, err)
	}
	if s.Sync.Count < 50 || s.Sync.Total < s.Sync.Last || s.Checkpoint.Count == 0 || s.Checkpoint.Total <= 0 {
		t.Errorf("syncs %+v, checkpoints %+v", s.Sync, s.Checkpoint)
	}
	for text, want := range map[string]int{"is larger than its limit": 1, "within its limit again": 1} {
		if n := strings.Count(log.String(), text); n != want {
			t.Errorf("the log says %q %d times, want %d", text, n, want)
		}
	}
}

// A start copies the log into the database and empties it before it serves.
func TestOpen_EmptiesTheLog(t *testing.T) {
	dir := crashed(t, 0)
	path := filepath.Join(dir, "kontor.db-wal")
	if info, err := os.Stat(path); err != nil || info.Size() == 0 {
		t.Fatalf("there is no log to be emptied: %v", err)
	}
	db := openDir(t, dir)
	if info, err := os.Stat(path); err != nil || info.Size() != 0 {
		t.Errorf("after the start the log has %d bytes, %v", info.Size(), err)
	}
	if n, err := db.VerifyAudit(t.Context()); err != nil || n != 10 {
		t.Errorf("%d entries, %v", n, err)
	}
}
