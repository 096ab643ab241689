package records

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"kontor/store"
	"kontor/store/audittrail"
)

// Proof declares how records of one type are compared with their newest audit entries. Writers of audit entries and [Check]
// read a record with the same function.
type Proof struct {
	// Type is the record type in audit entries.
	Type string
	// From is the table or subquery with a row for each existing record; Key is the column of its id.
	From, Key string
	// Read reads a record in the form that digests cover. It returns store.ErrNotFound.
	Read func(ctx context.Context, q store.Querier, id string) (store.Record, error)
	// Outside are the members of the API's answer that the digest does not cover: they depend on the caller or on the time, or
	// change without an audit entry. Read replaces them with these JSON values.
	Outside map[string]string
	// Expires reports that records may be deleted without an audit entry, for example after they expire.
	Expires bool
	// Migration is the number of the migration that created the table, for records that were added without a new form of the digests;
	// 0: every database that can be checked has the table.
	Migration int64
	// Form counts the forms of the digests of this type: a start with a higher number digests its records again. Increase it with each new
	// member or stored column, unless an absent one is left out. 0 is the form of version 6 of all records.
	Form int
	// Changes says that the audit trail keeps changed members of the answer with their values, and which not; nil: it keeps none. The
	// answer holds no password, token or key.
	Changes *store.ChangeRule
	// Orphans is a SELECT of the id of a row that belongs to no record; empty: there cannot be any.
	Orphans string
}

// Audit adds an audit entry with the record as it is now. before is its state before the change; nil: unknown.
func (p Proof) Audit(ctx context.Context, tx *store.Tx, action, id string, before any) error {
	entry := store.AuditEntry{Actor: Actor(ctx), Action: action, RecType: p.Type, RecID: id, Before: before}
	return p.AuditEntry(ctx, tx, entry)
}

// Change runs a change of a record and adds an audit entry with the record before and after it. It returns store.ErrNotFound for a record
// that does not exist.
func (p Proof) Change(ctx context.Context, tx *store.Tx, action, id string, change func() error) error {
	return p.ChangeBy(ctx, tx, Actor(ctx), action, id, change)
}

// ChangeBy is Change for another author than the caller.
func (p Proof) ChangeBy(ctx context.Context, tx *store.Tx, actor, action, id string, change func() error) error {
	before, err := p.Read(ctx, tx, id)
	if err != nil {
		return err
	}
	if err := change(); err != nil {
		return err
	}
	return p.AuditEntry(ctx, tx, store.AuditEntry{Actor: actor, Action: action, RecType: p.Type, RecID: id, Before: before})
}

// ChangeRow is Change by a statement. It adds no entry if the statement changes nothing.
func (p Proof) ChangeRow(ctx context.Context, tx *store.Tx, action, id, statement string, args ...any) error {
	before, err := p.Read(ctx, tx, id)
	if err != nil {
		return err
	}
	changed, err := tx.Exec(ctx, statement, args...)
	if err != nil || changed == 0 {
		return err
	}
	return p.Audit(ctx, tx, action, id, before)
}

// PutRow is ChangeRow for a record that the statement may create.
func (p Proof) PutRow(ctx context.Context, tx *store.Tx, action, id, statement string, args ...any) error {
	var before any
	switch was, err := p.Read(ctx, tx, id); {
	case err == nil:
		before = was
	case !errors.Is(err, store.ErrNotFound):
		return err
	}
	if err := tx.Run(ctx, statement, args...); err != nil {
		return err
	}
	return p.Audit(ctx, tx, action, id, before)
}

// AuditEntry adds an audit entry, completed with the record as it is now.
func (p Proof) AuditEntry(ctx context.Context, tx *store.Tx, entry store.AuditEntry) error {
	after, err := p.Read(ctx, tx, entry.RecID)
	switch {
	case err == nil:
		entry.After = after
	case !errors.Is(err, store.ErrNotFound):
		return fmt.Errorf("read %s for the audit trail: %w", p.Type, err)
	}
	tx.Audit(entry)
	return nil
}

// Proof returns the proof of records that are one row of the table. Types that span several tables declare their own.
func (t *Table[T]) Proof() Proof {
	return Proof{Type: t.Type.Name, From: t.From, Key: "id", Read: t.readRecord}
}

