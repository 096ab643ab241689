package rbac

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/ratelimit"
	"kontor/store"
)

// The functions of this file answer other programs, which ask by the module authzen.

// Ask decides checks for a subject, in their order, on records of Kontor and of other applications. It denies unknown types,
// permissions and records of Kontor. asking is the caller of the request: who may not ask about others learns of no record whether it
// exists, as in POST /v1/rbac/check.
func (s *Service) Ask(ctx context.Context, asking, subject *access.Caller, checks []access.Check) ([]access.Decision, error) {
	decisions := make([]access.Decision, len(checks))
	var own []access.Check
	var at []int
	external := map[access.Check][]int{} // by type and permission
	for i, c := range checks {
		if id, err := types.ParseID(c.RecID); err == nil {
			c.RecID = id
		}
		decisions[i] = denied
		if _, known := access.LookupType(c.RecType); known {
			own, at = append(own, c), append(at, i)
			continue
		}
		key := access.Check{RecType: c.RecType, Permission: c.Permission}
		external[key] = append(external[key], i)
	}
	found, err := s.Decide(ctx, subject, own)
	if err != nil {
		return nil, err
	}
	for i, d := range found {
		if d.Missing && !s.MayAskAboutOthers(asking) && !s.learnsExistence(asking, own[i].RecType) {
			d = onType(subject, own[i])
		}
		decisions[at[i]] = d
	}
	for key, places := range external {
		if err := s.decideExternal(ctx, subject, key, checks, places, decisions); err != nil {
			return nil, fmt.Errorf("grants on records of other applications: %w", err)
		}
	}
	return decisions, nil
}

// MayAskAboutOthers reports whether a caller may ask what other users may do: readers of all grants could find it out themselves.
func (s *Service) MayAskAboutOthers(caller *access.Caller) bool {
	return caller.May(access.Grants, access.ReadAll)
}

// decideExternal decides the checks at some places, which are about one permission on one record type of another application.
func (s *Service) decideExternal(ctx context.Context, subject *access.Caller, key access.Check, checks []access.Check, places []int, decisions []access.Decision) error {
	declared, err := externalPermissions(ctx, s.db, key.RecType)
	if err != nil || !slices.Contains(declared, key.Permission) {
		return err
	}
	ids := []string{""}
	for _, i := range places {
		ids = append(ids, externalID(checks[i].RecID))
	}
	held, err := externalGrantsOn(ctx, s.db, subject, key.RecType, key.Permission, unique(ids))
	if err != nil {
		return err
	}
	for _, i := range places {
		decisions[i] = externalDecision(subject, held[externalID(checks[i].RecID)], held[""])
	}
	return nil
}

// externalID returns the id of a record as grants name it: the nil id stands for the type as a whole.
func externalID(id string) string {
	if id == store.NilID {
		return ""
	}
	return id
}

// externalDecision names the source of a permission in the order of [Decision].
func externalDecision(subject *access.Caller, onRecord, onType grantHolders) access.Decision {
	role, user := access.Decision{Allowed: true, Source: sourceRole}, access.Decision{Allowed: true, Source: sourceUser, SourceID: subject.UserID}
	switch {
	case onRecord.user:
		return user
	case onRecord.role != "":
		role.SourceID = onRecord.role
	case subject.Administrator():
		role.SourceID = access.Administrator
	case onType.role != "":
		role.SourceID = onType.role
	case onType.user:
		return user
	default:
		return denied
	}
	return role
}

// Actions returns the names of the permissions on a record type, in a fixed order; none for an unknown type.
func (s *Service) Actions(ctx context.Context, recType string) ([]string, error) {
	if _, own := access.LookupType(recType); own {
		return access.All.Names(), nil
	}
	return externalPermissions(ctx, s.db, recType)
}

const selectExternalRecords = `
	SELECT DISTINCT rec_id FROM external_grants WHERE rec_type = $1 AND rec_id > $2 AND rec_id <> '' ORDER BY rec_id LIMIT $3`

