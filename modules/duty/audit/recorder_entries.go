package audit

import (
	"context"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"kontor/server/endpoint"
	"kontor/store"
)

// actionDropped is the action of entries that count events without an entry of their own.
const actionDropped = "audit.events_dropped"

// Detail contains the members that only security events have.
type Detail struct {
	Count    int64      `json:"count" minimum:"1" doc:"How many events the entry stands for."`
	FirstAt  store.Time `json:"first_at" doc:"Time of the first of these events."`
	LastAt   store.Time `json:"last_at" doc:"Time of the last of these events."`
	Endpoint string     `json:"endpoint,omitzero" example:"GET /v1/customers/{id}/kyc"`
	Subject  string     `json:"subject,omitzero" example:"9f86d081884c7d65" doc:"Keyed hash of the value that was tried, such as a user name. Equal values have equal hashes."`
	Note     string     `json:"note,omitzero" example:"document_numbers" doc:"A code with more about the event."`
}

// store writes events, and the counts of dropped events, in one transaction.
func (r *recorder) store(ctx context.Context, list []pending, dropped map[endpoint.EventKind]int64) error {
	entries := make([]store.AuditEntry, 0, len(list)+len(dropped))
	for _, p := range list {
		e, err := p.entry()
		if err != nil {
			return err
		}
		entries = append(entries, e)
	}
	for _, kind := range sortedKinds(dropped) {
		e, err := droppedEntry(kind, dropped[kind], r.db.Clock().Now())
		if err != nil {
			return err
		}
		entries = append(entries, e)
	}
	return r.db.InTx(ctx, func(tx *store.Tx) error {
		for _, e := range entries {
			tx.Audit(e)
		}
		return nil
	})
}

// entry returns the audit entry of pending events.
func (p pending) entry() (store.AuditEntry, error) {
	detail, err := json.Marshal(Detail{Count: p.count, FirstAt: store.TimeOf(p.first), LastAt: store.TimeOf(p.last),
		Endpoint: p.sig.endpoint, Subject: p.sig.subject, Note: p.sig.note}, json.Deterministic(true))
	actor := p.sig.actor
	if actor == "" {
		actor = store.NilID
	}
	return store.AuditEntry{
		Actor: actor, Action: p.sig.action, RecType: p.sig.recType, RecID: p.sig.recID, Kind: string(p.sig.kind), Detail: string(detail),
		Origin: &store.Origin{Session: p.sig.session, Network: p.sig.network, RequestID: p.requestID},
	}, err
}

// droppedEntry returns the audit entry that counts dropped events of a kind.
func droppedEntry(kind endpoint.EventKind, n int64, at time.Time) (store.AuditEntry, error) {
	detail, err := json.Marshal(Detail{Count: n, FirstAt: store.TimeOf(at), LastAt: store.TimeOf(at)}, json.Deterministic(true))
	return store.AuditEntry{Actor: store.NilID, Action: actionDropped, Kind: string(kind), Detail: string(detail), Origin: &store.Origin{}}, err
}

func sortedKinds(counts map[endpoint.EventKind]int64) []endpoint.EventKind {
	kinds := make([]endpoint.EventKind, 0, len(counts))
	for kind := range counts {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	return kinds
}
