package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kontor/store"
	"kontor/store/audittrail"
	"kontor/store/backup"
	"kontor/store/inspect"
)

// runOutside changes a closed database without updating the checksums.
func runOutside(t *testing.T, dir, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, "kontor.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

// A change by another program leaves a page with a wrong checksum. The check names the change as well as the page.
func TestCheck_NamesChangesByAnotherProgram(t *testing.T) {
	errChanged := errors.New("the record differs")
	for _, c := range []struct {
		statement string
		want      error
	}{
		{"UPDATE roles SET name = 'x' || name WHERE id = 'role 250'", errChanged},
		{"DELETE FROM meta WHERE name = 'audit_head'", nil},
		{"UPDATE roles SET description = 'y' WHERE id = 'role 250'", store.ErrCorrupt},
	} {
		dir := filled(t)
		runOutside(t, dir, c.statement)
		_, err := inspect.Check(t.Context(), inspect.Source{Dir: dir}, func(ctx context.Context, e *audittrail.Evidence) error {
			var name string
			if err := e.QueryRow(ctx, "SELECT name FROM roles WHERE id = 'role 250'").Scan(&name); err != nil {
				return err
			}
			if name != "role 250" {
				return fmt.Errorf("roles/role 250: %w", errChanged)
			}
			return nil
		})
		var broken *audittrail.Break
		if !errors.Is(err, store.ErrCorrupt) || c.want != nil && !errors.Is(err, c.want) || c.want == nil && !errors.As(err, &broken) {
			t.Errorf("%s: the check says %v", c.statement, err)
		}
		if err != nil && strings.Contains(err.Error(), "no such file") {
			t.Errorf("%s: the error of another call is in %v", c.statement, err)
		}
	}
}

// A check and a backup say what to do after an interrupted restore or first start.
func TestCheck_NamesAnInterruptedRestore(t *testing.T) {
	for name, says := range map[string]string{
		"kontor.db.restoring": "was interrupted: run it again",
		"kontor.db.new":       "was cut off: start the server once",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := inspect.Check(t.Context(), inspect.Source{Dir: dir}, nil); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("the check says %v", err)
		}
		_, err := backup.Create(t.Context(), inspect.Source{Dir: dir}, filepath.Join(t.TempDir(), "x.backup"), backup.Options{})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("the backup says %v", err)
		}
	}
}

// A closed database in a read-only directory can be checked and backed up.
func TestCheck_InADirectoryThatCannotBeWritten(t *testing.T) {
	if os.Geteuid() == 0 { // permissions do not apply to the superuser
		runAsNobody(t)
		return
	}
	dir := filled(t)
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(dir, 0o700)
	if _, err := inspect.Check(t.Context(), inspect.Source{Dir: dir}, nil); err != nil {
		t.Errorf("check: %v", err)
	}
	if _, err := backup.Create(t.Context(), inspect.Source{Dir: dir}, filepath.Join(t.TempDir(), "x.backup"), backup.Options{}); err != nil {
		t.Errorf("backup: %v", err)
	}
}
