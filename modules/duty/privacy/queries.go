package privacy

import (
	"cmp"
	"context"
	"slices"
	"time"

	"kontor/modules/kit/list"
	"kontor/modules/kit/personal"
	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
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

// scanHold reads a hold that is in force on a day, or was.
func scanHold(row records.Row, today types.Date) (LegalHold, error) {
	var h LegalHold
	err := row.Scan(&h.CustomerID, &h.Reason, &h.Until, &h.CreatedAt, &h.CreatedBy, &h.version)
	h.Active = err == nil && (h.Until.IsZero() || !h.Until.Before(today))
	return h, err
}

// requireStaff returns apierr.NoAccess unless the caller may delete all customers.
func requireStaff(ctx context.Context) error {
	if !access.From(ctx).May(access.Customers, access.Delete) {
		return apierr.NoAccess
	}
	return nil
}

// List returns a page of erasures.
func (s *Service) List(ctx context.Context, in list.Input) (list.Page[Erasure], error) {
	if err := requireStaff(ctx); err != nil {
		return list.Page[Erasure]{}, err
	}
	page, err := erasureList.Page(ctx, s.db, in.Query)
	for i := range page.Data.Rows {
		page.Data.Rows[i] = s.withLeft(ctx, page.Data.Rows[i])
	}
	return page, err
}

// ListDue returns a page of the customers whose data may be erased now, because the retention period has ended. It lists none that the
// erasure would reject: see relationship.
func (s *Service) ListDue(ctx context.Context, in list.Input) (list.Page[Due], error) {
	if err := requireStaff(ctx); err != nil {
		return list.Page[Due]{}, err
	}
	today := s.today(s.db)
	due := []any{s.endsExpired(today), today.String(), dayLength}
	where := list.Where{SQL: dueCondition, Args: due, Tables: []string{"customers.id", "kyc_changes.customer_id", "kyc_decisions.customer_id"}}
	linked, err := s.dueButHeld(ctx, due)
	if err != nil {
		return list.Page[Due]{}, err
	}
	if len(linked) == 0 {
		return dueList.Page(ctx, s.db, in.Query, where)
	}
	return dueList.Page(ctx, s.db, in.Query, where, list.Where{SQL: "customer_id NOT IN (" + store.In(1, len(linked)) + ")", Args: store.AppendIn(nil, linked)})
}

// dayLength is the number of milliseconds in a day.
const dayLength = int64(24 * time.Hour / time.Millisecond)

// endsExpired returns the latest end of a relationship whose retention period is over on a day.
func (s *Service) endsExpired(today types.Date) store.Time {
	day := types.DateOf(today.Start().AddDate(-s.RetentionYears, 0, 0)).AddDays(1)
	for {
		last := store.TimeOf(day.Start()) - 1
		if s.retentionUntil(last).Before(today) {
			return last
		}
		day = day.AddDays(-1)
	}
}

// dueButHeld returns the customers that are due, but whose person has another customer under a hold.
func (s *Service) dueButHeld(ctx context.Context, due []any) ([]string, error) {
	persons, err := s.heldPersons(ctx, s.db)
	if err != nil || len(persons) == 0 {
		return nil, err
	}
	candidates, err := store.All(ctx, s.db, store.Text, selectDue, due...)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(candidates, func(id string) bool {
		customer, failure := s.linkedHold(ctx, s.db, personal.Subject{Kind: personal.Customer, ID: id}, persons)
		err = cmp.Or(err, failure)
		return customer == ""
	}), err
}

// Get returns an erasure. It returns apierr.ErasureNotFound.
func (s *Service) Get(ctx context.Context, in endpoint.ByID) (Erasure, error) {
	if err := requireStaff(ctx); err != nil {
		return Erasure{}, err
	}
	e, err := scanErasure(s.db.QueryRow(ctx, selectErasureByID, in.ID))
	return s.withLeft(ctx, e), records.OrMissing(err, apierr.ErasureNotFound)
}

// Proofs returns how the audit trail digests the records of this module. The user who ended a relationship is in its entry.
func Proofs() []records.Proof { return []records.Proof{erasureProof, relationshipProof, holdProof} }

var (
	erasureProof = records.Proof{Type: "erasures", From: "erasures", Key: "id", Read: readErasure,
		Outside: map[string]string{"left": "[]"}}
	relationshipProof = records.Proof{Type: "relationships", From: "relationships", Key: "customer_id", Read: readRelationship, Migration: 50}
	holdProof         = records.Proof{Type: "legal_holds", From: "legal_holds", Key: "customer_id", Read: readHold, Changes: &store.ChangeRule{Forget: true},
		Outside: map[string]string{"active": "true"}, Form: 1}
)

// storedVersion is the version of a record, which the API shows as ETag only.
type storedVersion struct {
	Version int64 `json:"version"`
}

func readErasure(ctx context.Context, q store.Querier, id string) (store.Record, error) {
	e, err := scanErasure(q.QueryRow(ctx, selectErasureByID, id))
	return store.Record{Answer: e, Stored: storedVersion{e.version}}, err
}

// storedRelationship is the row of a relationship. The answer of the API depends on the day.
type storedRelationship struct {
	CustomerID string      `json:"customer_id"`
	EndedAt    *store.Time `json:"ended_at"`
	Version    int64       `json:"version"`
	// Missing without a proposal, also from the digests of earlier versions.
	ProposedEnd *store.Time `json:"proposed_end,omitzero"`
	ProposedAt  *store.Time `json:"proposed_at,omitzero"`
	ProposedBy  string      `json:"proposed_by,omitzero"`
}

func readRelationship(ctx context.Context, q store.Querier, customerID string) (store.Record, error) {
	r := storedRelationship{CustomerID: customerID}
	err := q.QueryRow(ctx, selectRelationship, customerID).Scan(&r.EndedAt, &r.ProposedEnd, &r.ProposedAt, &r.ProposedBy, &r.Version)
	return store.Record{Stored: r}, err
}

func readHold(ctx context.Context, q store.Querier, customerID string) (store.Record, error) {
	h, err := scanHold(q.QueryRow(ctx, selectHold, customerID), types.Date{}) // The day is outside the digest.
	return store.Record{Answer: h, Stored: storedVersion{h.version}}, err
}

// PersonalData lists the tables of the module.
func (s *Service) PersonalData() []personal.Table {
	return []personal.Table{
		{Name: "erasures", Why: "It holds ids and times, and is the evidence that data were erased."},
		{Name: "legal_holds", Holds: "the reason of a legal hold on a customer, deleted at the latest with the customer", Sections: []string{"legal_hold"}},
		{Name: "relationships", Holds: "when the relationship with a customer ended; the time stays as evidence", Sections: []string{"relationship"}},
	}
}

// exportedRelationship is the relationship with a customer in an export. It does not say whether there is a legal hold: the law may
// forbid to mention it.
type exportedRelationship struct {
	EndedAt        *store.Time `json:"ended_at"`
	RetentionUntil types.Date  `json:"retention_until"`
}

func (r Relationship) exported() []exportedRelationship {
	return []exportedRelationship{{r.EndedAt, r.RetentionUntil}}
}

// PersonalSections declares the relationship with a customer and, for reports, a legal hold.
func (s *Service) PersonalSections() []personal.Section {
	return []personal.Section{
		personal.Answer(personal.About{Name: "relationship", Kind: personal.Customer, Endpoint: "GET /v1/customers/{id}/relationship"},
			func(ctx context.Context, of personal.Subject) ([]exportedRelationship, error) {
				r, err := s.GetRelationship(ctx, endpoint.ByID{ID: of.ID})
				return r.exported(), err
			},
			personal.Slice(func(ctx context.Context, q store.Querier, of personal.Subject) ([]exportedRelationship, error) {
				r, err := s.relationship(ctx, q, of.ID)
				return r.exported(), err
			}), nil),
		personal.Reported(personal.About{Name: "legal_hold", Kind: personal.Customer, Rule: personal.InReports},
			personal.Slice(func(ctx context.Context, q store.Querier, of personal.Subject) ([]LegalHold, error) {
				hold, err := s.activeHold(ctx, q, of.ID)
				if hold == nil {
					return nil, err
				}
				return []LegalHold{*hold}, err
			})),
	}
}

// ErasePerson deletes a legal hold that has ended.
func (s *Service) ErasePerson(ctx context.Context, tx *store.Tx, subject personal.Subject, _ string) (string, error) {
	if subject.Kind != personal.Customer {
		return "", nil
	}
	return "", store.Optional(holdProof.ChangeRow(ctx, tx, personal.Action, subject.ID, deleteHold, subject.ID))
}
