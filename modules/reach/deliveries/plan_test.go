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
		args := 0
		for n := 1; strings.Contains(statement, "$"+string(rune('0'+n))); n++ {
			args = n
		}
		plan := storetest.Plan(t, db, statement, make([]any, args)...)
		if slices.ContainsFunc(plan, func(step string) bool { return strings.HasPrefix(step, "SCAN deliveries") }) {
			t.Errorf("%s: %s\n%s", name, statement, strings.Join(plan, "\n"))
		}
	}
}
