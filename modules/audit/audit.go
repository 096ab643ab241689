// Package audit shows the audit trail: who changed what and when, and whether the trail itself is whole.
//
// Entries are written by the store, in the transaction of each change, and chained by hash; nothing here writes. An
// entry holds keyed digests of the record before and after the change, not the record, so that the trail proves a
// state without showing personal data.
package audit

import (
	"context"
	"net/http"
	"sync"

	"kontor/modules/list"
	"kontor/modules/value"
	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/server/fault"
	"kontor/server/limit"
	"kontor/store"
)

// Entry is one change.
type Entry struct {
	Seq        int64      `json:"seq" minimum:"1" example:"42"` // from 1, without gaps
	At         store.Time `json:"at"`
	Actor      string     `json:"actor" format:"uuid" doc:"The user, or the nil id for the service itself."` // user id, or the nil id for the service itself
	Action     string     `json:"action"`
	RecType    string     `json:"rec_type"`
	RecID      string     `json:"rec_id" format:"-" example:"0193a7c4-5e2f-7b1a-9c3d-8f6e2a4b7c10" doc:"Id of the record; a rate-limit rule is known by its endpoint."`
	BeforeHash string     `json:"before_hash" example:"" doc:"Empty for a record that was made."`                   // empty for a record that was made
	AfterHash  string     `json:"after_hash" example:"9f86d081884c7d65" doc:"Empty for a record that was deleted."` // empty for a record that was deleted
	PrevHash   string     `json:"prev_hash" example:"2c26b46b68ffc68f"`                                             // hash of the entry before
	Hash       string     `json:"hash" example:"fcde2b2edba56bf4"`
}

// Service shows the trail.
type Service struct {
	db    *store.DB
	texts endpoint.Texts

	mu   sync.Mutex // held while the trail is walked
	walk walk
}

// New makes a service.
func New(db *store.DB, texts endpoint.Texts) *Service { return &Service{db: db, texts: texts} }

// Endpoints are the rows of the module. Both are for administrators, until they grant them to others.
func (s *Service) Endpoints() []endpoint.Endpoint {
	return []endpoint.Endpoint{
		{Name: "audit.list", Method: http.MethodGet, Path: "/v1/audit", Access: access.On(access.Audit, access.Read),
			Limit: limit.Private, Tag: "Operations", Summary: "List the audit trail.",
			Doc:    endpoint.Doc{Search: entries.Search()},
			Handle: endpoint.JSON(http.StatusOK, s.list)},
		{Name: "audit.status", Method: http.MethodGet, Path: "/v1/audit/status", Access: access.On(access.Audit, access.Read),
			Limit: limit.Private, Tag: "Operations", Summary: "Tell how far the audit trail is verified, and where it is broken.",
			Handle: endpoint.JSON(http.StatusOK, s.status)},
	}
}

type listInput struct {
	Query list.Params `query:"*"`
}

func (s *Service) list(ctx context.Context, in listInput) (list.Page[Entry], error) {
	return s.Entries(ctx, in.Query)
}

// Entries lists the trail, newest first. It returns fault.NoAccess.
func (s *Service) Entries(ctx context.Context, p list.Params) (list.Page[Entry], error) {
	if !access.From(ctx).May(access.Audit, access.Read) {
		return list.Page[Entry]{}, fault.NoAccess
	}
	return entries.Page(ctx, s.db, p)
}

var entries = list.New(list.Source[Entry]{
	From:    "audit_entries",
	Columns: "seq, at, actor, action, rec_type, rec_id, before_hash, after_hash, prev_hash, hash",
	ID:      "seq", Tables: []string{"audit_entries"},
	Fields: list.Fields{
		{Name: "seq", Type: list.Number, Column: "seq"},
		{Name: "at", Type: list.Time, Column: "at"},
		{Name: "actor", Type: list.UUID, Column: "actor"},
		{Name: "action", Type: list.Text, Column: "action", Key: "action"},
		{Name: "rec_type", Type: list.Text, Column: "rec_type", Key: "rec_type"},
		// Not all of them are UUIDs: a rate-limit rule is known by its endpoint.
		{Name: "rec_id", Type: list.Text, Column: "rec_id", Key: "rec_id", Fold: foldID},
		{Name: "before_hash", Type: list.Text, Column: "before_hash", Key: "before_hash"},
		{Name: "after_hash", Type: list.Text, Column: "after_hash", Key: "after_hash"},
		{Name: "prev_hash", Type: list.Text, Column: "prev_hash", Key: "prev_hash"},
		{Name: "hash", Type: list.Text, Column: "hash", Key: "hash"},
	},
	Scan: func(row list.Row) (Entry, error) {
		var e Entry
		err := row.Scan(&e.Seq, &e.At, &e.Actor, &e.Action, &e.RecType, &e.RecID, &e.BeforeHash, &e.AfterHash, &e.PrevHash, &e.Hash)
		return e, err
	},
})

// foldID brings a UUID into its stored form and leaves anything else as it is.
func foldID(text string) string {
	if id, err := value.ParseID(text); err == nil {
		return id
	}
	return text
}
