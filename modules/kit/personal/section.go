package personal

import (
	"context"
	"errors"
	"net/http"

	"kontor/modules/kit/records"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// Section is an array in an export: what a module holds about persons of a kind. A module does not write rows. It declares a
// section by one of the functions below, and each of them takes the decision who may read the rows. Exports write the rows that
// their reader could read one by one; reports for the data-protection officer write all rows.
type Section struct {
	About
	read func(ctx context.Context, q store.Querier, r reading) (batch []row, more bool, err error)
}

// About names a section.
type About struct {
	Name string
	Kind Kind
	// Endpoint returns the same rows, such as "GET /v1/payers/{id}". Callers who may not call it do not get the section.
	Endpoint string
	// Rule says who gets a section without an endpoint, for the table in docs/security.md.
	Rule Rule
}

// Rule is who gets a section that no endpoint returns.
type Rule string

// The rules.
const (
	OwnUser   Rule = "own user only"     // the user whom the rows are about
	OfParent  Rule = "readers of parent" // callers who may read the record that the rows belong to
	InReports Rule = "reports only"      // the data-protection officer alone
)

// reading is one batch for one reader.
type reading struct {
	Subject
	after    string // the key of the last row
	complete bool   // for a report: without access checks
}

// row is a row that may be read later. open reports whether the reader may read it.
type row struct {
	key  string
	open func(ctx context.Context, q store.Querier) (value any, visible bool, err error)
}

// Of selects records of a table for a section.
type Of[T any] struct {
	Table *records.Table[T]
	// All is the permission on the type that the endpoint asks for: [access.Read] for one that returns a record by its id,
	// [access.ReadAll] for a list.
	All access.Permission
	// Condition selects the records of the subject $2.
	Condition string
	// Current reports whether the endpoint still returns a record; nil: always. Others are in reports only.
	Current func(record T, now store.Time) bool
	// Show returns what the endpoint shows; nil: the record.
	Show func(ctx context.Context, q store.Querier, record T) (any, error)
}

// Records declares records of a table as a section. A record is written if the statement that reads it finds that the caller may
// read it, by the rule of the table itself.
func Records[T any](about About, of Of[T]) Section {
	return Section{about, func(ctx context.Context, q store.Querier, r reading) ([]row, bool, error) {
		all := of.All
		if r.complete {
			all = access.None
		}
		batch, err := of.Table.Batch(ctx, q, all, of.Condition, r.ID, r.after, Batch)
		if err != nil {
			return nil, false, err
		}
		rows := make([]row, len(batch))
		for i, seen := range batch {
			rows[i] = row{seen.ID, func(ctx context.Context, q store.Querier) (value any, visible bool, err error) {
				if !r.complete && (!seen.Readable || of.Current != nil && !of.Current(seen.Record, q.Now())) {
					return nil, false, nil
				}
				value = seen.Record
				if of.Show != nil {
					value, err = of.Show(ctx, q, seen.Record)
				}
				return value, true, err
			}}
		}
		return rows, len(batch) == Batch, nil
	}}
}

// Keyed is a row with its key, which orders the rows of a section.
type Keyed[T any] struct {
	Key string
	Row T
}

// Read reads the rows of a subject after a key, at most [Batch]. more reports whether there may be further ones.
type Read[T any] func(ctx context.Context, q store.Querier, s Subject, after string) (batch []Keyed[T], more bool, err error)

// Each declares rows as a section. A row is written if allow returns no error: allow must be the function by which the endpoint
// decides about it. It is called before show, which returns what the endpoint shows; nil: the row.
func Each[T any](about About, read Read[T], allow func(ctx context.Context, q store.Querier, row T) error,
	show func(ctx context.Context, q store.Querier, row T) (any, error),
) Section {
	return declare(about, read, func(ctx context.Context, q store.Querier, _ Subject, row T) error { return allow(ctx, q, row) }, show)
}

// All declares rows as a section that is written as a whole, if allow returns no error for the subject: allow must be the function
// by which the endpoint decides about all of them. show is as for [Each].
func All[T any](about About, read Read[T], allow func(ctx context.Context, q store.Querier, s Subject) error,
	show func(ctx context.Context, q store.Querier, row T) (any, error),
) Section {
	section := declare(about, read, nil, show)
	return Section{about, func(ctx context.Context, q store.Querier, r reading) ([]row, bool, error) {
		if !r.complete {
			if may, err := visible(allow(ctx, q, r.Subject)); err != nil || !may {
				return nil, false, err
			}
		}
		return section.read(ctx, q, r)
	}}
}

// Own declares rows of a user as a section that the user alone gets. show is as for [Each].
func Own[T any](about About, read Read[T], show func(ctx context.Context, q store.Querier, row T) (any, error)) Section {
	return All(about, read, IsOwn, show)
}

// IsOwn returns apierr.NoAccess unless the subject is the caller.
func IsOwn(ctx context.Context, _ store.Querier, s Subject) error {
	if caller := access.From(ctx); s.Kind != User || caller.UserID == "" || caller.UserID != s.ID {
		return apierr.NoAccess
	}
	return nil
}

// Answer declares a part of an endpoint's answer as a section. ask is the function behind the endpoint, which decides by itself
// what the caller gets. Reports read all rows by read instead; show is as for [Each].
func Answer[T any](about About, ask func(ctx context.Context, s Subject) ([]T, error), read Read[T],
	show func(ctx context.Context, q store.Querier, row T) (any, error),
) Section {
	all := declare(about, read, nil, show)
	return Section{about, func(ctx context.Context, q store.Querier, r reading) ([]row, bool, error) {
		if r.complete {
			return all.read(ctx, q, r)
		}
		answer, err := ask(ctx, r.Subject)
		if may, err := visible(err); err != nil || !may {
			return nil, false, err
		}
		rows := make([]row, len(answer))
		for i, value := range answer {
			rows[i] = row{"", func(context.Context, store.Querier) (any, bool, error) { return value, true, nil }}
		}
		return rows, false, nil
	}}
}

// Reported declares rows as a section of reports only.
func Reported[T any](about About, read Read[T]) Section {
	return Answer(about, func(context.Context, Subject) ([]T, error) { return nil, nil }, read, nil)
}

// declare declares rows as a section. allow decides about each of them; nil: they are decided about before.
func declare[T any](about About, read Read[T], allow func(ctx context.Context, q store.Querier, s Subject, row T) error,
	show func(ctx context.Context, q store.Querier, row T) (any, error),
) Section {
	return Section{about, func(ctx context.Context, q store.Querier, r reading) ([]row, bool, error) {
		batch, more, err := read(ctx, q, r.Subject, r.after)
		if err != nil {
			return nil, false, err
		}
		rows := make([]row, len(batch))
		for i, found := range batch {
			rows[i] = row{found.Key, func(ctx context.Context, q store.Querier) (value any, may bool, err error) {
				if allow != nil && !r.complete {
					if may, err := visible(allow(ctx, q, r.Subject, found.Row)); err != nil || !may {
						return nil, false, err
					}
				}
				value = found.Row
				if show != nil {
					value, err = show(ctx, q, found.Row)
				}
				return value, true, err
			}}
		}
		return rows, more, nil
	}}
}

// visible reports whether an access check has passed. Errors that deny access or the existence of a record are no failures.
func visible(err error) (bool, error) {
	if err == nil {
		return true, nil
	}
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if status := apierr.Of(err).Status; status == http.StatusForbidden || status == http.StatusNotFound {
		return false, nil
	}
	return false, err
}

// uncheckedBytes is what a section writes before it checks the caller again, within a batch of large rows.
const uncheckedBytes = 1 << 20

// Write writes the section of a person. ctx is one of [endpoint.Detach]: before each batch, and within a large one, the caller must
// have an active session, and allow must return no error. complete is for reports.
func (s Section) Write(ctx context.Context, q store.Querier, subject Subject, complete bool, w *Writer, allow func(ctx context.Context) error) error {
	check := func() (now context.Context, err error) {
		if now, err = endpoint.Continue(ctx); err == nil {
			err = allow(now)
		}
		return now, err
	}
	for r := (reading{Subject: subject, complete: complete}); ; {
		now, err := check()
		if err != nil {
			return err
		}
		checked := w.out.OutputOffset()
		if !complete && s.Endpoint != "" && !access.From(now).MayCall(s.Endpoint) {
			return nil
		}
		batch, more, err := s.read(now, q, r)
		if err != nil {
			return err
		}
		for _, row := range batch { // the reader of the database is free while the client reads
			if at := w.out.OutputOffset(); at > checked+uncheckedBytes {
				if now, err = check(); err != nil {
					return err
				}
				checked = at
			}
			value, visible, err := row.open(now, q)
			if err == nil && visible {
				err = w.add(s.Name, value)
			}
			if err != nil {
				return err
			}
			r.after = row.key
		}
		if !more {
			return nil
		}
	}
}

// Query returns a [Read] of the rows that a statement selects in the order of their keys. $1 is the subject, $2 the last key, $3
// the number of rows. scan returns a row and its key.
func Query[T any](statement string, scan func(row store.Scanner) (record T, key string, err error)) Read[T] {
	return func(ctx context.Context, q store.Querier, s Subject, after string) ([]Keyed[T], bool, error) {
		batch, err := store.All(ctx, q, func(row store.Scanner) (k Keyed[T], err error) {
			k.Row, k.Key, err = scan(row)
			return k, err
		}, statement, s.ID, after, Batch)
		return batch, len(batch) == Batch, err
	}
}

// Rows is [Query] for a scanner of rows that have a key.
func Rows[T any](statement string, scan func(row store.Scanner) (T, error), key func(record T) string) Read[T] {
	return Query(statement, func(row store.Scanner) (T, string, error) {
		record, err := scan(row)
		return record, key(record), err
	})
}

// Slice returns a [Read] of a bounded number of rows.
func Slice[T any](read func(ctx context.Context, q store.Querier, s Subject) ([]T, error)) Read[T] {
	return func(ctx context.Context, q store.Querier, s Subject, _ string) ([]Keyed[T], bool, error) {
		found, err := read(ctx, q, s)
		batch := make([]Keyed[T], len(found))
		for i, record := range found {
			batch[i].Row = record
		}
		return batch, false, err
	}
}
