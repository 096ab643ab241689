package records

import (
	"context"
	"errors"
	"fmt"

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

// Check compares all records of the types with their newest statements in the audit trail, and returns the number of records.
// Entries before since have another form and are not evidence that a record exists. It leaves out records
// whose tables the database does not have yet. The error is a *Break for the first
// record that differs, is missing, or exists without a statement.
func Check(ctx context.Context, e *audittrail.Evidence, proofs []Proof, since int64) (compared int64, err error) {
	byType := make(map[string]Proof, len(proofs))
	for _, p := range proofs {
		if p.Migration > e.Schema {
			continue
		}
		byType[p.Type] = p
		err := p.Each(ctx, e, func(id string) error {
			compared++
			return p.compare(ctx, e, id)
		})
		if err == nil {
			err = p.checkOrphans(ctx, e)
		}
		if err != nil {
			return compared, err
		}
	}
	return compared, e.EachStated(ctx, since, func(recType, id string) error {
		p, known := byType[recType]
		if !known || p.Expires {
			return nil
		}
		exists, err := p.Exists(ctx, e, id)
		if err != nil || exists {
			return err // an existing record was compared before
		}
		return p.compare(ctx, e, id)
	})
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
