package audittrail_test

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kontor/store"
	"kontor/store/storetest"
)

// run changes a closed database without the store.
func run(t testing.TB, dir string, statements ...string) {
	t.Helper()
	for _, s := range statements {
		storetest.Tamper(t, filepath.Join(dir, "kontor.db"), s)
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

// masterKey reads the master key of a data directory.
func masterKey(t testing.TB, dir string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "secret.key"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return key
}
