// Package audit shows the audit trail: who changed what and when, and whether the trail itself is whole. It writes
// security events into it: failed sign-ins, denials, throttling, recoveries, and looks at what few may see.
//
// Entries of changes are written by the store, in the transaction of each change, and chained by hash with all others.
// Such an entry holds keyed digests of the record before and after the change, not the record, so that the trail proves a
// state without showing personal data. Security events are collected in memory and written in batches; a process that is
// killed loses those of its last seconds.
package audit

import (
	"context"
	"log/slog"
	"net/http"
	"sync"

	"github.com/go-json-experiment/json"

	"kontor/modules/kit/list"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
	"kontor/store"
)

// Entry is one change or security event.
type Entry struct {
	Seq        int64      `json:"seq" minimum:"1" example:"42"` // from 1, without gaps
	At         store.Time `json:"at"`
	Actor      string     `json:"actor" format:"uuid" doc:"The user, or the nil id for the service itself."` // user id, or the nil id for the service itself
	Kind       string     `json:"kind" enum:"change,sign_in,denial,throttle,recovery,read" doc:"change, or the kind of a security event."`
	Action     string     `json:"action"`
	RecType    string     `json:"rec_type"`
	RecID      string     `json:"rec_id" format:"-" example:"0193a7c4-5e2f-7b1a-9c3d-8f6e2a4b7c10" doc:"Id of the record; a rate-limit rule is known by its endpoint."`
	SessionID  string     `json:"session_id" format:"-" doc:"Of the session that acted; empty without one and in entries of earlier versions."`
	Network    string     `json:"network" example:"198.51.100.0/24" doc:"The client's address, shortened to 24 bits (IPv4) or 48 bits (IPv6)."`
	RequestID  string     `json:"request_id" format:"-" doc:"The X-Request-ID of the request, of the latest one where an entry stands for several."`
	Detail     *Detail    `json:"detail" doc:"Of a security event; null for a change."`
	BeforeHash string     `json:"before_hash" example:"" doc:"Empty for a record that was made."`                   // empty for a record that was made
	AfterHash  string     `json:"after_hash" example:"9f86d081884c7d65" doc:"Empty for a record that was deleted."` // empty for a record that was deleted
	PrevHash   string     `json:"prev_hash" example:"2c26b46b68ffc68f"`                                             // hash of the entry before
	Hash       string     `json:"hash" example:"fcde2b2edba56bf4"`
	Form       int        `json:"form" example:"2" doc:"Of the hash, see the documentation of the export."`
}

// kindChange is the kind of an entry that is no security event.
const kindChange = "change"

// Service shows the trail.
type Service struct {
	db       *store.DB
	texts    endpoint.Texts
	log      *slog.Logger
	recorder *recorder

	exporters []*exporter

	mu   sync.Mutex // held while the trail is walked
	walk walk
}

// New makes a service. Close it when the server has stopped.
func New(db *store.DB, texts endpoint.Texts, log *slog.Logger) *Service {
	return &Service{db: db, texts: texts, log: log, recorder: newRecorder(db, log)}
}

// Endpoints are the rows of the module. Both are for administrators, until they grant them to others.
func (s *Service) Endpoints() []endpoint.Endpoint {
	return []endpoint.Endpoint{
		{Name: "audit.list", Method: http.MethodGet, Path: "/v1/audit", Access: access.On(access.Audit, access.Read),
			Limit: ratelimit.Private, Tag: "Operations", Summary: "List the audit trail.",
			Doc:    endpoint.Doc{Search: entries.Search()},
			Handle: endpoint.JSON(http.StatusOK, s.list)},
		{Name: "audit.status", Method: http.MethodGet, Path: "/v1/audit/status", Access: access.On(access.Audit, access.Read),
			Limit: ratelimit.Private, Tag: "Operations", Summary: "Tell how far the audit trail is verified, and where it is broken.",
			Handle: endpoint.JSON(http.StatusOK, s.status)},
	}
}

type listInput struct {
	Query params `query:"*"`
}

func (s *Service) list(ctx context.Context, in listInput) (list.Page[Entry], error) {
	return s.Entries(ctx, in.Query.Params, in.Query.where...)
}

// Entries lists the trail, newest first, with the events up to now. It returns apierr.NoAccess.
func (s *Service) Entries(ctx context.Context, p list.Params, where ...list.Where) (list.Page[Entry], error) {
	if !access.From(ctx).May(access.Audit, access.Read) {
		return list.Page[Entry]{}, apierr.NoAccess
	}
	if err := s.recorder.write(ctx, true); err != nil { // a disk that takes no writes does not keep anybody from reading
		s.log.Warn("security events not written", "cause", err)
	}
	return entries.Page(ctx, s.db, p, where...)
}

var entries = list.New(list.Source[Entry]{
	From:    "audit_entries",
	Columns: "seq, at, actor, kind, action, rec_type, rec_id, session_id, network, request_id, detail, before_hash, after_hash, prev_hash, hash, form",
	ID:      "seq", Tables: []string{"audit_entries"},
	Fields: list.Fields{
		{Name: "seq", Type: list.Number, Column: "seq"},
		{Name: "at", Type: list.Time, Column: "at"},
		{Name: "actor", Type: list.UUID, Column: "actor"},
		{Name: "kind", Type: list.Text, Column: "kind", Key: "kind", Null: true},
		{Name: "session_id", Type: list.Text, Column: "session_id", Key: "session_id"},
		{Name: "network", Type: list.Text, Column: "network", Key: "network"},
		{Name: "request_id", Type: list.Text, Column: "request_id"},
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
		var kind *string
		var detail string
		err := row.Scan(&e.Seq, &e.At, &e.Actor, &kind, &e.Action, &e.RecType, &e.RecID, &e.SessionID, &e.Network, &e.RequestID,
			&detail, &e.BeforeHash, &e.AfterHash, &e.PrevHash, &e.Hash, &e.Form)
		if err != nil {
			return e, err
		}
		if e.Kind = kindChange; kind != nil {
			e.Kind = *kind
		}
		if detail != "" {
			e.Detail = &Detail{}
			err = json.Unmarshal([]byte(detail), e.Detail)
		}
		return e, err
	},
})

// foldID brings a UUID into its stored form and leaves anything else as it is.
func foldID(text string) string {
	if id, err := types.ParseID(text); err == nil {
		return id
	}
	return text
}
