package audit_test

import (
	"path/filepath"
	"testing"

	"kontor/store"
	"kontor/store/storetest"
	"kontor/store/testenv"
)

// Two nodes export to one file. The leader writes each entry once; when it ends, the other node continues.
func TestNodes_ExportEachEntryOnce(t *testing.T) {
	databases := [2]*store.DB{storetest.OpenShared(t, nil)}
	databases[1] = storetest.Second(t, databases[0])
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	var stops [2]func()
	for i, db := range databases {
		stops[i] = startExport(t, db, path, "")
	}
	newest := func() (seq int64) {
		if err := databases[1].QueryRow(t.Context(), `SELECT COALESCE(MAX(seq), 0) FROM audit_trail`).Scan(&seq); err != nil {
			t.Fatal(err)
		}
		return seq
	}
	await(t, func() bool { return databases[0].Leads() || databases[1].Leads() })
	for _, db := range databases {
		writeChanges(t, db, 20)
	}
	await(t, func() bool { return exported(t, databases[1]) == newest() })
	leading, remaining := 0, 1
	if databases[1].Leads() {
		leading, remaining = 1, 0
	}
	stops[leading]()
	if err := databases[leading].Close(); err != nil {
		t.Fatal(err)
	}
	writeChanges(t, databases[remaining], 20)
	await(t, func() bool { return exported(t, databases[remaining]) == newest() })
	stops[remaining]()
	if r := verifyFile(t, databases[remaining], path, 1, newest()); r.Repeated != 0 {
		t.Errorf("%d entries were exported twice", r.Repeated)
	}
}

func exported(t *testing.T, db *store.DB) (seq int64) {
	t.Helper()
	if err := db.QueryRow(t.Context(), `SELECT COALESCE(MAX(seq), 0) FROM audit_exports`).Scan(&seq); err != nil {
		t.Fatal(err)
	}
	return seq
}

// await waits until a condition holds.
func await(t *testing.T, holds func() bool) {
	t.Helper()
	testenv.Wait(t, "the condition to hold", holds)
}
