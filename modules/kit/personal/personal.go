// Package personal declares how modules export and erase what they hold about a person.
//
// Each module implements [Module] for its own tables only. A test compares the lists of all
// modules with the schema, so that no table is forgotten. The module privacy decides who may export and erase, and when. This
// package decides row by row what an export contains: see [Section].
package personal

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"kontor/server/access"
	"kontor/store"
)

// Kind is the kind of record that stands for a person.
type Kind string

// The kinds.
const (
	Customer Kind = "customer"
	User     Kind = "user"
	Persona  Kind = "persona"
)

// Values returns all kinds.
func (Kind) Values() []string { return []string{string(Customer), string(User), string(Persona)} }

// Subject is a person by one of their records. Other records of the same person are subjects of their own.
type Subject struct {
	Kind Kind
	ID   string
}

// Table states what a table holds about persons. One of Holds and Why is set.
type Table struct {
	Name  string
	Holds string // what the module erases
	Why   string // why there is nothing of a person to export or erase
	// Sections contain what the table holds. Without any, Unexported says why.
	Sections   []string
	Unexported string
}

// Module exports and erases the data that it holds about a person.
type Module interface {
	// PersonalData lists all tables of the module.
	PersonalData() []Table
	// PersonalSections declares what exports and reports contain of the module's tables.
	PersonalSections() []Section
	// ErasePerson erases a bounded part in the transaction, with an audit entry for each record. cursor is empty at first. It
	// returns the cursor to continue with, in a further transaction, or an empty text at the end. Erased data are skipped, so
	// that an interrupted erasure may start again. For the module that owns the subject's record, the first call marks the
	// record as erased: from then on, other transactions do not write personal data about the subject.
	ErasePerson(ctx context.Context, tx *store.Tx, s Subject, cursor string) (next string, err error)
}

// Batch is the number of rows that one transaction erases.
const Batch = 100

// Step erases rows in the order of a key. It returns the key of the last one, or an empty text after the last batch.
type Step func(ctx context.Context, tx *store.Tx, after string) (last string, err error)

// Run runs the next batch of a sequence of steps. The cursor holds the number of the step and the key.
func Run(ctx context.Context, tx *store.Tx, cursor string, steps ...Step) (next string, err error) {
	number, after, _ := strings.Cut(cursor, "/")
	n := 0
	if number != "" {
		if n, err = strconv.Atoi(number); err != nil || n < 0 {
			return "", fmt.Errorf("cursor %q of an erasure", cursor)
		}
	}
	if n >= len(steps) {
		return "", nil
	}
	last, err := steps[n](ctx, tx, after)
	if err != nil {
		return "", err
	}
	if last == "" {
		if n++; n == len(steps) {
			return "", nil
		}
	}
	return strconv.Itoa(n) + "/" + last, nil
}

// Once returns a step that is done after one call.
func Once(f func(ctx context.Context, tx *store.Tx) error) Step {
	return func(ctx context.Context, tx *store.Tx, _ string) (string, error) { return "", f(ctx, tx) }
}

// EachID returns a step that calls erase with the ids that a statement selects, in their order. $1 is the subject, $2 the last
// id, $3 the number of ids.
func EachID(statement, subject string, erase func(ctx context.Context, tx *store.Tx, id string) error) Step {
	return func(ctx context.Context, tx *store.Tx, after string) (string, error) {
		ids, err := store.All(ctx, tx, store.Text, statement, subject, after, Batch)
		if err != nil {
			return "", err
		}
		for _, id := range ids {
			if err := erase(ctx, tx, id); err != nil {
				return "", err
			}
		}
		return lastOf(ids), nil
	}
}

// Delete returns a step that deletes the rows with the keys that a statement selects, as [EachID] does, by a second statement
// with the key as $1.
func Delete(selection, deletion, subject string) Step {
	return EachID(selection, subject, func(ctx context.Context, tx *store.Tx, id string) error {
		_, err := tx.Exec(ctx, deletion, id)
		return err
	})
}

// lastOf returns the last id of a full batch, or an empty text.
func lastOf(ids []string) string {
	if len(ids) < Batch {
		return ""
	}
	return ids[len(ids)-1]
}

// Action is the action of the audit entries of an erasure.
const Action = "privacy.erase"

// Actor returns the author of an erasure for columns of records: the caller, or store.NilID for an erasure that continues after
// a start.
func Actor(ctx context.Context) string {
	if caller := access.From(ctx); caller.UserID != "" {
		return caller.UserID
	}
	return store.NilID
}

// Writer writes an export: one JSON object with an array for each section. Only [Section.Write] adds rows.
type Writer struct {
	out     *jsontext.Encoder
	section string
	err     error
}

// NewWriter begins an export. head are the members before the sections.
func NewWriter(w io.Writer, head map[string]any) *Writer {
	e := &Writer{out: jsontext.NewEncoder(w, json.Deterministic(true))}
	e.token(jsontext.BeginObject)
	for _, name := range []string{"kind", "id", "exported_at"} {
		e.token(jsontext.String(name))
		e.value(head[name])
	}
	return e
}

// add adds a row to a section. The rows of a section must follow each other.
func (w *Writer) add(section string, row any) error {
	if section != w.section {
		w.endSection()
		w.section = section
		w.token(jsontext.String(section))
		w.token(jsontext.BeginArray)
	}
	w.value(row)
	return w.err
}

// Close ends the export.
func (w *Writer) Close() error {
	w.endSection()
	w.token(jsontext.EndObject)
	return w.err
}

func (w *Writer) endSection() {
	if w.section != "" {
		w.token(jsontext.EndArray)
		w.section = ""
	}
}

func (w *Writer) token(t jsontext.Token) {
	if w.err == nil {
		w.err = w.out.WriteToken(t)
	}
}

func (w *Writer) value(v any) {
	if w.err == nil {
		w.err = json.MarshalEncode(w.out, v, json.Deterministic(true))
	}
}

// Nothing is embedded by modules whose tables hold no personal data: they export and erase nothing.
type Nothing struct{}

// PersonalSections returns no sections.
func (Nothing) PersonalSections() []Section { return nil }

// ErasePerson erases nothing.
func (Nothing) ErasePerson(context.Context, *store.Tx, Subject, string) (string, error) {
	return "", nil
}
