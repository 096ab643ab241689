package notifications_test

import (
	"strings"
	"testing"

	"kontor/modules/reach/notifications"
	"kontor/server/access"
	"kontor/store"
	"kontor/store/storetest"
)

// Each statement that runs often must find its rows by an index.
func TestStatements_UseIndexes(t *testing.T) {
	if storetest.SQLiteOnly(t, "query plans are in the words of SQLite") {
		return
	}
	db := storetest.Open(t)
	notify(t, db, service(t, db), customerEvent(newIDs(50)...))
	caller := access.Caller{UserID: store.NewID()}
	granted := notifications.Visible(&caller)
	own := " FROM notifications WHERE (deleted = FALSE) AND ((" + granted.Any[0] + ") OR id IN (" + granted.Granted + "))"
	statements := notifications.Statements()
	statements["count of a user"] = "SELECT count(*)" + own
	statements["count of the unread of a user"] = "SELECT count(*)" + own + " AND read = FALSE"
	statements["of one customer"] = `SELECT id FROM notifications WHERE (deleted = FALSE) AND customer_id = $1 ORDER BY created_at DESC, id DESC LIMIT 10`
	statements["of all"] = `SELECT id FROM notifications WHERE (deleted = FALSE) ORDER BY created_at DESC, id DESC LIMIT 10`
	for name, statement := range statements {
		plan := storetest.PlanOfNulls(t, db, statement)
		for _, step := range plan {
			whole := strings.HasPrefix(step, "SCAN notifications") || strings.Contains(step, "TEMP B-TREE FOR ORDER BY")
			if whole && name != "of all" {
				t.Errorf("%s: %s\n%s", name, statement, strings.Join(plan, "\n"))
				break
			}
		}
	}
}

// The sorts, searches and values of a list of all notifications must not sort or read them all.
func TestList_SortsAndFiltersUseIndexes(t *testing.T) {
	if storetest.SQLiteOnly(t, "query plans are in the words of SQLite") {
		return
	}
	db := storetest.Open(t)
	const all = " FROM notifications WHERE (deleted = FALSE)"
	for statement, want := range map[string]string{
		"SELECT id" + all + " AND sent_at IS NOT NULL ORDER BY sent_at, created_at, id LIMIT 10":                  "USING COVERING INDEX notifications_sent_at_idx",
		"SELECT id" + all + " AND sent_at IS NOT NULL ORDER BY sent_at DESC NULLS LAST, created_at DESC LIMIT 10": "USING COVERING INDEX notifications_sent_at_idx",
		"SELECT id" + all + " AND sent_at IS NULL ORDER BY created_at, id LIMIT 10":                               "USING COVERING INDEX notifications_created_at_idx",
		"SELECT id" + all + " AND read = TRUE ORDER BY created_at DESC, id DESC LIMIT 10":                         "USING COVERING INDEX notifications_created_at_idx",
		"SELECT id" + all + " AND rec_type = $1 ORDER BY created_at DESC, id DESC LIMIT 10":                       "USING COVERING INDEX notifications_created_at_idx",
		"SELECT id" + all + " AND event <> '' ORDER BY created_at DESC, id DESC LIMIT 10 OFFSET 100000":           "USING COVERING INDEX notifications_created_at_idx",
		"SELECT content, count(*)" + all + " AND content_low <> '' AND content_low > '' GROUP BY 1":               "USING INDEX notifications_content_idx",
	} {
		plan := strings.Join(storetest.PlanOfNulls(t, db, statement), "; ")
		if !strings.Contains(plan, want) || strings.Contains(plan, "TEMP B-TREE FOR ORDER BY") {
			t.Errorf("%s: %s; want %s", statement, plan, want)
		}
	}
}
