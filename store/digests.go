package store

import "context"

// DigestAction is the action of the audit entries that an upgrade writes with the digests of all records.
const DigestAction = "audit.digest"

// Digests are the records of a type that an upgrade has digested.
type Digests struct {
	Last  string // the id of the last one, in ascending order
	Count int
}

const (
	selectDigests = `
		SELECT rec_type, MAX(rec_id), COUNT(DISTINCT rec_id) FROM audit_entries
		WHERE seq > $1 AND action = $2 GROUP BY rec_type`

	selectChanged = `
		SELECT DISTINCT e.rec_id FROM audit_entries e
		WHERE e.seq > $1 AND e.rec_type = $2 AND e.action <> $3 AND NOT EXISTS (
			SELECT 1 FROM audit_entries d WHERE d.rec_id = e.rec_id AND d.rec_type = e.rec_type AND d.seq > e.seq AND d.action = $3)
		ORDER BY 1`
)

// DigestsSince returns what an upgrade has digested since an audit entry, by record type.
func DigestsSince(ctx context.Context, q Querier, begun int64) (map[string]Digests, error) {
	rows, err := q.Query(ctx, selectDigests, begun, DigestAction)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	found := map[string]Digests{}
	for rows.Next() {
		var recType string
		var d Digests
		if err := rows.Scan(&recType, &d.Last, &d.Count); err != nil {
			return nil, err
		}
		found[recType] = d
	}
	return found, rows.Err()
}

// ChangedSinceDigest returns the ids of the records of a type that have entries since an upgrade began, after which the upgrade has
// not digested them: another version of the program has served meanwhile.
func ChangedSinceDigest(ctx context.Context, q Querier, recType string, begun int64) (ids []string, err error) {
	rows, err := q.Query(ctx, selectChanged, begun, recType, DigestAction)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}
