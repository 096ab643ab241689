// Package audit lists and verifies the audit trail, exports it, and writes security events to it: failed sign-ins, denials,
// throttling, recoveries, and reads of sensitive data.
//
// The store writes the entries of changes, in the transaction of each change, and chains all entries by hash. Such an entry
// contains keyed digests of the record before and after the change, not the record itself. The trail therefore proves a
// state without showing personal data. Security events are collected in memory and written in batches. A process that is
// killed loses the events of its last seconds.
//
// The module owns the table audit_exports. It reads entries through the view audit_trail, which the store publishes.
package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"kontor/modules/kit/list"
	"kontor/modules/kit/personal"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
	"kontor/store"
)

// Entry is one change or security event.
type Entry struct {
	Seq        int64      `json:"seq" minimum:"1" example:"42" doc:"The place in the trail, from 1 without gaps."`
	At         store.Time `json:"at"`
	Actor      string     `json:"actor" format:"uuid" doc:"Id of the user or API key that acted; the nil id for the service itself and for unknown callers."`
	Kind       string     `json:"kind" enum:"change,sign_in,denial,throttle,recovery,read,session" doc:"change, or the kind of a security event: a failed or suspicious sign-in, a denied request, a throttled request, a step of account recovery, a read of sensitive data, or a session that ended because its user opened too many."`
	Action     string     `json:"action" example:"customers.kyc_decide" doc:"A stable code of what happened, as <area>.<verb>. The area is a module or a record type; many codes equal the name of the endpoint in GET /v1/rbac/endpoints. Others describe what the service did itself, such as customers.kyc_expire (a verification expired), rbac.seed (initial roles and grants) and audit.events_dropped (events that were only counted)."`
	RecType    string     `json:"rec_type" doc:"The type of the record; empty if the entry is about no record."`
	RecID      string     `json:"rec_id" format:"-" example:"0193a7c4-5e2f-7b1a-9c3d-8f6e2a4b7c10" doc:"Id of the record. For a rate-limit rule this is its endpoint."`
	SessionID  string     `json:"session_id" format:"-" doc:"Id of the session that acted; empty without one and in entries of earlier versions."`
	Network    string     `json:"network" example:"198.51.100.0/24" doc:"The client's address, shortened to 24 bits (IPv4) or 48 bits (IPv6)."`
	RequestID  string     `json:"request_id" format:"-" doc:"The X-Request-ID of the request; of the latest one if the entry stands for several events."`
	Detail     *Detail    `json:"detail" doc:"More about a security event; null for a change."`
	HasChanges bool       `json:"has_changes" doc:"Whether GET /v1/audit/{seq} shows changed fields, as long as they are kept."`
	BeforeHash string     `json:"before_hash" example:"" doc:"Keyed digest of the record before the change; empty for a new record."`
	AfterHash  string     `json:"after_hash" example:"9f86d081884c7d65" doc:"Keyed digest of the record after the change; empty for a deleted record."`
	PrevHash   string     `json:"prev_hash" example:"2c26b46b68ffc68f" doc:"Hash of the previous entry."`
	Hash       string     `json:"hash" example:"fcde2b2edba56bf4" doc:"Hash of this entry, which covers the previous hash."`
	Form       int        `json:"form" example:"2" doc:"Version of the hash's input; the documentation of the export describes it."`

	detail string // as stored
}

// EachUser names the actor and, if the record is a user, that user.
func (e Entry) EachUser(add func(id string)) {
	add(e.Actor)
	if e.RecType == access.Users.Name || e.RecType == rolesOfUser {
		add(e.RecID)
	}
}

// rolesOfUser is the record type of entries about the roles of a user; their record id is that of the user.
const rolesOfUser = "user_roles"

// kindChange is the kind of entries that are not security events.
const kindChange = "change"

// Service lists, verifies and exports the audit trail, and records security events.
type Service struct {
	personal.Nothing
	db       *store.DB
	texts    endpoint.Texts
	log      *slog.Logger
	recorder *recorder

	exporters []*exporter

	mu           sync.Mutex // held during a verification step
	verification verification
}

// New returns a service. Callers must close it when the server has stopped.
func New(db *store.DB, texts endpoint.Texts, log *slog.Logger) *Service {
	return &Service{db: db, texts: texts, log: log, recorder: newRecorder(db, log)}
}

