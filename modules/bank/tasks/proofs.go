package tasks

import (
	"context"
	"slices"

	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/store"
)

// Proofs returns how the audit trail digests the records of this module. The time and user of the last update are not covered:
// the audit entry of the update has them.
func Proofs() []records.Proof { return []records.Proof{proof()} }

func proof() records.Proof {
	p := table.Proof()
	p.Read, p.Changes = readRecord, &store.ChangeRule{Omit: []string{"metadata.logs", "erased_at"}, Forget: true}
	return p
}

// storedTask holds the columns of a task that the API does not show.
type storedTask struct {
	Version     int64    `json:"version"`
	GivenWeight int64    `json:"given_weight"`
	TitleKey    string   `json:"title_key"`
	Members     []string `json:"members"` // its creator and its assignees
}

// audited returns a decoded task as the audit trail digests it.
func audited(t Task) store.Record {
	members := append(t.users(), t.CreatedBy)
	slices.Sort(members)
	return store.Record{Answer: t, Stored: storedTask{t.version, t.givenWeight, types.Fold(t.Title), slices.Compact(members)}}
}

const (
	selectTitleKey = `SELECT title_key FROM tasks WHERE id = $1`
	selectMembers  = `SELECT user_id FROM task_members WHERE task_id = $1 ORDER BY user_id`
)

// readRecord reads a task with its members and derived column as they are stored.
func readRecord(ctx context.Context, q store.Querier, id string) (store.Record, error) {
	t, err := scanTask(q.QueryRow(ctx, `SELECT `+columns+` FROM tasks WHERE id = $1`, id))
	if err != nil {
		return store.Record{}, err
	}
	s := storedTask{Version: t.version, GivenWeight: t.givenWeight}
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
