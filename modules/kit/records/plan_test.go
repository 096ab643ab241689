package records

import (
	"slices"
	"strings"
	"testing"

	"kontor/modules/kit/list"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
	"kontor/store/storetest"
)

func newCustomers() *Table[string] {
	return &Table[string]{
		Type: access.Customers, From: "customers", Columns: "id", Relations: []Relation{Creator(access.Customers, "customers")}, Missing: apierr.CustomerNotFound,
		Scan: func(row list.Row) (id string, err error) { return id, row.Scan(&id) },
	}
}

// Reading one record with its access check uses the indexes of the records, the grants and the roles.
func TestTable_ReadsByIndexes(t *testing.T) {
	if storetest.SQLiteOnly(t, "query plans are in the words of SQLite") {
		return
	}
	db := storetest.Open(t)
	got := strings.Join(storetest.Plan(t, db, newCustomers().statement(access.Read), store.NewID(), store.NewID()), "\n")
	for _, want := range []string{
		"SEARCH customers USING INDEX sqlite_autoindex_customers_1 (id=?)",
		"SEARCH grants USING COVERING INDEX sqlite_autoindex_grants_2 (rec_id=? AND rec_type=? AND permission=? AND principal_id=?)",
		"SEARCH user_roles USING COVERING INDEX user_roles_in_force_idx (user_id=?)",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the plan lacks %q:\n%s", want, got)
		}
	}
	if strings.Contains(got, "SCAN grants") || strings.Contains(got, "SCAN user_roles") {
		t.Errorf("a table of grants or roles is scanned:\n%s", got)
	}
}

// The published views cost nothing: statements that read them have the same plans as statements that read the tables.
func TestViews_HaveThePlansOfTheirTables(t *testing.T) {
	if storetest.SQLiteOnly(t, "query plans are in the words of SQLite") {
		return
	}
	db := storetest.Open(t)
	granted, tables := GrantedIDs(access.Customers, access.Read)
	for name, c := range map[string]struct {
		sql  string
		args []any
	}{
		"one record":         {newCustomers().statement(access.Update), []any{"user", "record"}},
		"grants on a record": {selectGrant, []any{"user", "record", "customers", "read"}},
		"granted records":    {granted, []any{"user"}},
	} {
		below := strings.NewReplacer("permissions p", "grants", " p.", " grants.", "permissions a", "grants a", "held_roles", "user_roles").Replace(c.sql)
		if below == c.sql || strings.Contains(below, "held_roles") {
			t.Fatalf("%s: the statement does not read a view: %s", name, c.sql)
		}
		got, want := storetest.Plan(t, db, c.sql, c.args...), storetest.Plan(t, db, below, c.args...)
		for i := range got { // the roles in force have an index of their own, or are read by that of the roles held
			got[i] = strings.ReplaceAll(got[i], "user_roles_in_force_idx", "sqlite_autoindex_user_roles_1")
			got[i] = strings.ReplaceAll(got[i], "USING INDEX sqlite_autoindex_user_roles_1", "USING COVERING INDEX sqlite_autoindex_user_roles_1")
		}
		for i := range want { // a plan has the name of a table's alias, and of a view's table
			want[i] = strings.NewReplacer("SEARCH h ", "SEARCH user_roles ", "SEARCH a ", "SEARCH grants ").Replace(want[i])
		}
		if !slices.Equal(withoutNumbers(got), withoutNumbers(want)) {
			t.Errorf("%s: the plan is\n%s\nwith the tables it is\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	for view, table := range map[string]string{"permissions": tables[0], "held_roles": tables[1]} {
		if plan := strings.Join(storetest.Plan(t, db, "SELECT * FROM "+view), "\n"); !strings.HasPrefix(plan, "SCAN "+table) {
			t.Errorf("%s is read as %q: totals are counted again when %s changes", view, plan, table)
		}
	}
}

// withoutNumbers removes the numbers of subqueries: a flattened view takes one.
func withoutNumbers(plan []string) []string {
	var lines []string
	for _, line := range plan {
		lines = append(lines, strings.TrimRight(line, "0123456789"))
	}
	return lines
}
