package audit_test

import (
	"os"
	"path/filepath"
	"testing"

	"kontor/store"
	"kontor/store/audittrail"
)

// startExport starts an export. The returned function exports the remaining entries and ends it.
func startExport(t *testing.T, db *store.DB, file, syslogURL string) (stop func()) {
	t.Helper()
	service := newService(t, db)
	if err := service.StartExport(file, syslogURL); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		await(t, db.Leads) // another node would export
		if err := service.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// verifyFile verifies an exported file and checks its first and last entry.
func verifyFile(t *testing.T, db *store.DB, path string, from, to int64) audittrail.ExportReport {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r, err := audittrail.VerifyExport(file, db.ExportKey())
	if err != nil || r.From != from || r.To != to {
		t.Fatalf("%s: got %+v, %v, want entries %d to %d", path, r, err, from, to)
	}
	return r
}

func TestExportFile_ContinuesWhereItStopped(t *testing.T) {
	db := open(t)
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	writeChanges(t, db, 3)
	startExport(t, db, path, "")()
	verifyFile(t, db, path, 1, 3)
	writeChanges(t, db, 2)
	stop := startExport(t, db, path, "")
	writeChanges(t, db, 2)
	stop()
	if r := verifyFile(t, db, path, 1, 7); r.Repeated != 0 {
		t.Errorf("got %+v", r)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v", info, err)
	}
}

// Log rotation renames the file: later entries go to a new file, and both files verify.
func TestExportFile_AllowsRenaming(t *testing.T) {
	db := open(t)
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	writeChanges(t, db, 3)
	startExport(t, db, path, "")()
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	writeChanges(t, db, 2)
	startExport(t, db, path, "")()
	verifyFile(t, db, path+".1", 1, 3)
	verifyFile(t, db, path, 4, 5)
}

// A crash before the position is stored repeats a batch. A crash during a write leaves an incomplete line.
func TestExportFile_ContinuesAfterACrash(t *testing.T) {
	db := open(t)
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	writeChanges(t, db, 3)
	startExport(t, db, path, "")()
	err := db.InTx(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec(t.Context(), `UPDATE audit_exports SET seq = 1`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString(`{"seq":4,"fo`); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	writeChanges(t, db, 1)
	startExport(t, db, path, "")()
	if r := verifyFile(t, db, path, 1, 4); r.Repeated != 2 {
		t.Errorf("got %+v", r)
	}
}

func TestExportFile_RetriesAfterAnError(t *testing.T) {
	db := open(t)
	dir := filepath.Join(t.TempDir(), "later")
	path := filepath.Join(dir, "audit.jsonl")
	writeChanges(t, db, 3)
	startExport(t, db, path, "")()
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	startExport(t, db, path, "")()
	verifyFile(t, db, path, 1, 3)
}

func TestStartExport_RejectsInvalidAddresses(t *testing.T) {
	db := open(t)
	for _, address := range []string{"logs.example", "http://logs.example", "tls://", ":"} {
		if err := newService(t, db).StartExport("", address); err == nil {
			t.Errorf("%q was accepted", address)
		}
	}
}
