package commands_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"kontor/store"
	"kontor/store/storetest"
)

// The ledger of a PostgreSQL database is written to a file and applied while nodes run. One that was changed is rejected.
func TestPrivacy_WritesAndAppliesALedgerOnPostgreSQL(t *testing.T) {
	db := storetest.OpenShared(t, nil)
	o := storetest.OptionsOf(t, db)
	environ := []string{"KONTOR_DATA_URL=" + o.URL, "KONTOR_SECRET_KEY=" + o.SecretKey}
	file := filepath.Join(t.TempDir(), "kontor.erasures")
	expectSuccess(t, run(environ, "", "privacy", "ledger", file), "was written to "+file)
	if content, err := os.ReadFile(file); err != nil || len(content) != 0 {
		t.Errorf("the ledger of a new database is %q, %v", content, err)
	}
	expectFailure(t, run(environ, "", "privacy", "ledger", file), "exists already")
	ledger := db.EncodeErasures([]store.Erasure{{ID: store.NewID(), Kind: "customer", Subject: store.NewID(), Reason: "request", By: store.NilID, At: db.Now()}})
	if err := os.WriteFile(file, ledger, 0o600); err != nil {
		t.Fatal(err)
	}
	applied := run(environ, "", "privacy", "apply", file)
	if applied.code != 0 || !bytes.Contains([]byte(applied.stdout), []byte("has 1 erasures; 0 were repeated")) {
		t.Errorf("got %+v", applied) // standard error warns of the erasure
	}
	if err := os.WriteFile(file, bytes.Replace(ledger, []byte("request"), []byte("order"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	expectFailure(t, run(environ, "", "privacy", "apply", file), "is not authentic")
}

func TestPrivacy_AppliesNoLedgerToADataDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kontor.erasures")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	expectFailure(t, run([]string{"KONTOR_DATA_DIR=" + t.TempDir()}, "", "privacy", "apply", file), "kontor restore --erasures")
}
