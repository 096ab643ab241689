package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"kontor/store"
	"kontor/store/audittrail"
	"kontor/store/inspect"
	"kontor/store/storetest"
)

type person struct {
	Name    string         `json:"name"`
	Address map[string]any `json:"address"`
	Tags    []string       `json:"tags"`
	At      int            `json:"modified_at"`
	secret  string
}

// record returns the record of a person. The secret is stored and not answered.
func (p person) record() store.Record {
	return store.Record{Answer: p, Stored: map[string]string{"password_hash": p.secret}}
}

func keepChanges(db *store.DB) {
	db.KeepChanges(store.Changes{Erase: "erase", Rules: map[string]store.ChangeRule{
		"people": {Omit: []string{"modified_at", "address.checked"}}, "tasks": {Forget: true}}})
}

// write writes one entry and returns its number and detail.
func write(t *testing.T, db *store.DB, e store.AuditEntry) (seq int64, detail string) {
	t.Helper()
	e.Actor = store.NilID
	err := db.InTx(t.Context(), func(tx *store.Tx) error { tx.Audit(e); return nil })
	if err == nil {
		err = db.QueryRow(t.Context(), `SELECT seq, detail FROM audit_trail ORDER BY seq DESC LIMIT 1`).Scan(&seq, &detail)
	}
	if err != nil {
		t.Fatal(err)
	}
	return seq, detail
}

