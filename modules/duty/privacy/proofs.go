package privacy

import (
	"context"
	"errors"

	"kontor/modules/kit/records"
	"kontor/store"
)

// Proofs returns how the audit trail digests the records of this module. The user who ended a relationship is in its entry.
func Proofs() []records.Proof { return []records.Proof{erasureProof, relationshipProof, holdProof} }

var (
	erasureProof = records.Proof{Type: "erasures", From: "erasures", Key: "id", Read: readErasure,
		Outside: map[string]string{"left": "[]"}}
	relationshipProof = records.Proof{Type: "relationships", From: "relationships", Key: "customer_id", Read: readRelationship, Migration: 50}
	holdProof         = records.Proof{Type: "legal_holds", From: "legal_holds", Key: "customer_id", Read: readHold, Changes: &store.ChangeRule{Forget: true}}
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

// readBefore returns a record before its change for the audit trail, or nil if there is none.
func readBefore(ctx context.Context, q store.Querier, p records.Proof, id string) (any, error) {
	was, err := p.Read(ctx, q, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil //nolint:nilnil // no record
	}
	return was, err
}

func readHold(ctx context.Context, q store.Querier, customerID string) (store.Record, error) {
	h, err := scanHold(q.QueryRow(ctx, selectHold, customerID))
	return store.Record{Answer: h, Stored: storedVersion{h.version}}, err
}
