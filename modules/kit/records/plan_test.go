package records

import (
	"strings"
	"testing"

	"kontor/modules/kit/list"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
	"kontor/store/storetest"
)

// Reading one record with the right to it asks the indexes of the record, of the grants and of the roles, however many
// of each there are.
func TestTable_ReadsByIndexes(t *testing.T) {
	db := storetest.Open(t)
	table := &Table[string]{
		Type: access.Customers, From: "customers", Columns: "id", Relations: []Relation{Created}, Missing: apierr.CustomerNotFound,
		Scan: func(row list.Row) (id string, err error) { return id, row.Scan(&id) },
	}
	got := strings.Join(storetest.Plan(t, db, table.statement(access.Read), store.NewID(), store.NewID()), "\n")
	for _, want := range []string{
		"SEARCH customers USING INDEX sqlite_autoindex_customers_1 (id=?)",
		"SEARCH g USING COVERING INDEX sqlite_autoindex_grants_2 (rec_id=? AND rec_type=? AND permission=? AND principal_id=?)",
		"SEARCH user_roles USING COVERING INDEX sqlite_autoindex_user_roles_1 (user_id=?)",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the plan lacks %q:\n%s", want, got)
		}
	}
	if strings.Contains(got, "SCAN g") || strings.Contains(got, "SCAN user_roles") {
		t.Errorf("a table of rights is read as a whole:\n%s", got)
	}
}
