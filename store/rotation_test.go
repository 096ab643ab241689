package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kontor/store"
	"kontor/store/audittrail"
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

// A backup from before a rotation opens with the key from before, and one from after it with the new key.
func TestRotateMasterKey_Backups(t *testing.T) {
	if storetest.SQLiteOnly(t, keyInFile) {
		return
	}
	work := t.TempDir()
	dir, db := newNotes(t, 5)
	former := readKey(t, dir)
	source := inspect.Source{Dir: dir}
	create := func(name string, withKey bool) string {
		file := filepath.Join(work, name)
		if _, err := backup.Create(t.Context(), source, file, backup.Options{WithKey: withKey}); err != nil {
			t.Fatal(err)
		}
		return file
	}
	before := create("before", false)
	beforeWithKey := create("before-with-key", true)
	rotate(t, db)
	after := create("after", false)
	afterWithKey := create("after-with-key", true)
	newest := readKey(t, dir)
	for i, c := range []struct {
		file, key string
		wrong     string
	}{{before, former, newest}, {beforeWithKey, "", newest}, {after, newest, former}, {afterWithKey, "", former}} {
		target := filepath.Join(work, fmt.Sprint("restored-", i))
		if _, err := backup.Restore(t.Context(), []string{c.file}, inspect.Source{Dir: target + "-wrong", SecretKey: c.wrong}); !errors.Is(err, store.ErrWrongKey) {
			t.Errorf("%s with the other key: %v", c.file, err)
		}
		if _, err := backup.Restore(t.Context(), []string{c.file}, inspect.Source{Dir: target}); err != nil {
			t.Fatalf("%s: %v", c.file, err)
		}
		if c.key != "" {
			if err := backup.ImportKey(t.Context(), target, c.key); err != nil {
				t.Fatalf("%s: %v", c.file, err)
			}
		}
		check(t, target)
		restored := storetest.OpenDir(t, target)
		if got := readNotes(t, restored); got != 5 {
			t.Errorf("%s: %d values", c.file, got)
		}
		restored.Close()
	}
}

// An export that spans rotations is verified with the first key alone, with the printed keys, and not with others.
func TestRotateMasterKey_ExportsStayValid(t *testing.T) {
	if storetest.SQLiteOnly(t, keyInFile) {
		return
	}
	dir, db := newNotes(t, 0)
	var text bytes.Buffer
	position := int64(0)
	export := func() {
		t.Helper()
		b, err := db.ExportAfter(t.Context(), position, 1000)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range append(b.Lines, b.Head) {
			text.Write(line)
		}
		position = b.Entries[len(b.Entries)-1].Seq
	}
	first := db.ExportKey()
	for n := range 3 {
		writeNotes(t, db, 5*n, 5*n+5)
		export()
		rotate(t, db)
		export()
	}
	printed, err := inspect.PublicExportKeys(t.Context(), inspect.Source{Dir: dir})
	if err != nil || len(printed) != 4 || printed[3] != first || printed[0] != db.ExportKey() {
		t.Fatalf("got %v, %v", printed, err)
	}
	for _, keys := range []string{"", strings.Join(printed, "\n")} {
		if r, err := audittrail.VerifyExport(strings.NewReader(text.String()), keys); err != nil || r.SignedTo != position || r.PublicKey != printed[0] {
			t.Errorf("keys %q: %+v, %v", keys, r, err)
		}
	}
	for _, keys := range []string{first, printed[0], printed[1] + " " + printed[2]} {
		if _, err := audittrail.VerifyExport(strings.NewReader(text.String()), keys); err == nil {
			t.Errorf("keys %q: accepted", keys)
		}
	}
	// Without the statement of the former key, a reader does not follow the new one.
	lines := strings.SplitAfter(text.String(), "\n")
	for i, l := range lines {
		if strings.Contains(l, audittrail.ActionRotated) {
			lines[i] = strings.Replace(l, `\"signature\":\"`, `\"signature\":\"AA`, 1)
			break
		}
	}
	if _, err := audittrail.VerifyExport(strings.NewReader(strings.Join(lines, "")), ""); err == nil {
		t.Error("a changed statement was accepted")
	}
}

// The keys from the environment are replaced at a start that is given both, or by a request that has both.
func TestRotateMasterKey_GivenKeys(t *testing.T) {
	ctx := t.Context()
	keys := []string{strings.Repeat("0a", 32), strings.Repeat("0b", 32), strings.Repeat("0c", 32), strings.Repeat("0d", 32)}
	o := storetest.Unused(t)
	open := func(key, previous string) *store.DB {
		t.Helper()
		o.SecretKey, o.PreviousKey = key, previous
		db, err := store.Open(ctx, o)
		if err != nil {
			t.Fatal(err)
		}
		notes(db)
		return db
	}
	db := open(keys[0], "")
	writeNotes(t, db, 0, 60)
	for name, r := range map[string]store.Rotation{
		"no keys": {}, "no previous key": {SecretKey: keys[1]}, "wrong previous key": {SecretKey: keys[1], PreviousKey: keys[2]},
		"malformed": {SecretKey: "xyz", PreviousKey: keys[0]}, "the present key": {SecretKey: keys[0], PreviousKey: keys[0]},
	} {
		if _, err := db.RotateMasterKey(ctx, r); err == nil || len(generations(t, db)) != 1 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := db.RotateMasterKey(ctx, store.Rotation{SecretKey: keys[1], PreviousKey: keys[0]}); err != nil {
		t.Fatal(err)
	}
	db.Close()
	for name, wrong := range map[string]store.Options{
		"former key": {SecretKey: keys[0]}, "wrong previous key": {SecretKey: keys[2], PreviousKey: keys[3]},
		"former as previous": {SecretKey: keys[2], PreviousKey: keys[0]},
	} {
		wrong.Dir, wrong.URL = o.Dir, o.URL
		if err := openErr(wrong); !errors.Is(err, store.ErrWrongKey) {
			t.Errorf("%s: %v", name, err)
		}
	}
	db = open(keys[2], keys[1]) // replaces the key
	if state, err := db.KeyState(ctx); err != nil || !state.Resealing || len(state.Generations) != 3 || state.InFile {
		t.Errorf("got %+v, %v", state, err)
	}
	if err := db.ResumeRotation(ctx); err != nil {
		t.Fatal(err)
	}
	db.Close()
	db = open(keys[2], keys[1]) // the previous key has no effect any more
	if state, err := db.KeyState(ctx); err != nil || state.Resealing || len(state.Generations) != 3 {
		t.Errorf("got %+v, %v", state, err)
	}
	if got := readNotes(t, db); got != 60 {
		t.Errorf("%d values", got)
	}
	db.Close()
	if _, err := os.Stat(filepath.Join(o.Dir, "secret.key")); err == nil {
		t.Error("a key file was written")
	}
}
