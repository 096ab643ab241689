package store_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kontor/store"
	"kontor/store/backup"
	"kontor/store/inspect"
	"kontor/store/storetest"
)

func TestRotateMasterKey_FormerKeyOpensNothing(t *testing.T) {
	if storetest.SQLiteOnly(t, keyInFile) {
		return
	}
	dir, db := newNotes(t, 120)
	former := readKey(t, dir)
	hash, mark := db.Keyed("api key", []byte("x")), readFile(t, dir, "kontor.mark")
	rotate(t, db)
	if got := readNotes(t, db); got != 120 {
		t.Errorf("%d values", got)
	}
	if key := readKey(t, dir); key == former {
		t.Fatal("the key file has the former key")
	}
	if older := db.KeyedOlder("api key", []byte("x")); len(older) != 1 || !bytes.Equal(older[0], hash) || bytes.Equal(db.Keyed("api key", []byte("x")), hash) {
		t.Error("hashes: the former one is not the older one")
	}
	var left int
	if err := db.QueryRow(t.Context(), `SELECT COUNT(*) FROM roles WHERE name_key NOT LIKE '2.1.%'`).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d values of the former generation, %v", left, err)
	}
	check(t, dir)
	db.Close()
	check(t, dir)

	// The former key: the database, a check, an export of the trail, and an import of the key.
	for name, err := range map[string]error{
		"open":   openErr(store.Options{Dir: dir, SecretKey: former}),
		"check":  second(inspect.Check(t.Context(), inspect.Source{Dir: dir, SecretKey: former}, nil)),
		"export": second(inspect.ExportAudit(t.Context(), inspect.Source{Dir: dir, SecretKey: former}, 1, &bytes.Buffer{})),
		"key":    second(backup.ReadKey(t.Context(), inspect.Source{Dir: dir, SecretKey: former})),
		"import": backup.ImportKey(t.Context(), dir, former),
	} {
		if !errors.Is(err, store.ErrWrongKey) || !strings.Contains(err.Error(), "was replaced at") {
			t.Errorf("%s with the former key: %v", name, err)
		}
	}
	// A mark that the former key has signed counts as none.
	if err := os.WriteFile(filepath.Join(dir, "kontor.mark"), mark, 0o600); err != nil {
		t.Fatal(err)
	}
	if report, err := inspect.Check(t.Context(), inspect.Source{Dir: dir}, nil); err != nil || report.MarkChecked {
		t.Errorf("a mark of the former key: %+v, %v", report, err)
	}
	db = openNotes(t, dir)
	if got := readNotes(t, db); got != 120 {
		t.Errorf("after a restart: %d values", got)
	}
}

func TestRotateMasterKey_SeveralTimes(t *testing.T) {
	if storetest.SQLiteOnly(t, keyInFile) {
		return
	}
	dir := storetest.Dir(t)
	clock := storetest.NewClock()
	db := openAt(t, dir, clock)
	for n := range 4 {
		writeNotes(t, db, 10*n, 10*(n+1))
		rotate(t, db)
	}
	state, err := db.KeyState(t.Context())
	if err != nil || len(state.Generations) != 5 || state.Resealing || len(state.Remaining) != 0 || !state.InFile {
		t.Errorf("got %+v, %v", state, err)
	}
	if len(db.KeyedOlder("customer name", nil)) != 4 {
		t.Error("a hash of a former generation is lost")
	}
	// The keys of former values are removed when no request can hold such a value.
	if err := db.ResumeRotation(t.Context()); err != nil {
		t.Fatal(err)
	}
	if state, _ := db.KeyState(t.Context()); !state.Generations[3].Opens {
		t.Error("the keys of values were removed at once")
	}
	clock.Advance(26 * time.Hour)
	if err := db.ResumeRotation(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, g := range generations(t, db) {
		if g.Opens != (g.Number == 4) {
			t.Errorf("after a day: %+v", g)
		}
	}
	if err := db.ForgetKeyed(t.Context(), "customer name"); err != nil || len(db.KeyedOlder("customer name", nil)) != 0 {
		t.Errorf("a forgotten hash: %v", err)
	}
	db.Close()
	db = openAt(t, dir, clock)
	if got := readNotes(t, db); got != 40 {
		t.Errorf("%d values", got)
	}
	if n, err := db.VerifyAudit(t.Context()); err != nil || n == 0 {
		t.Errorf("the audit trail: %d, %v", n, err)
	}
	check(t, dir)
}

// The keyring belongs to the check value: neither can be removed or replaced alone.
func TestOpen_RejectsAChangedKeyring(t *testing.T) {
	for name, statement := range map[string]string{
		"removed":         `DELETE FROM meta WHERE name = 'keyring'`,
		"changed":         `UPDATE meta SET value = substr(value, 1, 40) || 'AAAA' || substr(value, 45) WHERE name = 'keyring'`,
		"empty":           `UPDATE meta SET value = '' WHERE name = 'keyring'`,
		"check removed":   `DELETE FROM meta WHERE name = 'key_check'`,
		"check of old":    `UPDATE meta SET value = '2.' || substr(value, 3) WHERE name = 'key_check'`,
		"head of another": `UPDATE meta SET value = '1 ' || substr(value, 3) WHERE name = 'audit_head'`,
	} {
		o := storetest.Options(t)
		db := storetest.OpenAgain(t, o)
		o = rotated(t, db, o)
		db.Close()
		storetest.Change(t, o, statement)
		err := openErr(o)
		if !errors.Is(err, store.ErrCorrupt) && !errors.Is(err, store.ErrTampered) && !errors.Is(err, store.ErrWrongKey) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := inspect.Check(t.Context(), storetest.Source(o), nil); err == nil {
			t.Errorf("%s: check found nothing", name)
		}
	}
}
