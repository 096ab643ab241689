package tasks

import (
	"context"
	"slices"

	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/store"
)

// Proofs declare how the audit trail knows what this module keeps. Not covered: when and by whom a task was updated last,
// which the entry of the update names.
func Proofs() []records.Proof { return []records.Proof{proof()} }

func proof() records.Proof {
	p := table.Proof()
	p.Read = readProven
	return p
}

// storedTask is what the database keeps of a task and the API does not show.
type storedTask struct {
	Version     int64    `json:"version"`
	GivenWeight int64    `json:"given_weight"`
	TitleKey    string   `json:"title_key"`
	Members     []string `json:"members"` // who reads the task: its creator and its assignees
}

// audited is a task whose parts are known, as the audit trail knows it.
func audited(t Task) store.Record {
	members := append(t.users(), t.CreatedBy)
	slices.Sort(members)
	return store.Record{Answer: t, Stored: storedTask{t.version, t.given, types.Fold(t.Title), slices.Compact(members)}}
}

const (
	selectTitleKey = `SELECT title_key FROM tasks WHERE id = $1`
	selectMembers  = `SELECT user_id FROM task_members WHERE task_id = $1 ORDER BY user_id`
)

// readProven reads a task with its members and the derived column as they are stored.
func readProven(ctx context.Context, q store.Querier, id string) (store.Record, error) {
	t, err := scanTask(q.QueryRow(ctx, `SELECT `+columns+` FROM tasks WHERE id = $1`, id))
	if err != nil {
		return store.Record{}, err
	}
	s := storedTask{Version: t.version, GivenWeight: t.given}
	if err := q.QueryRow(ctx, selectTitleKey, id).Scan(&s.TitleKey); err != nil {
		return store.Record{}, err
	}
	rows, err := q.Query(ctx, selectMembers, id)
	if err != nil {
		return store.Record{}, err
	}
	defer rows.Close()
	for rows.Next() {
		var userID string
		if err := rows.Scan(&userID); err != nil {
			return store.Record{}, err
		}
		s.Members = append(s.Members, userID)
	}
	return store.Record{Answer: t, Stored: s}, rows.Err()
}
