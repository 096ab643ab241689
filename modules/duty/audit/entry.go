package audit

import (
	"context"
	"errors"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"kontor/modules/kit/list"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

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
