package rbac

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"kontor/modules/kit/records"
	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/store"
)

// The last use of held roles and grants is known by the hour. Requests note in memory who has called which endpoint. A job of each
// node writes once a minute what is new, and finds the roles and grants that gave the access. So a request writes nothing, and a
// crash loses the uses of a minute.

const (
	useAccuracy = time.Hour
	// maxUses bounds the memory of a node. Further uses within a minute are not noted.
	maxUses = 50_000
	// useBatch is the number of uses that one transaction writes, so that other writes do not wait long.
	useBatch = 200
)

// use is the call of an endpoint by a user within an hour. The record is named only if no right to its type gave the access.
type use struct {
	user, endpoint, recType, recID string
	permission                     access.Permission
	hour                           store.Time
}

// uses are the calls of the last hour.
type uses struct {
	mu      sync.Mutex
	written map[use]bool // false: noted since the last write
}

// note remembers a use. It copies the texts, which belong to a request.
func (u *uses) note(n use) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, known := u.written[n]; known || len(u.written) >= maxUses {
		return
	}
	n.user, n.recID = strings.Clone(n.user), strings.Clone(n.recID)
	if u.written == nil {
		u.written = map[use]bool{}
	}
	u.written[n] = false
}

// take returns the uses that are not written, and forgets those of former hours, or all written ones when there are many.
func (u *uses) take(hour store.Time) (fresh []use) {
	u.mu.Lock()
	defer u.mu.Unlock()
	many := len(u.written) > maxUses/2
	for n, written := range u.written {
		switch {
		case !written:
			fresh = append(fresh, n)
		case many || n.hour != hour:
			delete(u.written, n)
		}
	}
	return fresh
}

func (u *uses) markWritten(some []use) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, n := range some {
		u.written[n] = true
	}
}

// NoteUse remembers that a user has called an endpoint with success. The last of the path's values is the record of the call.
func (s *Service) NoteUse(caller *access.Caller, row *endpoint.Endpoint, key string, values []string) {
	if caller.UserID == "" || !row.Access.TakesBearer() {
		return
	}
	n := use{user: caller.UserID, endpoint: key, hour: s.hour()}
	if t, permission, ok := row.Access.Record(); ok {
		n.recType, n.permission = t.Name, permission
		if len(values) > 0 && !caller.May(t, permission) {
			n.recID = strings.ToLower(values[len(values)-1])
		}
	}
	s.uses.note(n)
}

// hour returns the beginning of the present hour.
func (s *Service) hour() store.Time {
	now := s.db.Now()
	return now - now%store.Time(useAccuracy.Milliseconds())
}

// upsertUses stores the use of all roles and grants that give a user, $1, an endpoint, $4, and a permission, $6 or $7, on a type, $5,
// or on a record, $8.
const upsertUses = `
	INSERT INTO right_uses (right_id, used_at)
	SELECT DISTINCT id, CAST($2 AS BIGINT) FROM (
		SELECT h.user_id || ':' || h.role_id AS id FROM held_roles h
		WHERE h.user_id = $1 AND (h.role_id = $3 OR EXISTS (
			SELECT 1 FROM endpoint_grants e WHERE e.principal_id = h.role_id AND e.endpoint = $4))
		UNION ALL
		SELECT e.id FROM endpoint_grants e WHERE e.endpoint = $4 AND e.principal_id IN (` + records.Principals + `)
		UNION ALL
		SELECT g.id FROM grant_records g
		WHERE g.rec_id IS NULL AND g.rec_type = $5 AND g.in_force = TRUE AND COALESCE(g.role_id, g.user_id) IN (` + records.Principals + `)
			AND (',' || g.permissions || ',' LIKE $6 OR ',' || g.permissions || ',' LIKE $7)
		UNION ALL
		SELECT g.id FROM grant_records g
		WHERE g.rec_id = $8 AND g.rec_type = $5 AND g.in_force = TRUE AND COALESCE(g.role_id, g.user_id) IN (` + records.Principals + `)
			AND ',' || g.permissions || ',' LIKE $6
	) used WHERE TRUE
	ON CONFLICT (right_id) DO UPDATE SET used_at = excluded.used_at WHERE right_uses.used_at < excluded.used_at`

// FlushUses writes the uses that were noted since the last call. Call it about once a minute on every node, and at the stop. The times
// leave no audit entry.
func (s *Service) FlushUses(ctx context.Context) error {
	fresh := s.uses.take(s.hour())
	for len(fresh) > 0 {
		some := fresh[:min(len(fresh), useBatch)]
		err := s.db.InTx(ctx, func(tx *store.Tx) error {
			for _, n := range some {
				containing := func(p access.Permission) string { return "%," + p.String() + ",%" }
				_, err := tx.Exec(ctx, upsertUses, n.user, n.hour, access.Administrator, n.endpoint, n.recType,
					containing(n.permission), containing(includes(n.permission)), n.recID)
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("write the last use of rights: %w", err)
		}
		s.uses.markWritten(some)
		fresh = fresh[len(some):]
	}
	return nil
}

// deleteOldUses deletes the uses of rights that were removed.
const deleteOldUses = `DELETE FROM right_uses WHERE right_id NOT IN (SELECT id FROM reviewed_rights)`

// PurgeUses deletes the uses of rights that were removed. Call it about once a day, on one node.
func (s *Service) PurgeUses(ctx context.Context) error {
	return s.db.InTx(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec(ctx, deleteOldUses)
		return err
	})
}