// Endpoints returns the endpoints of the module. All are for administrators, unless they grant them to others.
func (s *Service) Endpoints() []endpoint.Endpoint {
	return []endpoint.Endpoint{
		{Name: "audit.list", Method: http.MethodGet, Path: "/v1/audit", Access: access.On(access.Audit, access.Read),
			Limit: ratelimit.Private, Tag: "Operations", Summary: "List audit entries, newest first.",
			Doc:    endpoint.Doc{Search: entries.Search()},
			Handle: endpoint.JSON(http.StatusOK, s.list)},
		{Name: "audit.get", Method: http.MethodGet, Path: "/v1/audit/{seq}", Access: access.On(access.Audit, access.Read),
			Limit: ratelimit.Private, Tag: "Operations", Summary: "Get an audit entry with the changed fields.",
			Faults: []apierr.Kind{apierr.AuditEntryNotFound},
			Handle: endpoint.JSON(http.StatusOK, s.get)},
		{Name: "audit.status", Method: http.MethodGet, Path: "/v1/audit/status", Access: access.On(access.Audit, access.Read),
			Limit: ratelimit.Private, Tag: "Operations", Summary: "Verify the next part of the audit trail and get the result so far.",
			Handle: endpoint.JSON(http.StatusOK, s.status)},
		{Name: "audit.export", Method: http.MethodGet, Path: "/v1/audit/export", Access: access.On(access.Audit, access.Read),
			Limit: ratelimit.Private, Tag: "Operations", Summary: "Export a part of the audit trail, signed.",
			Faults: []apierr.Kind{apierr.AuditEntryNotFound},
			Doc: endpoint.Doc{Sends: []string{"Content-Disposition"}, Answers: []endpoint.Answer{{Status: http.StatusOK, Media: linesMedia, Says: "The entries as JSON Lines, and a signed head."}},
				Description: "At most 10,000 entries. `kontor audit verify` and the console verify the file: each entry holds the hash of the one before, and the last line signs the last hash with a key of `export_keys` in `GET /v1/audit/status`. Files of adjacent parts can be joined."},
			Handle: endpoint.RawInput(s.download)},
	}
}

type listInput struct {
	Query params `query:"*"`
}

func (s *Service) list(ctx context.Context, in listInput) (list.Page[Entry], error) {
	return s.Entries(ctx, in.Query.Params, in.Query.where...)
}

// Entries returns the trail, newest first, including all events up to now. It returns apierr.NoAccess.
func (s *Service) Entries(ctx context.Context, p list.Params, where ...list.Where) (list.Page[Entry], error) {
	if !access.From(ctx).May(access.Audit, access.Read) {
		return list.Page[Entry]{}, apierr.NoAccess
	}
	if err := s.recorder.write(ctx, true); err != nil { // reading works even if the disk rejects writes
		s.log.Warn("cannot write security events", "cause", err)
	}
	return entries.Page(ctx, s.db, p, where...)
}

var entries = list.New(list.Source[Entry]{
	From:    "audit_trail",
	Columns: "seq, at, actor, kind, action, rec_type, rec_id, session_id, network, request_id, detail, before_hash, after_hash, prev_hash, hash, form",
	ID:      "seq", Tables: []string{"audit_entries.seq"},
	Fields: list.Fields{
		{Name: "seq", Type: list.Number, Column: "seq"},
		{Name: "at", Type: list.Time, Column: "at"},
		{Name: "actor", Type: list.UUID, Column: "actor"},
		{Name: "kind", Type: list.Text, Column: "kind", Key: "kind", Null: true, Few: true},
		{Name: "session_id", Type: list.Text, Column: "session_id", Key: "session_id"},
		{Name: "network", Type: list.Text, Column: "network", Key: "network"},
		{Name: "request_id", Type: list.Text, Column: "request_id"},
		{Name: "action", Type: list.Text, Column: "action", Key: "action", Few: true},
		{Name: "rec_type", Type: list.Text, Column: "rec_type", Key: "rec_type", Few: true},
		// Not all ids are UUIDs: that of a rate-limit rule is its endpoint.
		{Name: "rec_id", Type: list.Text, Column: "rec_id", Key: "rec_id", Fold: types.FoldID},
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
		e.detail, e.HasChanges = detail, kind == nil && store.HasChangedFields(detail)
		if e.Kind = kindChange; kind != nil {
			e.Kind = *kind
		}
		if detail != "" && kind != nil { // that of a change is for readers of exports
			e.Detail = &Detail{}
			err = json.Unmarshal([]byte(detail), e.Detail)
		}
		return e, err
	},
})

// params are the parameters of the list. Entries of changes have no kind in the table, so that the index of kinds contains only
// events. A search for changes therefore becomes a condition of its own.
type params struct {
	list.Params
	where []list.Where
}

const searchKind = "search.kind"

