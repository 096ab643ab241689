package sqlite_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kontor/store"
	"kontor/store/audittrail"
	"kontor/store/backup"
	"kontor/store/inspect"
	"kontor/store/sqlite"
	"kontor/store/storetest"
)

// crashed creates a data directory whose process has not closed the database. It has 10 commits; the first ones, as many as
// copied says, are in the database file and not only in the log.
func crashed(t *testing.T, copied int) string {
	t.Helper()
	db := openDir(t, storetest.Dir(t))
	engineOf(db).HoldCheckpoints()
	for n := range 10 {
		if n == copied {
			engineOf(db).Checkpoint()
		}
		storetest.Audit(t, db, 1)
	}
	if copied == 10 {
		engineOf(db).Checkpoint()
	}
	return copyDir(t, db.Dir())
}

// copyDir copies a data directory, without the files that only a running process needs.
func copyDir(t *testing.T, from string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.Chmod(to, 0o700); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() == "kontor.lock" || strings.HasSuffix(e.Name(), "-shm") || e.IsDir() {
			continue
		}
		data, err := os.ReadFile(filepath.Join(from, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, e.Name()), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// edit changes a file, or deletes it when change returns nil.
func edit(t *testing.T, path string, change func([]byte) []byte) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if data = change(data); data == nil {
		err = os.Remove(path)
	} else {
		err = os.WriteFile(path, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func remove([]byte) []byte { return nil }

func flip(at func(length int) int) func([]byte) []byte {
	return func(b []byte) []byte {
		b[at(len(b))] ^= 1
		return b
	}
}

func TestMark_NamesTheLoss(t *testing.T) {
	for _, c := range []struct {
		name    string
		copied  int // commits that are in the database file
		file    string
		change  func([]byte) []byte
		commits int64 // that are missing
		says    string
	}{
		{"log removed", 4, "kontor.db-wal", remove, 6, "kontor.db-wal is missing"},
		{"log emptied", 4, "kontor.db-wal", func(b []byte) []byte { return b[:0] }, 6, "kontor.db-wal is missing or empty"},
		{"log cut off", 0, "kontor.db-wal", func(b []byte) []byte { return b[:len(b)/2] }, -1, "was cut off"},
		{"log cut off in its header", 0, "kontor.db-wal", func(b []byte) []byte { return b[:20] }, 10, "is damaged after its 0 frames"},
		{"log header damaged", 0, "kontor.db-wal", flip(func(int) int { return 17 }), 10, "is damaged after its 0 frames"},
		{"first frame damaged", 0, "kontor.db-wal", flip(func(int) int { return 100 }), -1, "is damaged after its 0 frames"},
		{"middle damaged", 0, "kontor.db-wal", flip(func(n int) int { return n / 2 }), -1, "intact frames"},
		{"last frame damaged", 0, "kontor.db-wal", flip(func(n int) int { return n - 10 }), 1, "was cut off"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := crashed(t, c.copied)
			edit(t, filepath.Join(dir, c.file), c.change)
			before := copyDir(t, dir)
			expectRejected(t, store.Options{Dir: dir}, store.ErrLoss, c.says, "--accept-loss")
			for _, name := range []string{"kontor.db", "kontor.db-wal", "kontor.mark"} {
				was, _ := os.ReadFile(filepath.Join(before, name))
				is, _ := os.ReadFile(filepath.Join(dir, name))
				if !bytes.Equal(was, is) {
					t.Errorf("the rejected start has changed %s", name)
				}
			}
			if _, err := inspect.Check(t.Context(), inspect.Source{Dir: dir}, nil); !errors.Is(err, store.ErrLoss) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("the check says %v, want %q", err, c.says)
			}

			db, err := store.Open(t.Context(), store.Options{Dir: dir, AcceptLoss: true})
			if err != nil {
				t.Fatal(err)
			}
			var actions int
			if err := db.QueryRow(t.Context(), "SELECT COUNT(*) FROM audit_entries WHERE action = 'database.accept_loss'").Scan(&actions); err != nil || actions != 1 {
				t.Errorf("%d audit entries about the loss, %v", actions, err)
			}
			entries, err := db.VerifyAudit(t.Context())
			if missing := 11 - entries; err != nil || c.commits >= 0 && missing != c.commits {
				t.Errorf("%d entries are missing, want %d; %v", missing, c.commits, err)
			}
			if err := db.Close(); err != nil {
				t.Error(err)
			}
			openDir(t, dir) // a loss is accepted once
		})
	}
}

// Unacknowledged writes may be missing: an interrupted commit, and a log whose content is in the database.
func TestMark_AcceptsTheLossOfUnacknowledgedWrites(t *testing.T) {
	for name, prepare := range map[string]func(t *testing.T) (dir string){
		"nothing happened": func(t *testing.T) string { return crashed(t, 3) },
		"log of which everything was copied": func(t *testing.T) string {
			dir := crashed(t, 10)
			edit(t, filepath.Join(dir, "kontor.db-wal"), remove)
			return dir
		},
		"torn tail": func(t *testing.T) string {
			db := openDir(t, storetest.Dir(t))
			storetest.Audit(t, db, 3)
			engineOf(db).HoldCheckpoints()
			marked, err := os.ReadFile(filepath.Join(db.Dir(), "kontor.mark"))
			if err != nil {
				t.Fatal(err)
			}
			storetest.Audit(t, db, 1) // the process ends before this one is synced
			dir := copyDir(t, db.Dir())
			edit(t, filepath.Join(dir, "kontor.mark"), func([]byte) []byte { return marked })
			edit(t, filepath.Join(dir, "kontor.db-wal"), func(b []byte) []byte { return b[:len(b)-3000] })
			return dir
		},
		"old mark, as after a loss of power": func(t *testing.T) string {
			db := openDir(t, storetest.Dir(t))
			engineOf(db).HoldCheckpoints() // a copy of files that change meanwhile is no state of a disk
			marked, err := os.ReadFile(filepath.Join(db.Dir(), "kontor.mark"))
			if err != nil {
				t.Fatal(err)
			}
			storetest.Audit(t, db, 5)
			dir := copyDir(t, db.Dir())
			edit(t, filepath.Join(dir, "kontor.mark"), func([]byte) []byte { return marked })
			return dir
		},
		"no mark, as of an earlier version": func(t *testing.T) string {
			dir := crashed(t, 3)
			edit(t, filepath.Join(dir, "kontor.mark"), remove)
			return dir
		},
		"closed in order and copied without its mark": func(t *testing.T) string {
			dir := storetest.Dir(t)
			db := openDir(t, dir)
			storetest.Audit(t, db, 3)
			db.Close()
			edit(t, filepath.Join(dir, "kontor.mark"), remove)
			return dir
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := prepare(t)
			db := openDir(t, dir)
			storetest.Audit(t, db, 1)
			if err := db.Close(); err != nil {
				t.Error(err)
			}
			if report, err := inspect.Check(t.Context(), inspect.Source{Dir: dir}, nil); err != nil || !report.MarkChecked {
				t.Errorf("check: %+v, %v", report, err)
			}
		})
	}
}

// A database that replaces a newer one is rejected, whatever it contains.
func TestMark_RejectsARolledBackDatabase(t *testing.T) {
	dir := storetest.Dir(t)
	db := openDir(t, dir)
	storetest.Audit(t, db, 3)
	db.Close()
	old := copyDir(t, dir)
	db = openDir(t, dir)
	storetest.Audit(t, db, 4)
	db.Close()
	roll := func(t *testing.T, statements ...string) string {
		t.Helper()
		rolled := copyDir(t, dir)
		data, err := os.ReadFile(filepath.Join(old, "kontor.db"))
		if err != nil {
			t.Fatal(err)
		}
		edit(t, filepath.Join(rolled, "kontor.db"), func([]byte) []byte { return data })
		if len(statements) > 0 {
			run(t, rolled, statements...)
		}
		return rolled
	}
	expectRejected(t, store.Options{Dir: roll(t)}, store.ErrLoss, "kontor.db is older", "4 commits with 4 audit entries")
	expectRejected(t, store.Options{Dir: roll(t, "UPDATE meta SET value = '9 clean 00' WHERE name = 'commits'")}, store.ErrLoss, "kontor.db is older")

	gone := copyDir(t, dir)
	edit(t, filepath.Join(gone, "kontor.db"), remove)
	key, err := os.ReadFile(filepath.Join(gone, "secret.key"))
	if err != nil {
		t.Fatal(err)
	}
	edit(t, filepath.Join(gone, "secret.key"), remove)
	expectRejected(t, store.Options{Dir: gone, SecretKey: string(key)}, store.ErrLoss, "kontor.db is missing")
}

// Without mark and log it is unknown whether a database that was in use is complete.
func TestMark_RejectsADatabaseWithoutMarkAndLog(t *testing.T) {
	dir := crashed(t, 4)
	edit(t, filepath.Join(dir, "kontor.db-wal"), remove)
	edit(t, filepath.Join(dir, "kontor.mark"), remove)
	expectRejected(t, store.Options{Dir: dir}, store.ErrLoss, "kontor.mark is missing")
	if _, err := inspect.Check(t.Context(), inspect.Source{Dir: dir}, nil); !errors.Is(err, store.ErrLoss) || !strings.Contains(err.Error(), "kontor.mark is missing") {
		t.Errorf("the check says %v", err)
	}
}

// The check finds a damaged log even when the mark, as after a loss of power, is older than the damage.
func TestCheck_FindsADamagedLogWithoutTheMark(t *testing.T) {
	dir := crashed(t, 0)
	edit(t, filepath.Join(dir, "kontor.mark"), remove)
	edit(t, filepath.Join(dir, "kontor.db-wal"), flip(func(n int) int { return n / 2 }))
	expectRejected(t, store.Options{Dir: dir}, store.ErrLoss, "intact frames")
	if _, err := inspect.Check(t.Context(), inspect.Source{Dir: dir}, nil); !errors.Is(err, store.ErrLoss) || !strings.Contains(err.Error(), "intact frames") {
		t.Errorf("the check says %v", err)
	}
}

// The two slots are written in turn: a damaged one leaves the other.
func TestMark_OneSlotIsEnough(t *testing.T) {
	for _, at := range []int{20, 4096 + 20} {
		dir := crashed(t, 4)
		edit(t, filepath.Join(dir, "kontor.mark"), flip(func(int) int { return at }))
		openDir(t, dir).Close()
		dir = crashed(t, 4)
		edit(t, filepath.Join(dir, "kontor.mark"), flip(func(int) int { return at }))
		edit(t, filepath.Join(dir, "kontor.db-wal"), remove)
		expectRejected(t, store.Options{Dir: dir}, store.ErrLoss, "kontor.db-wal")
	}
}

func TestMark_IsRestoredWithABackup(t *testing.T) {
	db := open(t)
	storetest.Audit(t, db, 5)
	file := filepath.Join(t.TempDir(), "a.backup")
	if _, err := backup.Create(t.Context(), inspect.Source{Dir: db.Dir()}, file, backup.Options{WithKey: true}); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "data")
	if _, err := backup.Restore(t.Context(), []string{file}, inspect.Source{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	if report, err := inspect.Check(t.Context(), inspect.Source{Dir: dir}, nil); err != nil || !report.MarkChecked {
		t.Errorf("check: %+v, %v", report, err)
	}
	storetest.Audit(t, openDir(t, dir), 1)
}

func FuzzMark(f *testing.F) {
	f.Add([]byte("kontorm1"))
	f.Add(sqlite.EncodedMark(7, 3))
	f.Fuzz(func(t *testing.T, data []byte) {
		if commits, ok := sqlite.DecodedMark(data); ok && (commits != 3 || !bytes.HasPrefix(data, sqlite.EncodedMark(7, 3))) {
			t.Errorf("a mark that was never written was accepted: %d commits", commits)
		}
	})
}

// runOutside changes a closed database without updating the checksums.
func runOutside(t *testing.T, dir, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, "kontor.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

// A change by another program leaves a page with a wrong checksum. The check names the change as well as the page.
func TestCheck_NamesChangesByAnotherProgram(t *testing.T) {
	errChanged := errors.New("the record differs")
	for _, c := range []struct {
		statement string
		want      error
	}{
		{"UPDATE roles SET name = 'x' || name WHERE id = 'role 250'", errChanged},
		{"DELETE FROM meta WHERE name = 'audit_head'", nil},
		{"UPDATE roles SET description = 'y' WHERE id = 'role 250'", store.ErrCorrupt},
	} {
		dir := filled(t)
		runOutside(t, dir, c.statement)
		_, err := inspect.Check(t.Context(), inspect.Source{Dir: dir}, func(ctx context.Context, e *audittrail.Evidence) error {
			var name string
			if err := e.QueryRow(ctx, "SELECT name FROM roles WHERE id = 'role 250'").Scan(&name); err != nil {
				return err
			}
			if name != "role 250" {
				return fmt.Errorf("roles/role 250: %w", errChanged)
			}
			return nil
		})
		var broken *audittrail.Break
		if !errors.Is(err, store.ErrCorrupt) || c.want != nil && !errors.Is(err, c.want) || c.want == nil && !errors.As(err, &broken) {
			t.Errorf("%s: the check says %v", c.statement, err)
		}
		if err != nil && strings.Contains(err.Error(), "no such file") {
			t.Errorf("%s: the error of another call is in %v", c.statement, err)
		}
	}
}

// A check and a backup say what to do after an interrupted restore or first start.
func TestCheck_NamesAnInterruptedRestore(t *testing.T) {
	for name, says := range map[string]string{
		"kontor.db.restoring": "was interrupted: run it again",
		"kontor.db.new":       "was cut off: start the server once",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := inspect.Check(t.Context(), inspect.Source{Dir: dir}, nil); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("the check says %v", err)
		}
		_, err := backup.Create(t.Context(), inspect.Source{Dir: dir}, filepath.Join(t.TempDir(), "x.backup"), backup.Options{})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("the backup says %v", err)
		}
	}
}

// A closed database in a read-only directory can be checked and backed up.
func TestCheck_InADirectoryThatCannotBeWritten(t *testing.T) {
	if os.Geteuid() == 0 { // permissions do not apply to the superuser
		runAsNobody(t)
		return
	}
	dir := filled(t)
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(dir, 0o700)
	if _, err := inspect.Check(t.Context(), inspect.Source{Dir: dir}, nil); err != nil {
		t.Errorf("check: %v", err)
	}
	if _, err := backup.Create(t.Context(), inspect.Source{Dir: dir}, filepath.Join(t.TempDir(), "x.backup"), backup.Options{}); err != nil {
		t.Errorf("backup: %v", err)
	}
}