func (t *Table[T]) readRecord(ctx context.Context, q store.Querier, id string) (store.Record, error) {
	row, err := t.read(ctx, q, id)
	if err != nil {
		return store.Record{}, err
	}
	return t.record(row), nil
}

// Each calls f with the ids of all records in ascending order, reading a bounded number at a time.
func (p Proof) Each(ctx context.Context, q store.Querier, f func(id string) error) error {
	return p.EachAfter(ctx, q, "", f)
}

// Count returns the number of records.
func (p Proof) Count(ctx context.Context, q store.Querier) (n int, err error) {
	err = q.QueryRow(ctx, "SELECT COUNT(DISTINCT "+p.Key+") FROM "+p.From).Scan(&n)
	return n, err
}

// EachAfter is like Each, for the ids after one of them.
func (p Proof) EachAfter(ctx context.Context, q store.Querier, last string, f func(id string) error) error {
	const step = 500
	for {
		ids, err := p.next(ctx, q, last, step)
		if err != nil {
			return fmt.Errorf("list %s: %w", p.Type, err)
		}
		for _, id := range ids {
			if err := f(id); err != nil {
				return err
			}
		}
		if len(ids) < step {
			return nil
		}
		last = ids[len(ids)-1]
	}
}

// Exists reports whether there is a record with the id.
func (p Proof) Exists(ctx context.Context, q store.Querier, id string) (bool, error) {
	return store.Exists(ctx, q, "SELECT 1 FROM "+p.From+" WHERE "+p.Key+" = $1", id)
}

func (p Proof) next(ctx context.Context, q store.Querier, after string, limit int) ([]string, error) {
	statement := "SELECT DISTINCT " + p.Key + " FROM " + p.From + " WHERE " + p.Key + " > $1 ORDER BY " + p.Key + " LIMIT $2"
	return store.All(ctx, q, store.Text, statement, after, limit)
}

// ErrUnproven means that no audit entry contains the presented record.
var ErrUnproven = errors.New("no audit entry contains this record")

// Prove finds the entry for a record as the API answered it. It also returns the newest statement about the record: if the two
// differ, the record was changed since. It returns ErrUnproven.
func (p Proof) Prove(ctx context.Context, e *audittrail.Evidence, id string, answer []byte) (found, newest audittrail.Statement, err error) {
	digested, err := p.digested(answer)
	if err != nil {
		return found, newest, fmt.Errorf("the record is not a JSON object: %w", err)
	}
	found, newest, err = e.Find(ctx, p.Type, id, e.AnswerDigest(digested))
	if errors.Is(err, store.ErrNotFound) {
		err = fmt.Errorf("%s/%s: %w", p.Type, id, ErrUnproven)
	}
	return found, newest, err
}

// digested converts an answer to the form that the digest covers: compact JSON, with fixed values for members outside the
// digest. It omits the member people, which is not part of the record.
func (p Proof) digested(answer []byte) ([]byte, error) {
	in := jsontext.NewDecoder(bytes.NewReader(answer))
	token, err := in.ReadToken()
	if err != nil {
		return nil, err
	}
	if token.Kind() != '{' {
		return nil, fmt.Errorf("it begins with %s", token)
	}
	out := &bytes.Buffer{}
	out.WriteByte('{')
	for in.PeekKind() != '}' {
		name, err := in.ReadToken()
		if err != nil {
			return nil, err
		}
		member := name.String()
		value, err := in.ReadValue()
		if err != nil {
			return nil, err
		}
		if member == "people" { // the display names at the time of the answer
			continue
		}
		if fixed, outside := p.Outside[member]; outside {
			value = jsontext.Value(fixed)
		} else if err := value.Compact(); err != nil {
			return nil, err
		}
		if out.Len() > 1 {
			out.WriteByte(',')
		}
		quoted, err := jsontext.AppendQuote(nil, member)
		if err != nil {
			return nil, err
		}
		out.Write(quoted)
		out.WriteByte(':')
		out.Write(value)
	}
	out.WriteByte('}')
	_, err = in.ReadToken()
	return out.Bytes(), err
}

// Break is a record that differs from its newest audit entry.
type Break struct {
	Type, ID string
	Reason   string
}

// Error returns the record and the reason.
func (b *Break) Error() string { return fmt.Sprintf("%s/%s: %s", b.Type, b.ID, b.Reason) }

// Breaks collects the records that differ from the audit trail.
type Breaks struct {
	All   []*Break // at most MaxBreaks
	Count int64
}

