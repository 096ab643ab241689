package audit_test

import (
	"slices"
	"strings"
	"testing"

	"kontor/store/storetest"
)

// Statements on the view audit_trail have the query plans of the same statements on the table.
func TestAuditTrail_HasThePlansOfItsTable(t *testing.T) {
	if storetest.SQLiteOnly(t, "query plans are in the words of SQLite") {
		return
	}
	db := open(t)
	for _, statement := range []string{
		"SELECT COUNT(*) FROM audit_trail",
		"SELECT COALESCE(MAX(seq), 0) FROM audit_trail",
		"SELECT seq, at FROM audit_trail ORDER BY seq DESC LIMIT 10 OFFSET 5",
		"SELECT seq, at FROM audit_trail WHERE actor = $1 ORDER BY seq DESC LIMIT 10",
		"SELECT seq, at FROM audit_trail WHERE kind = $1 ORDER BY seq DESC LIMIT 10",
		"SELECT seq, at FROM audit_trail WHERE rec_id = $1 ORDER BY seq DESC LIMIT 10",
	} {
		var args []any
		if strings.Contains(statement, "$1") {
			args = append(args, "x")
		}
		view := storetest.Plan(t, db, statement, args...)
		table := storetest.Plan(t, db, strings.ReplaceAll(statement, "audit_trail", "audit_entries"), args...)
		if !slices.Equal(view, table) {
			t.Errorf("%s\nview:  %v\ntable: %v", statement, view, table)
		}
	}
}
