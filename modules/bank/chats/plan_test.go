package chats

import (
	"fmt"
	"strings"
	"testing"

	"kontor/store"
	"kontor/store/storetest"
)

// The statements that read chats and messages use the indexes of their tables, and of those behind the published views.
func TestStatements_UseIndexes(t *testing.T) {
	if storetest.SQLiteOnly(t, "query plans are in the words of SQLite") {
		return
	}
	db := storetest.Open(t)
	ids := store.AppendIn([]any{store.NewID()}, []string{store.NewID(), store.NewID()})
	for _, c := range []struct {
		name, statement string
		args            []any
		want            []string
	}{
		{"cursors", fmt.Sprintf(selectCursorsStatement, ""), []any{store.NewID(), 10, 0, 0, ""}, []string{
			"SEARCH t USING COVERING INDEX chat_participants_user_id_idx (user_id=?)",
			"SEARCH grants USING COVERING INDEX grants_principal_id_idx (principal_id=? AND rec_type=? AND permission=?)",
			"SEARCH user_roles USING COVERING INDEX user_roles_in_force_idx (user_id=?)",
		}},
		{"chats", selectChatsStatement + store.In(2, 2) + ")", ids, []string{"SEARCH c USING INDEX sqlite_autoindex_chats_1 (id=?)"}},
		{"messages", fmt.Sprintf(selectMessagesByID, store.In(1, 2)), ids[1:], []string{"SEARCH chat_messages USING INDEX sqlite_autoindex_chat_messages_1 (id=?)"}},
		{"readers", fmt.Sprintf(selectReaders, store.In(1, 2)), ids[1:], []string{
			"SEARCH chat_participants USING COVERING INDEX chat_participants_read_seq_idx (chat_id=?)",
		}},
	} {
		plan := strings.Join(storetest.Plan(t, db, c.statement, c.args...), "\n")
		for _, want := range c.want {
			if !strings.Contains(plan, want) {
				t.Errorf("%s: the plan lacks %q:\n%s", c.name, want, plan)
			}
		}
		if strings.Contains(plan, "SCAN grants") || strings.Contains(plan, "SCAN user_roles") || strings.Contains(plan, "SCAN chat") {
			t.Errorf("%s: a table is read as a whole:\n%s", c.name, plan)
		}
	}
}