// MaxBreaks is the number of breaks that are collected. More are counted.
const MaxBreaks = 1000

// Add adds err if it is a *Break or *Breaks, and returns every other error.
func (b *Breaks) Add(err error) error {
	var several *Breaks
	var one *Break
	switch {
	case errors.As(err, &several):
		b.Count += several.Count
		b.All = append(b.All, several.All[:min(len(several.All), MaxBreaks-len(b.All))]...)
	case errors.As(err, &one):
		return b.Add(&Breaks{All: []*Break{one}, Count: 1})
	default:
		return err
	}
	return nil
}

// Err returns nil without a break, and an error that holds all of them otherwise. errors.As finds the first *Break.
func (b *Breaks) Err() error {
	if b.Count == 0 {
		return nil
	}
	return b
}

// Error returns one line for each break.
func (b *Breaks) Error() string {
	lines := make([]string, 0, len(b.All)+1)
	for _, one := range b.All {
		lines = append(lines, one.Error())
	}
	if more := b.Count - int64(len(b.All)); more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the breaks.
func (b *Breaks) Unwrap() []error {
	all := make([]error, len(b.All))
	for i, one := range b.All {
		all[i] = one
	}
	return all
}

// Check compares all records of the types with their newest statements in the audit trail, and returns the number of records.
// Entries before since have another form and are not evidence that a record exists. It leaves out records
// whose tables the database does not have yet. The error is *Breaks with every record that differs, is missing, or exists without a
// statement.
func Check(ctx context.Context, e *audittrail.Evidence, proofs []Proof, since int64) (compared int64, err error) {
	byType := make(map[string]Proof, len(proofs))
	var breaks Breaks
	for _, p := range proofs {
		if p.Migration > e.Schema {
			continue
		}
		byType[p.Type] = p
		err := p.Each(ctx, e, func(id string) error {
			compared++
			return breaks.Add(p.compare(ctx, e, id))
		})
		if err == nil {
			err = breaks.Add(p.checkOrphans(ctx, e))
		}
		if err != nil {
			return compared, err
		}
	}
	err = e.EachStated(ctx, since, func(recType, id string) error {
		p, known := byType[recType]
		if !known || p.Expires {
			return nil
		}
		exists, err := p.Exists(ctx, e, id)
		if err != nil || exists {
			return err // an existing record was compared before
		}
		return breaks.Add(p.compare(ctx, e, id))
	})
	if err != nil {
		return compared, err
	}
	return compared, breaks.Err()
}

// compare compares one record, which may not exist, with the newest statement about it.
func (p Proof) compare(ctx context.Context, e *audittrail.Evidence, id string) error {
	record, err := p.Read(ctx, e, id)
	gone := errors.Is(err, store.ErrNotFound)
	if err != nil && !gone {
		return fmt.Errorf("read %s/%s: %w", p.Type, id, err)
	}
	newest, err := e.Newest(ctx, p.Type, id)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return &Break{p.Type, id, "it exists without an audit entry"}
	case err != nil:
		return err
	case gone && newest.Digest == "":
		return nil
	case gone:
		return &Break{p.Type, id, fmt.Sprintf("it is missing, although audit entry %d (%s) did not delete it", newest.Seq, newest.Action)}
	case newest.Digest == "":
		// A module may read an empty record rather than none where there are no rows.
		exists, err := p.Exists(ctx, e, id)
		if err != nil || !exists {
			return err
		}
		return &Break{p.Type, id, fmt.Sprintf("it exists, although audit entry %d (%s) deleted it", newest.Seq, newest.Action)}
	}
	digest, err := e.Digest(record)
	if err != nil {
		return fmt.Errorf("digest of %s/%s: %w", p.Type, id, err)
	}
	if digest != newest.Digest {
		return &Break{p.Type, id, fmt.Sprintf("it differs from audit entry %d (%s)", newest.Seq, newest.Action)}
	}
	return nil
}

func (p Proof) checkOrphans(ctx context.Context, e *audittrail.Evidence) error {
	if p.Orphans == "" {
		return nil
	}
	var id string
	err := e.QueryRow(ctx, p.Orphans).Scan(&id)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("find orphaned rows of %s: %w", p.Type, err)
	}
	return &Break{p.Type, id, "the row belongs to no record"}
}
