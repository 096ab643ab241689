package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kontor/store"
	"kontor/store/backup"
	"kontor/store/inspect"
	"kontor/store/sqlite/internal/binding"
	"kontor/store/storetest"
	"kontor/store/testenv"
)

// filled creates a closed database of some hundred pages, some of them free, and returns its directory.
func filled(t *testing.T) string {
	t.Helper()
	dir := storetest.Dir(t)
	db := openDir(t, dir)
	storetest.Audit(t, db, 400)
	err := db.InTx(t.Context(), func(tx *store.Tx) error {
		for i := range 300 { // texts of several pages, each on pages of their own
			_, err := tx.Exec(t.Context(), `INSERT INTO roles (id, name, name_key, description, created_at, created_by, modified_at, modified_by)
				VALUES ($1, $1, $1, $2, 0, '', 0, '')`, fmt.Sprint("role ", i), strings.Repeat(fmt.Sprint("page ", i, " "), 1000))
			if err != nil {
				return err
			}
		}
		_, err := tx.Exec(t.Context(), `DELETE FROM roles WHERE id LIKE 'role 1%'`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// content reads all rows of the database, through a mapping or without.
func content(path string, mapped bool) (string, error) {
	conn, err := binding.Open(path, binding.ReadOnly)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if mapped {
		if err := conn.Run("PRAGMA mmap_size = 1000000000"); err != nil {
			return "", err
		}
	}
	var b strings.Builder
	for _, statement := range []string{
		"SELECT id || name || name_key || description FROM roles", "SELECT actor || action || rec_id || hash || seq FROM audit_entries",
		"SELECT rec_id || seq FROM audit_entries ORDER BY rec_id, seq", "SELECT name || value FROM meta",
	} {
		s, err := conn.Prepare(statement)
		if err != nil {
			return "", err
		}
		s.Begin()
		more, err := s.Step()
		for ; more && err == nil; more, err = s.Step() {
			b.WriteString(s.Text(0))
		}
		s.Reset()
		if err != nil {
			return "", err
		}
	}
	return b.String(), nil
}

// A flipped byte anywhere in the file never changes an answer: the rows are read unchanged, or there is an error. The check
// finds each.
func TestDatabase_FlippedByteIsAnError(t *testing.T) {
	dir := filled(t)
	path := filepath.Join(dir, "kontor.db")
	whole, err := content(path, true)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	report, err := inspect.Check(t.Context(), inspect.Source{Dir: dir}, nil)
	if err != nil || report.Pages != int64(len(data)/4096) {
		t.Fatalf("the check compared %d pages of %d: %v", report.Pages, len(data)/4096, err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	random := rand.New(rand.NewPCG(1, 2))
	positions := make([]int, 0, 400)
	for at := 0; at < 100; at += testenv.Rounds(5, 1, 1) {
		positions = append(positions, at) // the header of the file
	}
	for range testenv.Rounds(40, 60, 3000) {
		positions = append(positions, random.IntN(len(data)))
	}
	failed := 0
	for _, at := range positions {
		setByte(t, f, at, data[at]^(1<<random.IntN(8)))
		for _, mapped := range []bool{true, false} {
			got, err := content(path, mapped)
			if err == nil && got != whole {
				t.Fatalf("byte %d of page %d: another answer", at%4096, at/4096+1)
			}
			if err != nil {
				failed++
			}
		}
		if _, err := inspect.Check(t.Context(), inspect.Source{Dir: dir}, nil); !errors.Is(err, store.ErrCorrupt) {
			t.Errorf("byte %d of page %d: the check says %v", at%4096, at/4096+1, err)
		}
		setByte(t, f, at, data[at])
	}
	if failed < len(positions) {
		t.Errorf("%d errors in %d readings: pages that are used go by", failed, 2*len(positions))
	}
}

func setByte(t *testing.T, f *os.File, at int, to byte) {
	t.Helper()
	if _, err := f.WriteAt([]byte{to}, int64(at)); err != nil {
		t.Fatal(err)
	}
}

// Two exchanged pages are noticed although the content of each is correct.
func TestDatabase_ExchangedPagesAreNoticed(t *testing.T) {
	dir := filled(t)
	path := filepath.Join(dir, "kontor.db")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4096 {
		data[10*4096+i], data[20*4096+i] = data[20*4096+i], data[10*4096+i]
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = inspect.Check(t.Context(), inspect.Source{Dir: dir}, nil)
	if !errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), "kontor.db: page 11 does not have the checksum") {
		t.Errorf("got %v", err)
	}
}

// A damaged page makes an open database unready. The error names file and page. Other pages are read as before.
func TestDB_DamagedPageMakesUnready(t *testing.T) {
	dir := filled(t)
	path := filepath.Join(dir, "kontor.db")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := strings.LastIndex(string(data), "page 250 page 250")
	if at < 0 {
		t.Fatal("the text is not in the file")
	}
	db := openDir(t, dir)
	if err := db.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	setByte(t, f, at, 'x')
	var text string
	read := func(id string) error {
		return db.QueryRow(t.Context(), "SELECT description FROM roles WHERE id = $1", id).Scan(&text)
	}
	want := fmt.Sprintf("kontor.db: page %d does not have the checksum", at/4096+1)
	if err := read("role 250"); !errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), want) {
		t.Errorf("reading says %v, want %q", err, want)
	}
	if err := db.Ready(t.Context()); !errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), want) {
		t.Errorf("readiness says %v", err)
	}
	if err := read("role 299"); err != nil {
		t.Errorf("another page: %v", err)
	}
}

// A flipped byte in a page of the log is an error, too.
func TestDB_FlippedByteInTheLog(t *testing.T) {
	dir := filled(t)
	db := openDir(t, dir)
	release := make(chan struct{})
	held := make(chan error, 1)
	ready := make(chan struct{})
	go func() { // a reader that keeps the log from being copied into the database
		held <- db.View(context.Background(), func(v *store.View) error {
			var n int
			err := v.QueryRow(context.Background(), "SELECT COUNT(*) FROM roles").Scan(&n)
			close(ready)
			<-release
			return err
		})
	}()
	<-ready
	err := db.InTx(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec(t.Context(), "UPDATE roles SET description = $1 WHERE id = 'role 250'", strings.Repeat("in the log ", 3000))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	logFile := filepath.Join(dir, "kontor.db-wal")
	data, err := os.ReadFile(logFile)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(logFile, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const frame = 4096 + 24
	frames := (len(data) - 32) / frame
	random := rand.New(rand.NewPCG(3, 4))
	failed := 0
	for range 200 {
		at := 32 + random.IntN(frames)*frame + 24 + random.IntN(4096)
		setByte(t, f, at, data[at]^(1<<random.IntN(8)))
		var text string
		conn, err := binding.Open(filepath.Join(dir, "kontor.db"), binding.ReadOnly)
		if err != nil {
			t.Fatal(err)
		}
		s, err := conn.Prepare("SELECT description FROM roles WHERE id = 'role 250'")
		if err == nil {
			s.Begin()
			if _, err = s.Step(); err == nil {
				text = s.Text(0)
			}
			s.Reset()
		}
		conn.Close()
		if err == nil && text != strings.Repeat("in the log ", 3000) {
			t.Fatalf("byte %d: another answer", at)
		}
		if err != nil {
			failed++
			if !strings.Contains(err.Error(), "kontor.db-wal: frame") {
				t.Errorf("byte %d: %v", at, err)
			}
		}
		setByte(t, f, at, data[at])
	}
	close(release)
	if err := <-held; err != nil {
		t.Fatal(err)
	}
	if failed == 0 {
		t.Error("no flip was noticed")
	}
}

// A loss of power during a checkpoint leaves a torn page in the file and the whole page in the log. The start uses the
// log, so the check must not report damage. Bytes after the last page do not count.
func TestCheck_AcceptsATornPageThatTheLogHolds(t *testing.T) {
	for name, change := range map[string]func([]byte) []byte{
		"torn page that the log holds": func(b []byte) []byte {
			at := bytes.LastIndex(b, []byte("page 250 page 250"))
			b[at] ^= 1
			return b
		},
		"rest behind the last page": func(b []byte) []byte { return append(b, make([]byte, 9000)...) },
	} {
		t.Run(name, func(t *testing.T) {
			db := openDir(t, filled(t))
			engineOf(db).HoldCheckpoints()
			err := db.InTx(t.Context(), func(tx *store.Tx) error {
				_, err := tx.Exec(t.Context(), "UPDATE roles SET description = replace(description, 'page', 'PAGE') WHERE id = 'role 250'")
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			dir := copyDir(t, db.Dir())
			edit(t, filepath.Join(dir, "kontor.db"), change)
			if _, err := inspect.Check(t.Context(), inspect.Source{Dir: dir}, nil); err != nil {
				t.Errorf("before the start: %v", err)
			}
			if err := openDir(t, dir).Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := inspect.Check(t.Context(), inspect.Source{Dir: dir}, nil); err != nil {
				t.Errorf("after the start: %v", err)
			}
		})
	}
}

// A backup of a database without checksums has them.
func TestBackup_AddsChecksums(t *testing.T) {
	dir := filled(t)
	file := filepath.Join(t.TempDir(), "x.backup")
	if _, err := backup.Create(t.Context(), inspect.Source{Dir: dir}, file, backup.Options{}); err != nil {
		t.Fatal(err)
	}
	report, err := backup.Restore(t.Context(), []string{file}, inspect.Source{Dir: filepath.Join(t.TempDir(), "restored")})
	if err != nil || report.Pages == 0 {
		t.Errorf("%+v, %v", report, err)
	}
}
