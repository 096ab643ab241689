package store_test

import (
	"strings"
	"testing"

	"kontor/store"
	"kontor/store/inspect"
	"kontor/store/storetest"
)

func TestOpen_ComparesThePurpose(t *testing.T) {
	ctx := t.Context()
	for _, first := range []inspect.Purpose{"", inspect.Production, inspect.Sandbox} {
		o := storetest.Unused(t)
		o.Purpose = first
		for _, purpose := range []inspect.Purpose{first, inspect.Production, inspect.Sandbox, "", first} {
			o.Purpose = purpose
			db, err := store.Open(ctx, o)
			refused := purpose != "" && (purpose == inspect.Sandbox) != (first == inspect.Sandbox)
			if (err != nil) != refused || refused && !strings.Contains(err.Error(), "sandbox") {
				t.Errorf("a database that was created for %q was opened for %q: %v", first, purpose, err)
			}
			if err == nil {
				if err := db.Close(); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// A database of an earlier version does not say what it is for, and a sandbox does not take it.
func TestOpen_WithoutAPurposeItIsProduction(t *testing.T) {
	o := storetest.Options(t)
	db := storetest.OpenAgain(t, o)
	err := db.InTx(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec(t.Context(), `DELETE FROM meta WHERE name = 'purpose'`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	o.Purpose = inspect.Sandbox
	if _, err := store.Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), "is not a sandbox") {
		t.Errorf("got %v", err)
	}
	o.Purpose = inspect.Production
	storetest.OpenAgain(t, o)
}