const selectExternalRecordsOf = `
	SELECT rec_id FROM external_grants
	WHERE principal_id = $1 AND rec_type = $2 AND permission = $3 AND rec_id > $4 AND rec_id <> '' ORDER BY rec_id LIMIT $5`

// Resources returns the ids of records of a type on which a subject has a permission, in their order. A permission on the type as a
// whole is one on all records. Of a type of Kontor they are listed only to callers who may read all records of the type: otherwise
// a subject with more rights would list them. Of another application's type they are those that any grant names.
func (s *Service) Resources(ctx context.Context, asking, subject *access.Caller, recType, permission, after string, limit int) ([]string, error) {
	t, own := access.LookupType(recType)
	if own {
		wanted, known := access.ParsePermission(permission)
		owner := s.recordsOf(t)
		if !known || owner == nil {
			return nil, nil
		}
		all := subject.May(t, wanted) && asking.May(t, access.ReadAll)
		return owner.Permitted(ctx, access.Sought{Caller: subject, Wanted: wanted, All: all, After: after, Limit: limit})
	}
	onType, err := s.Ask(ctx, asking, subject, []access.Check{{RecType: recType, Permission: permission}})
	if err != nil {
		return nil, err
	}
	if onType[0].Allowed {
		return store.All(ctx, s.db, store.Text, selectExternalRecords, recType, after, limit)
	}
	declared, err := externalPermissions(ctx, s.db, recType)
	if err != nil || !slices.Contains(declared, permission) {
		return nil, err
	}
	var found []string
	for _, principal := range principalsOf(subject) {
		ids, err := store.All(ctx, s.db, store.Text, selectExternalRecordsOf, principal, recType, permission, after, limit)
		if err != nil {
			return nil, err
		}
		found = append(found, ids...)
	}
	found = unique(found)
	return found[:min(len(found), limit)], nil
}

// Subjects returns the ids of the active users of a kind who have a permission on a record, in their order. It leaves out users whom
// the caller may not list, and all but the caller for those who may not ask about others.
func (s *Service) Subjects(ctx context.Context, asking *access.Caller, kind string, c access.Check, after string, limit int) ([]string, error) {
	if id, err := types.ParseID(c.RecID); err == nil {
		c.RecID = externalID(id)
	}
	var holders, visible list.Where
	var err error
	if t, own := access.LookupType(c.RecType); own {
		holders, err = s.ownHolders(ctx, t, c)
	} else {
		holders, err = s.externalHolders(ctx, c)
	}
	if err != nil || holders.SQL == "" {
		return nil, err
	}
	switch {
	case !s.MayAskAboutOthers(asking):
		visible.SQL = `id = $1`
	case !asking.May(access.Users, access.ReadAll):
		granted, _ := records.GrantedIDs(access.Users, access.Read)
		visible.SQL = `(id = $1 OR id IN (` + granted + `))`
	default:
		visible.SQL = `$1 = $1`
	}
	args := append(append([]any{asking.UserID}, holders.Args...), kind, after, limit)
	n := len(args)
	statement := fmt.Sprintf(`SELECT id FROM people WHERE %s AND %s AND status = 'active' AND kind = $%d AND id > $%d ORDER BY id LIMIT $%d`,
		visible.SQL, holders.After(1).SQL, n-2, n-1, n)
	return store.All(ctx, s.db, store.Text, statement, args...)
}

// ownHolders returns the condition that a user has a permission on a record of Kontor, or on the type as a whole; an empty one if no user
// can have it.
func (s *Service) ownHolders(ctx context.Context, t access.RecordType, c access.Check) (list.Where, error) {
	permission, known := access.ParsePermission(c.Permission)
	if !known {
		return list.Where{}, nil
	}
	related := map[string][]string{}
	if c.RecID != "" {
		owner := s.recordsOf(t)
		if owner == nil {
			return list.Where{}, nil
		}
		found, exists, err := owner.Related(ctx, c.RecID, permission)
		if err != nil || !exists {
			return list.Where{}, err
		}
		related = found
	}
	return holders(explainInput{ID: c.RecID, recordType: t, permission: permission}, related), nil
}

