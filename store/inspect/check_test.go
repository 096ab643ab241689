package inspect_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"kontor/store"
	"kontor/store/inspect"
	"kontor/store/storetest"
)

func TestCheck_WorksBesideARunningProcess(t *testing.T) {
	dir := storetest.Dir(t)
	db := storetest.OpenDir(t, dir)
	storetest.Audit(t, db, 5)
	report, err := inspect.Check(t.Context(), inspect.Source{Dir: dir}, nil)
	if err != nil || report.AuditEntries != 5 || report.Schema < 1 || report.Bytes == 0 || !report.KeyChecked {
		t.Errorf("report %+v, err %v", report, err)
	}
}

func TestCheck_NamesTheFault(t *testing.T) {
	dir := storetest.Dir(t)
	storetest.Tamper(t, filepath.Join(dir, "kontor.db"), `INSERT INTO user_roles (user_id, role_id, created_at, created_by) VALUES ('u', 'missing', 0, '')`)
	if _, err := inspect.Check(t.Context(), inspect.Source{Dir: dir}, nil); !errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), "user_roles") {
		t.Errorf("got %v, want the row of user_roles", err)
	}
	if _, err := inspect.Check(t.Context(), inspect.Source{Dir: t.TempDir()}, nil); err == nil {
		t.Error("an empty directory was found good")
	}
	if _, err := inspect.Check(t.Context(), inspect.Source{Dir: dir, SecretKey: strings.Repeat("ab", 32)}, nil); !errors.Is(err, store.ErrWrongKey) {
		t.Errorf("got %v, want ErrWrongKey", err)
	}
}
