package store_test

import (
	"slices"
	"testing"

	"kontor/store"
	"kontor/store/storetest"
)

func TestStatements_ListsWhatCallersAskedFor(t *testing.T) {
	db := storetest.Open(t)
	const read, written = "SELECT name FROM meta WHERE name = $1", "DELETE FROM meta WHERE name = $1 AND value = ''"
	var name string
	if err := db.QueryRow(t.Context(), read, "none").Scan(&name); err == nil {
		t.Fatal("meta holds an unknown fact")
	}
	err := db.InTx(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec(t.Context(), written, "none")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.View(t.Context(), func(*store.View) error { return nil }); err != nil {
		t.Fatal(err)
	}
	got, err := db.Statements(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{read, written} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is not in %q", want, got)
		}
	}
	for _, not := range []string{"BEGIN", "BEGIN IMMEDIATE", "COMMIT", "ROLLBACK"} {
		if slices.Contains(got, not) {
			t.Errorf("%s is the store's own", not)
		}
	}
}