func fields(t *testing.T, db *store.DB, seq int64, detail string) string {
	t.Helper()
	changes, err := db.ChangedFields(t.Context(), seq, detail)
	if errors.Is(err, store.ErrNotFound) {
		return "none"
	}
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, c := range changes {
		line := fmt.Sprintf("%s: %s → %s", c.Field, c.Before, c.After)
		if c.Cut {
			line += " (cut)"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func TestChangedFields(t *testing.T) {
	db := storetest.Open(t)
	keepChanges(db)
	long := strings.Repeat("é", 400)
	before := person{Name: "Anna", Address: map[string]any{"city": "Bern", "checked": 1}, Tags: []string{"a"}, At: 1, secret: "hash one"}
	after := person{Name: long, Address: map[string]any{"city": "Zürich", "checked": 2, "zip": "8000"}, Tags: []string{"a", "b"}, At: 2, secret: "hash two"}
	for name, c := range map[string]struct {
		entry store.AuditEntry
		want  string
	}{
		"an insert":         {store.AuditEntry{Action: "create", RecType: "people", After: after.record()}, "none"},
		"no state":          {store.AuditEntry{Action: "read", RecType: "people"}, "none"},
		"a type not listed": {store.AuditEntry{Action: "update", RecType: "passwords", Before: before.record(), After: after.record()}, "none"},
		"only a secret": {store.AuditEntry{Action: "update", RecType: "people", Before: before.record(),
			After: person{Name: "Anna", Address: before.Address, Tags: before.Tags, At: 9, secret: "new"}.record()}, "none"},
		"an update": {store.AuditEntry{Action: "update", RecType: "people", Before: before.record(), After: after.record()},
			`name: "Anna" → "` + long[:500] + `" (cut)` + "\n" + `address.city: "Bern" → "Zürich"` + "\n" + `address.zip: null → "8000"` + "\n" + `tags: ["a"] → ["a","b"]`},
		"changes without states": {store.AuditEntry{Action: "roles", RecType: "people", Changes: []store.FieldChange{store.Changed("roles", "", "Auditor")}},
			`roles: null → "Auditor"`},
	} {
		t.Run(name, func(t *testing.T) {
			c.entry.RecID = store.NewID()
			seq, detail := write(t, db, c.entry)
			if got := fields(t, db, seq, detail); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			if c.want == "none" && store.HasChangedFields(detail) {
				t.Errorf("the entry has the detail %s", detail)
			}
		})
	}
	if _, err := db.VerifyAudit(t.Context()); err != nil {
		t.Error(err)
	}
}

// Prepared changes are the same as those that the transaction computes.
func TestChangedFields_ArePreparedBeforeTheTransaction(t *testing.T) {
	db := storetest.Open(t)
	keepChanges(db)
	was, is := db.Digest(person{Name: "Anna"}.record()), db.Digest(person{Name: "Beat"}.record())
	seq, detail := write(t, db, store.AuditEntry{Action: "update", RecType: "people", RecID: store.NewID(), Before: was, After: db.DigestChange("people", was, is)})
	if got := fields(t, db, seq, detail); got != `name: "Anna" → "Beat"` {
		t.Error(got)
	}
}

// The number and the size of changed fields are bounded, whatever a record holds.
func TestChangedFields_AreBounded(t *testing.T) {
	db := storetest.Open(t)
	keepChanges(db)
	wide := func(value string) map[string]any {
		m := map[string]any{}
		for i := range 500 {
			m[fmt.Sprintf("field %03d %s", i, strings.Repeat("k", 2000))] = map[string]any{"a": map[string]any{"b": strings.Repeat(value, 5000)}}
		}
		return m
	}
	seq, detail := write(t, db, store.AuditEntry{Action: "update", RecType: "people", RecID: store.NewID(), Before: wide("x"), After: wide("y")})
	changes, err := db.ChangedFields(t.Context(), seq, detail)
	if err != nil {
		t.Fatal(err)
	}
	size := 0
	for _, c := range changes {
		size += len(c.Field) + len(c.Before) + len(c.After)
	}
	if len(changes) != 101 || !changes[100].Cut || size > 200_000 {
		t.Errorf("%d changes of %d bytes, the last is %+v", len(changes), size, changes[len(changes)-1])
	}
}

// An erasure, a deletion and age delete the values. The chain stays valid, and nothing of the values remains.
func TestChangedFields_AreDeleted(t *testing.T) {
	db := storetest.Open(t)
	keepChanges(db)
	change := func(recType, id string) (int64, string) {
		return write(t, db, store.AuditEntry{Action: "update", RecType: recType, RecID: id, Before: person{Name: "Anna"}, After: person{Name: "Beat"}})
	}
	person1, person2, task := store.NewID(), store.NewID(), store.NewID()
	seq1, detail1 := change("people", person1)
	seq2, detail2 := change("people", person2)
	seq3, detail3 := change("tasks", task)
	write(t, db, store.AuditEntry{Action: "erase", RecType: "people", RecID: person1, Before: person{Name: "Beat"}, After: person{}})
	if got := fields(t, db, seq1, detail1); got != "none" {
		t.Errorf("after the erasure: %s", got)
	}
	write(t, db, store.AuditEntry{Action: "delete", RecType: "people", RecID: person2, Before: person{Name: "Beat"}})
	if got := fields(t, db, seq2, detail2); got == "none" {
		t.Error("the deletion of a record of a type without Forget deletes its changes")
	}
	write(t, db, store.AuditEntry{Action: "delete", RecType: "tasks", RecID: task, Before: person{Name: "Beat"}})
	if got := fields(t, db, seq3, detail3); got != "none" {
		t.Errorf("after the deletion: %s", got)
	}
	if err := db.PurgeChangedFields(t.Context(), time.Hour); err != nil {
		t.Fatal(err)
	}
	if got := fields(t, db, seq2, detail2); got == "none" {
		t.Error("changed fields are deleted before their time")
	}
	if err := db.PurgeChangedFields(t.Context(), -time.Hour); err != nil {
		t.Fatal(err)
	}
	if got := fields(t, db, seq2, detail2); got != "none" {
		t.Errorf("after the retention: %s", got)
	}
	if _, err := db.VerifyAudit(t.Context()); err != nil {
		t.Error(err)
	}
}

// A check notices values that were changed, exchanged or added, and no deletion.
func TestChangedFields_AreVerified(t *testing.T) {
	o := storetest.Options(t)
	db := storetest.OpenAgain(t, o)
	keepChanges(db)
	var seqs []int64
	for _, name := range []string{"Beat", "Carla"} {
		seq, _ := write(t, db, store.AuditEntry{Action: "update", RecType: "people", RecID: store.NewID(), Before: person{Name: "Anna"}, After: person{Name: name}})
		seqs = append(seqs, seq)
	}
	check := func() error {
		report, err := inspect.Check(t.Context(), storetest.Source(o), func(context.Context, *audittrail.Evidence) error { return nil })
		if err == nil && report.ChangedFields == 0 {
			err = errors.New("no changed fields")
		}
		return err
	}
	exec := func(sql string, args ...any) {
		if err := db.InTx(t.Context(), func(tx *store.Tx) error { _, err := tx.Exec(t.Context(), sql, args...); return err }); err != nil {
			t.Fatal(err)
		}
	}
	if err := check(); err != nil {
		t.Fatal(err)
	}
	var sealed [2]string
	for i, seq := range seqs {
		if err := db.QueryRow(t.Context(), `SELECT sealed FROM audit_values WHERE seq = $1`, seq).Scan(&sealed[i]); err != nil {
			t.Fatal(err)
		}
	}
	exec(`UPDATE audit_values SET sealed = $2 WHERE seq = $1`, seqs[0], sealed[1])
	if err := check(); err == nil || !strings.Contains(err.Error(), "its changed fields were changed") {
		t.Errorf("exchanged values: %v", err)
	}
	exec(`UPDATE audit_values SET sealed = $2 WHERE seq = $1`, seqs[0], sealed[0])
	write(t, db, store.AuditEntry{Action: "read", RecType: "people", RecID: store.NewID()})
	exec(`INSERT INTO audit_values (seq, sealed) VALUES ($1, $2)`, seqs[1]+1, sealed[0])
	if err := check(); err == nil || !strings.Contains(err.Error(), "has no changed fields") {
		t.Errorf("added values: %v", err)
	}
	exec(`DELETE FROM audit_values WHERE seq > $1`, seqs[0])
	if err := check(); err != nil {
		t.Errorf("after a deletion: %v", err)
	}
}

// A rotation of the master key seals the values again, also of entries that it did not expect.
func TestChangedFields_SurviveARotation(t *testing.T) {
	db := storetest.Open(t)
	keepChanges(db)
	seq, detail := write(t, db, store.AuditEntry{Action: "update", RecType: "people", RecID: store.NewID(), Before: person{Name: "Anna"}, After: person{Name: "Beat"}})
	var resealed int64
	rotation := storetest.Rotation(t, db)
	rotation.Report = func(r store.Resealed) {
		if r.Table == "audit_values" {
			resealed = r.Values
		}
	}
	_, err := db.RotateMasterKey(t.Context(), rotation)
	if err != nil || resealed != 1 {
		t.Fatalf("%d values, %v", resealed, err)
	}
	if got := fields(t, db, seq, detail); got != `name: "Anna" → "Beat"` {
		t.Error(got)
	}
}

func FuzzChanges(f *testing.F) {
	f.Add(`{"a":1}`, `{"a":{"b":2},"c":[1,2]}`)
	f.Add(`{"a":{"b":{"c":{"d":1}}}}`, `{"a":{"b":{"c":{"d":2}}}}`)
	f.Add(`[]`, `{"`)
	rule := store.ChangeRule{Omit: []string{"x"}}
	f.Fuzz(func(t *testing.T, before, after string) {
		for _, c := range rule.Compare([]byte(before), []byte(after)) {
			if !c.Before.IsValid() || !c.After.IsValid() || len(c.Before)+len(c.After) > 20_000 {
				t.Errorf("%s: %s → %s", c.Field, c.Before, c.After)
			}
			if string(c.Before) == string(c.After) && !c.Cut {
				t.Errorf("%s did not change: %s", c.Field, c.Before)
			}
		}
	})
}

// BenchmarkChangedFields is what an update of a customer pays before its transaction.
func BenchmarkChangedFields(b *testing.B) {
	db := storetest.Open(b)
	keepChanges(db)
	p := person{Name: "Anna Keller", Address: map[string]any{"city": "Bern", "street": "Bahnhofstrasse 1", "postal_code": "3011", "country": "CHE"}, Tags: []string{"a", "b"}}
	was := db.Digest(p.record())
	p.Name = "Anna Brunner"
	is := db.Digest(p.record())
	for b.Loop() {
		db.DigestChange("people", was, is)
	}
}
