package records

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"kontor/store"
	"kontor/store/audittrail"
)

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
