package privacy

import (
	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
)

const erasureColumns = `id, kind, subject_id, reason, status, requested_at, requested_by, erased_at, version`

func scanErasure(row records.Row) (Erasure, error) {
	e := Erasure{Left: []Left{}}
	err := row.Scan(&e.ID, &e.Kind, &e.SubjectID, &e.Reason, &e.Status, &e.RequestedAt, &e.RequestedBy, &e.ErasedAt, &e.version)
	return e, err
}

var erasureList = list.New(list.Source[Erasure]{
	From: "erasures", Columns: erasureColumns, ID: "id", Created: "requested_at", Tables: []string{"erasures"}, Scan: scanErasure,
	Fields: list.Fields{
		{Name: "id", Type: list.UUID, Column: "id"},
		{Name: "kind", Type: list.Text, Column: "kind", Key: "kind"},
		{Name: "subject_id", Type: list.UUID, Column: "subject_id"},
		{Name: "status", Type: list.Text, Column: "status", Key: "status"},
		{Name: "requested_at", Type: list.Time, Column: "requested_at"},
	},
})

var dueList = list.New(list.Source[Due]{
	From: "relationships", Columns: "customer_id, ended_at", ID: "customer_id", Created: "ended_at",
	Tables: []string{"relationships", "legal_holds.customer_id", "erasures.subject_id"},
	Base:   list.Where{SQL: notErased},
	Fields: list.Fields{
		{Name: "customer_id", Type: list.UUID, Column: "customer_id"},
		{Name: "ended_at", Type: list.Time, Column: "ended_at"},
	},
	Scan: func(row list.Row) (Due, error) {
		var d Due
		err := row.Scan(&d.CustomerID, &d.EndedAt)
		return d, err
	},
})

const (
	// dueCondition: the relationship ended at $1 or before, not on a day before the last verification, and no hold is in force on the
	// day $2. A day has $3 milliseconds.
	dueCondition = `ended_at <= $1 AND NOT EXISTS (SELECT 1 FROM legal_holds h
			WHERE h.customer_id = relationships.customer_id AND (h.until IS NULL OR h.until >= $2))
		AND NOT EXISTS (SELECT 1 FROM customer_verifications v
			WHERE v.customer_id = relationships.customer_id AND v.verified_at / $3 > relationships.ended_at / $3)`

	// notErased is the condition that there is no erasure of a customer.
	notErased = `ended_at IS NOT NULL
		AND NOT EXISTS (SELECT 1 FROM erasures e WHERE e.kind = 'customer' AND e.subject_id = relationships.customer_id)`

	selectDue = `SELECT customer_id FROM relationships WHERE ` + notErased + ` AND ` + dueCondition

	selectErasureByID = `SELECT ` + erasureColumns + ` FROM erasures WHERE id = $1`

	selectErasureOf = `SELECT ` + erasureColumns + ` FROM erasures WHERE kind = $1 AND subject_id = $2`

	selectUnfinishedErasures = `SELECT ` + erasureColumns + ` FROM erasures WHERE status <> 'erased' ORDER BY requested_at, id`

	selectAllErasures = `SELECT ` + erasureColumns + ` FROM erasures ORDER BY requested_at, id`

	insertErasure = `
		INSERT INTO erasures (id, kind, subject_id, reason, status, requested_at, requested_by)
		VALUES ($1, $2, $3, $4, 'running', $5, $6)`

	updateErasure = `UPDATE erasures SET status = $2, erased_at = $3, version = version + 1 WHERE id = $1 AND status <> 'erased'`

	selectRelationship = `SELECT ended_at, proposed_end, proposed_at, proposed_by, version FROM relationships WHERE customer_id = $1`

	upsertRelationship = `
		INSERT INTO relationships (customer_id, ended_at, modified_at, modified_by, proposed_end, proposed_at, proposed_by)
		VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (customer_id) DO UPDATE SET
			ended_at = excluded.ended_at, modified_at = excluded.modified_at, modified_by = excluded.modified_by,
			proposed_end = excluded.proposed_end, proposed_at = excluded.proposed_at, proposed_by = excluded.proposed_by,
			version = relationships.version + 1`

	selectHeld = `SELECT customer_id FROM legal_holds WHERE until IS NULL OR until >= $1 ORDER BY customer_id`

	selectHold = `SELECT customer_id, reason, until, created_at, created_by, version FROM legal_holds WHERE customer_id = $1`

	upsertHold = `
		INSERT INTO legal_holds (customer_id, reason, until, created_at, created_by) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (customer_id) DO UPDATE SET
			reason = excluded.reason, until = excluded.until, created_at = excluded.created_at, created_by = excluded.created_by,
			version = legal_holds.version + 1`

	deleteHold = `DELETE FROM legal_holds WHERE customer_id = $1`
)

func scanHold(row records.Row) (LegalHold, error) {
	var h LegalHold
	err := row.Scan(&h.CustomerID, &h.Reason, &h.Until, &h.CreatedAt, &h.CreatedBy, &h.version)
	return h, err
}
