package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"kontor/store"
	"kontor/store/audittrail"
	"kontor/store/backup"
	"kontor/store/inspect"
	"kontor/store/storetest"
)

// notes registers the column value of user_roles as sealed: any table with two texts will do.
func notes(db *store.DB) {
	db.RegisterSealed(store.SealedColumn{
		Table: "user_roles", Column: "role_id",
		Select: `SELECT name, name, name_key FROM roles WHERE name_key NOT LIKE $1 AND name > $2 ORDER BY name LIMIT $3`,
		Update: `UPDATE roles SET name_key = $3 WHERE name = $1 AND name_key = $2`,
	})
}

// writeNotes stores sealed values under the names note-from to note-to.
func writeNotes(t *testing.T, db *store.DB, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		name := fmt.Sprintf("note-%03d", i)
		sealed, err := db.Seal("user_roles", "role_id", name, []byte("text of "+name))
		if err != nil {
			t.Fatal(err)
		}
		err = db.InTx(t.Context(), func(tx *store.Tx) error {
			_, err := tx.Exec(t.Context(), `INSERT INTO roles (id, name, name_key, created_at, created_by, modified_at, modified_by)
				VALUES ($1, $2, $3, 0, '', 0, '')`, store.NewID(), name, sealed)
			tx.Audit(store.AuditEntry{Actor: store.NilID, Action: "note", RecType: "notes", RecID: name})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// readNotes opens all values and returns how many there are.
func readNotes(t *testing.T, db *store.DB) (n int) {
	t.Helper()
	rows, err := db.Query(t.Context(), `SELECT name, name_key FROM roles ORDER BY name`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name, sealed string
		if err := rows.Scan(&name, &sealed); err != nil {
			t.Fatal(err)
		}
		plain, err := db.Unseal("user_roles", "role_id", name, sealed)
		if err != nil || string(plain) != "text of "+name {
			t.Fatalf("%s: got %q, %v", name, plain, err)
		}
		n++
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return n
}

// openAt opens a directory with a clock of the test.
func openAt(t *testing.T, dir string, clock *storetest.Clock) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), store.Options{Dir: dir, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	notes(db)
	return db
}

func rotate(t *testing.T, db *store.DB) {
	t.Helper()
	if resumed, err := db.RotateMasterKey(t.Context(), store.Rotation{}); err != nil || resumed {
		t.Fatalf("resumed %v, %v", resumed, err)
	}
}

// rotated replaces the master key, wherever the database has it from, and returns the options to open it with.
func rotated(t *testing.T, db *store.DB, o store.Options) store.Options {
	t.Helper()
	if o.SecretKey == "" {
		rotate(t, db)
		return o
	}
	next := o
	next.SecretKey = strings.Repeat("a0", 32)
	if _, err := db.RotateMasterKey(t.Context(), store.Rotation{SecretKey: next.SecretKey, PreviousKey: o.SecretKey}); err != nil {
		t.Fatal(err)
	}
	return next
}

func readKey(t *testing.T, dir string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "secret.key"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

func check(t *testing.T, dir string) {
	t.Helper()
	_, err := os.Stat(filepath.Join(dir, "kontor.mark"))
	marked := err == nil
	if report, err := inspect.Check(t.Context(), inspect.Source{Dir: dir}, nil); err != nil || !report.KeyChecked || report.MarkChecked != marked {
		t.Errorf("check: %+v, %v", report, err)
	}
}

func TestRotateMasterKey_FormerKeyOpensNothing(t *testing.T) {
	if storetest.SQLiteOnly(t, "the master key is in a file of the data directory") {
		return
	}
	dir := storetest.Dir(t)
	former := readKey(t, dir)
	db := storetest.OpenDir(t, dir)
	notes(db)
	writeNotes(t, db, 0, 120)
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
	db = storetest.OpenDir(t, dir)
	notes(db)
	if got := readNotes(t, db); got != 120 {
		t.Errorf("after a restart: %d values", got)
	}
}

func openErr(o store.Options) error {
	db, err := store.Open(context.Background(), o)
	if err == nil {
		db.Close()
	}
	return err
}

func second[T any](_ T, err error) error { return err }

func readFile(t *testing.T, dir, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestRotateMasterKey_SeveralTimes(t *testing.T) {
	if storetest.SQLiteOnly(t, "the master key is in a file of the data directory") {
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

func generations(t *testing.T, db *store.DB) []store.KeyGeneration {
	t.Helper()
	state, err := db.KeyState(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return state.Generations
}

// Concurrent writes seal with the former key and with the new one; none is lost, and none stays under the former key.
func TestRotateMasterKey_UnderWrites(t *testing.T) {
	if storetest.SQLiteOnly(t, "the master key is in a file of the data directory") {
		return
	}
	dir := storetest.Dir(t)
	db := storetest.OpenDir(t, dir)
	notes(db)
	writeNotes(t, db, 0, 60)
	var wait sync.WaitGroup
	for w := 1; w <= 4; w++ {
		wait.Go(func() { writeNotes(t, db, 100*w, 100*w+60) })
	}
	for range 3 {
		rotate(t, db)
	}
	wait.Wait()
	if err := db.ResumeRotation(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := readNotes(t, db); got != 300 {
		t.Errorf("%d values", got)
	}
	check(t, dir)
	db.Close()
	check(t, dir)
}

// A check, an export and the list of keys beside a rotation find nothing wrong.
func TestRotateMasterKey_BesideChecks(t *testing.T) {
	if storetest.SQLiteOnly(t, "the master key is in a file of the data directory") {
		return
	}
	dir := storetest.Dir(t)
	db := storetest.OpenDir(t, dir)
	notes(db)
	writeNotes(t, db, 0, 5)
	calls := 0
	_, err := inspect.Check(t.Context(), inspect.Source{Dir: dir}, func(context.Context, *audittrail.Evidence) error {
		if calls++; calls < 3 {
			rotate(t, db)
			writeNotes(t, db, 10*calls, 10*calls+5)
		}
		return nil
	})
	if err != nil || calls != 3 {
		t.Errorf("after %d calls: %v", calls, err)
	}
}

func TestRotateMasterKey_OneAtATime(t *testing.T) {
	if storetest.SQLiteOnly(t, "the master key is in a file of the data directory") {
		return
	}
	db := storetest.Open(t)
	notes(db)
	writeNotes(t, db, 0, 1)
	var nested error
	_, err := db.RotateMasterKey(t.Context(), store.Rotation{Report: func(store.Resealed) {
		_, nested = db.RotateMasterKey(t.Context(), store.Rotation{})
	}})
	if err != nil || !errors.Is(nested, store.ErrRotating) {
		t.Errorf("got %v and %v", err, nested)
	}
	if len(generations(t, db)) != 2 {
		t.Error("there was more than one rotation")
	}
}

// A rotation that fails while it seals is completed by the next one, which does not begin another.
func TestRotateMasterKey_Resumes(t *testing.T) {
	if storetest.SQLiteOnly(t, "the master key is in a file of the data directory") {
		return
	}
	dir := storetest.Dir(t)
	db := storetest.OpenDir(t, dir)
	notes(db)
	writeNotes(t, db, 0, 120)
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := db.RotateMasterKey(ctx, store.Rotation{Report: func(store.Resealed) { cancel() }}); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	if state, err := db.KeyState(t.Context()); err != nil || !state.Resealing || len(state.Remaining) != 1 || state.Remaining[0].Values == 0 {
		t.Errorf("got %+v, %v", state, err)
	}
	check(t, dir)
	db.Close()
	db = storetest.OpenDir(t, dir)
	notes(db)
	if got := readNotes(t, db); got != 120 {
		t.Errorf("between the parts: %d values", got)
	}
	if resumed, err := db.RotateMasterKey(t.Context(), store.Rotation{}); err != nil || !resumed {
		t.Errorf("resumed %v, %v", resumed, err)
	}
	if state, err := db.KeyState(t.Context()); err != nil || state.Resealing || len(state.Remaining) != 0 || len(state.Generations) != 2 {
		t.Errorf("got %+v, %v", state, err)
	}
}

// A backup from before a rotation opens with the key from before, and one from after it with the new key.
func TestRotateMasterKey_Backups(t *testing.T) {
	if storetest.SQLiteOnly(t, "the master key is in a file of the data directory") {
		return
	}
	dir, work := storetest.Dir(t), t.TempDir()
	former := readKey(t, dir)
	db := storetest.OpenDir(t, dir)
	notes(db)
	writeNotes(t, db, 0, 5)
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

// An export that spans rotations is verified with the first key alone, with the printed keys, and not with others.
func TestRotateMasterKey_ExportsStayValid(t *testing.T) {
	if storetest.SQLiteOnly(t, "the master key is in a file of the data directory") {
		return
	}
	dir := storetest.Dir(t)
	db := storetest.OpenDir(t, dir)
	notes(db)
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

// A directory that cannot be written is refused before anything changes.
func TestRotateMasterKey_CannotWriteTheKey(t *testing.T) {
	if storetest.SQLiteOnly(t, "the master key is in a file of the data directory") {
		return
	}
	dir := storetest.Dir(t)
	former := readKey(t, dir)
	db := storetest.OpenDir(t, dir)
	notes(db)
	writeNotes(t, db, 0, 3)
	if err := os.MkdirAll(filepath.Join(dir, "secret.key.next", "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := db.RotateMasterKey(t.Context(), store.Rotation{}); err == nil {
		t.Error("no error")
	}
	if len(generations(t, db)) != 1 || readKey(t, dir) != former || readNotes(t, db) != 3 {
		t.Error("something changed")
	}
}

// The next start removes the remains of a rotation that the database never had.
func TestOpen_RemovesTheKeyOfAnAbandonedRotation(t *testing.T) {
	if storetest.SQLiteOnly(t, "the master key is in a file of the data directory") {
		return
	}
	for name, content := range map[string]string{"whole": strings.Repeat("0a", 32) + "\n", "empty": "", "torn": "0a0a"} {
		dir := storetest.Dir(t)
		next := filepath.Join(dir, "secret.key.next")
		if err := os.WriteFile(next, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		check(t, dir)
		db := storetest.OpenDir(t, dir)
		if _, err := os.Stat(next); err == nil {
			t.Errorf("%s: the key is still there", name)
		}
		rotate(t, db)
		db.Close()
		check(t, dir)
	}
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
