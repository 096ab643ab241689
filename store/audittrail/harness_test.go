package audittrail_test

import (
	"strings"
	"testing"

	"kontor/store"
	"kontor/store/storetest"
)

// run changes a closed database without the store. On PostgreSQL the triggers are disabled meanwhile and need not be dropped.
func run(t testing.TB, o store.Options, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if !strings.HasPrefix(s, "DROP TRIGGER") || !storetest.OnPostgreSQL() {
			storetest.Change(t, o, s)
		}
	}
}

// exec runs statements in an open database.
func exec(t testing.TB, db *store.DB, statements ...string) {
	t.Helper()
	err := db.InTx(t.Context(), func(tx *store.Tx) error {
		for _, s := range statements {
			if _, err := tx.Exec(t.Context(), s); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
