package audittrail_test

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"kontor/store"
	"kontor/store/audittrail"
	"kontor/store/inspect"
	"kontor/store/storetest"
)

// exported creates a database with some entries and returns its options, an export and the public key.
func exported(t testing.TB, entries int) (o store.Options, text, key string) {
	t.Helper()
	o = storetest.Options(t)
	text, key = exportedOf(t, o, entries)
	return o, text, key
}

// exportedOf does the same with the options of the test.
func exportedOf(t testing.TB, o store.Options, entries int) (text, key string) {
	t.Helper()
	db, err := store.Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	storetest.Audit(t, db, entries-1)
	err = db.InTx(t.Context(), func(tx *store.Tx) error {
		tx.Audit(store.AuditEntry{Actor: store.NilID, Action: "access.denied", Kind: "denial", Detail: `{"count":2}`, Origin: &store.Origin{Network: "192.0.2.0/24"}})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	key = db.ExportKey()
	return export(t, storetest.Source(o), 1), key
}

// export exports the trail of a database that may be open.
func export(t testing.TB, from inspect.Source, first int64) string {
	t.Helper()
	var b bytes.Buffer
	if _, err := inspect.ExportAudit(t.Context(), from, first, &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestVerifyExport_AcceptsAnExport(t *testing.T) {
	o, text, key := exported(t, 5)
	for _, given := range []string{key, ""} {
		r, err := audittrail.VerifyExport(strings.NewReader(text), given)
		if err != nil || r.From != 1 || r.To != 5 || r.SignedTo != 5 || r.Heads != 1 || r.PublicKey != key {
			t.Errorf("key %q: got %+v, %v", given, r, err)
		}
	}
	if printed, err := inspect.PublicExportKeys(t.Context(), storetest.Source(o)); err != nil || len(printed) != 1 || printed[0] != key {
		t.Errorf("got %q, %v", printed, err)
	}
	tail := export(t, storetest.Source(o), 3)
	if r, err := audittrail.VerifyExport(strings.NewReader(tail), key); err != nil || r.From != 3 || r.To != 5 {
		t.Errorf("from 3: got %+v, %v", r, err)
	}
	if r, err := audittrail.VerifyExport(strings.NewReader(export(t, storetest.Source(o), 99)), key); err != nil || r.To != 0 || r.Heads != 1 {
		t.Errorf("an empty export: got %+v, %v", r, err)
	}
	// An exporter that was restarted repeats entries.
	lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
	again := strings.Join(lines[:3], "") + strings.Join(lines[1:], "") + "\n"
	if r, err := audittrail.VerifyExport(strings.NewReader(again), key); err != nil || r.Repeated != 2 || r.To != 5 {
		t.Errorf("with repetitions: got %+v, %v", r, err)
	}
}

func TestVerifyExport_NamesTheWrongLine(t *testing.T) {
	_, text, key := exported(t, 5)
	foreign, foreignKey := exportedOf(t, store.Options{Dir: filepath.Join(t.TempDir(), "data"), SecretKey: strings.Repeat("5a", 32)}, 5)
	lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
	others := strings.SplitAfter(strings.TrimSuffix(foreign, "\n"), "\n")
	join := func(parts ...string) string { return strings.Join(parts, "") }
	for name, c := range map[string]struct {
		text, key string
		line      int
	}{
		"an entry was changed":               {strings.Replace(text, "marked.0002", "marked.0009", 1), key, 2},
		"the kind was changed":               {strings.Replace(text, `"kind":"denial"`, `"kind":"read"`, 1), key, 5},
		"the detail was changed":             {strings.Replace(text, `\"count\":2`, `\"count\":1`, 1), key, 5},
		"the network was changed":            {strings.Replace(text, "192.0.2.0", "192.0.3.0", 1), key, 5},
		"an entry was removed":               {join(lines[0], lines[2], lines[3], lines[4], lines[5]), key, 2},
		"two were exchanged":                 {join(lines[0], lines[2], lines[1], lines[3], lines[4], lines[5]), key, 2},
		"the first was removed":              {join(lines[1:]...), key, 5},
		"the last was removed":               {join(lines[0], lines[1], lines[2], lines[3], lines[5]), key, 5},
		"the head was removed":               {join(lines[:5]...), key, 5},
		"an entry was added behind the head": {join(text, strings.Replace(lines[4], `"seq":5`, `"seq":6`, 1)), key, 7},
		"a whole foreign export":             {foreign, key, 6},
		"signed with a foreign key":          {join(lines[0], lines[1], lines[2], lines[3], lines[4], others[5]), key, 6},
		"a foreign head, foreign key given":  {join(lines[0], lines[1], lines[2], lines[3], lines[4], others[5]), foreignKey, 6},
		"a foreign head, no key given":       {join(lines[0], lines[1], lines[2], lines[3], lines[4], others[5]), "", 6},
		"the key was exchanged in the head":  {strings.Replace(text, key, foreignKey, 1), "", 6},
		"a key that is none":                 {strings.Replace(text, key, "AAAA", 1), "AAAA", 6},
		"the time of the head was changed":   {strings.Replace(text, `"at":"20`, `"at":"19`, -1), key, 1},
		"nothing":                            {"", key, 0},
		"no export":                          {"hello\n", key, 1},
		"an unknown member":                  {strings.Replace(text, `{"seq":1,`, `{"x":1,"seq":1,`, 1), key, 1},
		"a member twice":                     {strings.Replace(text, `{"seq":1,`, `{"seq":1,"seq":1,`, 1), key, 1},
		"an unknown form":                    {strings.Replace(text, `"form":2`, `"form":3`, 1), key, 1},
		"a form that covers less":            {strings.Replace(text, `"form":2`, `"form":1`, 1), key, 1},
	} {
		r, err := audittrail.VerifyExport(strings.NewReader(c.text), c.key)
		bad, ok := errors.AsType[*audittrail.ExportError](err)
		if !ok || bad.Line != c.line {
			t.Errorf("%s: got %+v, %v, want line %d", name, r, err, c.line)
		}
	}
}

func TestExportAudit_NeedsTheKey(t *testing.T) {
	o, _, _ := exported(t, 3)
	missing := storetest.Source(o)
	missing.Dir, missing.SecretKey = o.Dir+"/nothing", ""
	var b bytes.Buffer
	if _, err := inspect.ExportAudit(t.Context(), missing, 1, &b); err == nil || b.Len() > 0 {
		t.Errorf("got %v and %d bytes", err, b.Len())
	}
}

func FuzzVerifyExport(f *testing.F) {
	_, text, key := exported(f, 3)
	f.Add(text)
	f.Add(strings.Replace(text, `"form":2`, `"form":1`, 1))
	f.Add(`{"head":{}}`)
	f.Fuzz(func(t *testing.T, changed string) {
		if r, err := audittrail.VerifyExport(strings.NewReader(changed), key); err == nil && r.To > 3 {
			t.Errorf("%q passes as an export of %d entries", changed, r.To)
		}
	})
}