// BindQuery reads the parameters.
func (p *params) BindQuery(query map[string][]string, problems *apierr.Fields) {
	var kinds []string
	for _, value := range query[searchKind] {
		kinds = append(kinds, list.SplitValues(strings.ToLower(value))...)
	}
	if !slices.Contains(kinds, kindChange) || len(kinds) > maxKinds {
		p.Params.BindQuery(query, problems)
		return
	}
	others := map[string][]string{}
	for name, values := range query {
		if name != searchKind {
			others[name] = values
		}
	}
	p.Params.BindQuery(others, problems)
	where := list.Where{SQL: "(kind IS NULL"}
	for _, kind := range kinds {
		where.Args = append(where.Args, kind)
		where.SQL += fmt.Sprintf(" OR kind = $%d", len(where.Args))
	}
	where.SQL += ")"
	p.where = []list.Where{where}
}

// maxKinds limits the kinds in one search; it exceeds the number of kinds.
const maxKinds = 10

// ChangedEntry is an entry with the changed fields of its record.
type ChangedEntry struct {
	Entry
	Changes []FieldChange `json:"changes" doc:"The fields that changed, with their values before and after. Long values are cut. Empty if the entry has none, or they were deleted."`
	Deleted bool          `json:"changes_deleted" doc:"Whether the changed fields were deleted, because they are too old, the personal data of the record was erased, or the record was deleted."`
}

// FieldChange is the value of one field before and after a change.
type FieldChange struct {
	Field  string  `json:"field" example:"address.city" doc:"The name of the member as the API shows it. Members of an object are separated by a point; … stands for further fields, which are not kept."`
	Before *string `json:"before" example:"Bern" doc:"The text before the change, or the JSON of another value; null for none."`
	After  *string `json:"after" example:"Zürich" doc:"The text after the change, or the JSON of another value; null for none."`
	Cut    bool    `json:"cut" example:"false" doc:"Whether a value is only the beginning of a longer one."`
}

// fieldChange returns a change with its values as texts.
func fieldChange(c store.FieldChange) FieldChange {
	return FieldChange{Field: c.Field, Before: textOf(c.Before), After: textOf(c.After), Cut: c.Cut}
}

// textOf returns the text of a JSON text, the JSON of another value, and nil for null.
func textOf(v jsontext.Value) *string {
	text := string(v)
	switch v.Kind() {
	case 'n':
		return nil
	case '"':
		if err := json.Unmarshal(v, &text); err != nil {
			return nil
		}
	}
	return &text
}

type entryInput struct {
	Seq string `path:"seq,text" pattern:"^[0-9]+$" example:"42" doc:"The number of the entry."`
}

// get returns an entry with its changed fields, for callers who may read the audit trail. A read of changed fields is a security
// event about the record. It returns apierr.NoAccess and apierr.AuditEntryNotFound.
func (s *Service) get(ctx context.Context, in entryInput) (ChangedEntry, error) {
	if !access.From(ctx).May(access.Audit, access.Read) {
		return ChangedEntry{}, apierr.NoAccess
	}
	seq, err := strconv.ParseInt(in.Seq, 10, 64)
	if err != nil {
		return ChangedEntry{}, apierr.AuditEntryNotFound
	}
	e := ChangedEntry{Changes: []FieldChange{}}
	if e.Entry, err = s.entry(ctx, seq); err != nil || !e.HasChanges {
		return e, err
	}
	changes, err := s.db.ChangedFields(ctx, seq, e.detail)
	switch {
	case errors.Is(err, store.ErrNotFound):
		e.Deleted = true
		return e, nil
	case err != nil:
		return e, err
	}
	for _, c := range changes {
		e.Changes = append(e.Changes, fieldChange(c))
	}
	endpoint.Report(ctx, endpoint.Event{Kind: endpoint.Reading, Action: "audit.changed_fields", RecType: e.RecType, RecID: e.RecID})
	return e, nil
}

func (s *Service) entry(ctx context.Context, seq int64) (Entry, error) {
	p, err := list.Parse(map[string][]string{"search.seq": {strconv.FormatInt(seq, 10)}, "limit": {"1"}})
	if err != nil {
		return Entry{}, apierr.AuditEntryNotFound
	}
	page, err := entries.Page(ctx, s.db, p)
	if err == nil && len(page.Data.Rows) == 0 {
		err = apierr.AuditEntryNotFound
	}
	if err != nil {
		return Entry{}, err
	}
	return page.Data.Rows[0], nil
}

// PersonalData lists the tables of the module.
func (s *Service) PersonalData() []personal.Table {
	return []personal.Table{{Name: "audit_exports", Why: "It holds how far each export of the audit trail has come."}}
}
