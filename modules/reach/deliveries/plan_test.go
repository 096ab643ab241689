package deliveries_test

import (
	"slices"
	"strings"
	"testing"

	"kontor/modules/reach/deliveries"
	"kontor/store/storetest"
)

// Each statement that runs often must find its rows by an index.
func TestStatements_UseIndexes(t *testing.T) {
	if storetest.SQLiteOnly(t, "query plans are in the words of SQLite") {
		return
	}
	db := storetest.Open(t)
	for name, statement := range deliveries.Statements() {
		plan := storetest.PlanOfNulls(t, db, statement)
		if slices.ContainsFunc(plan, func(step string) bool { return strings.HasPrefix(step, "SCAN deliveries") }) {
			t.Errorf("%s: %s\n%s", name, statement, strings.Join(plan, "\n"))
		}
	}
}