// externalHolders returns the condition that a user has a permission on another application's record.
func (s *Service) externalHolders(ctx context.Context, c access.Check) (list.Where, error) {
	declared, err := externalPermissions(ctx, s.db, c.RecType)
	if err != nil || !slices.Contains(declared, c.Permission) {
		return list.Where{}, err
	}
	const principals = `SELECT e.principal_id FROM external_grants e WHERE e.rec_type = $1 AND e.rec_id IN ($2, '') AND e.permission = $3`
	return list.Where{
		SQL:  `(id IN (` + principals + `) OR id IN (SELECT h.user_id FROM held_roles h WHERE h.role_id = $4 OR h.role_id IN (` + principals + `)))`,
		Args: []any{c.RecType, c.RecID, c.Permission, access.Administrator},
	}, nil
}

// Requests to endpoints with a stored rule are counted in a table when several nodes serve them: the rule is exact, whichever node
// answers. A database of one process counts in memory, see [kontor/server/ratelimit].

const (
	selectCount = `SELECT arrival FROM rate_limit_counts WHERE subject = $1`

	upsertCount = `
		INSERT INTO rate_limit_counts (subject, arrival) VALUES ($1, $2)
		ON CONFLICT (subject) DO UPDATE SET arrival = excluded.arrival`

	refundCount = `UPDATE rate_limit_counts SET arrival = arrival - $2 WHERE subject = $1`

	deleteCounts = `
		DELETE FROM rate_limit_counts WHERE subject IN (
			SELECT subject FROM rate_limit_counts WHERE arrival <= $1 ORDER BY arrival LIMIT $2)`
)

// countPurpose is the purpose of the hashes of subjects. A rotation of the master key starts all counts again.
const countPurpose = "rate limit"

func (s *Service) countSubject(key []byte) string {
	return hex.EncodeToString(s.db.Keyed(countPurpose, key))
}

// Count counts a request of a key against a rule in requests a minute, over all nodes, and decides whether it may proceed. A
// rejected request writes nothing.
func (s *Service) Count(ctx context.Context, key []byte, perMinute int) (v ratelimit.Verdict, err error) {
	subject := s.countSubject(key)
	if v, _, err = s.verdict(ctx, s.db, subject, perMinute); err != nil || !v.Allowed {
		return v, err
	}
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		var next int64
		if v, next, err = s.verdict(ctx, tx, subject, perMinute); err != nil || !v.Allowed {
			return err
		}
		return tx.Run(ctx, upsertCount, subject, next)
	})
	return v, err
}

func (s *Service) verdict(ctx context.Context, q store.Querier, subject string, perMinute int) (v ratelimit.Verdict, next int64, err error) {
	now := s.db.Clock().Now().UnixNano()
	arrival := now
	if err := q.QueryRow(ctx, selectCount, subject).Scan(&arrival); err != nil && !errors.Is(err, store.ErrNotFound) {
		return v, 0, err
	}
	v, next = ratelimit.Conform(now, arrival, perMinute)
	return v, next, nil
}

// Refund takes one allowed request of a key out of the count.
func (s *Service) Refund(ctx context.Context, key []byte, perMinute int) error {
	interval := int64(time.Minute) / int64(perMinute)
	return s.db.InTx(ctx, func(tx *store.Tx) error { return tx.Run(ctx, refundCount, s.countSubject(key), interval) })
}

// countMoment is the time of a count. An arrival is at most the burst of a minute ahead.
var countMoment = store.Moment{Table: "rate_limit_counts", Of: "(arrival - 60000000000)", Moves: []string{"arrival"},
	Now: func(now store.Time) int64 { return now.Std().UnixNano() }}

// countBatch is the number of rows that one transaction deletes, so that other writes do not wait long.
const countBatch = 500

// PurgeCounts deletes the counts that do not limit any more. Call it about once a minute, on one node.
func (s *Service) PurgeCounts(ctx context.Context) error {
	if !s.db.Shared() {
		return nil
	}
	return s.db.InBatches(ctx, countBatch, func(tx *store.Tx) (int64, error) {
		return tx.Exec(ctx, deleteCounts, s.db.Clock().Now().UnixNano(), countBatch)
	})
}
