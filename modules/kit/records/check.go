package records

import (
	"context"
	"errors"
	"fmt"

	"kontor/store"
	"kontor/store/audittrail"
)

// Break is a record that is not as its newest audit entry left it.
type Break struct {
	Type, ID string
	Reason   string
}

// Error names the record.
func (b *Break) Error() string { return fmt.Sprintf("%s/%s: %s", b.Type, b.ID, b.Reason) }

// Check compares all records of the types with the newest statements about them in the audit trail, and reports how many
// there are. Entries before since are of another form and say nothing about what exists. The error is a *Break for the first that differs, is missing, or exists without a statement.
func Check(ctx context.Context, e *audittrail.Evidence, proofs []Proof, since int64) (compared int64, err error) {
	byType := make(map[string]Proof, len(proofs))
	for _, p := range proofs {
		byType[p.Type] = p
		err := p.Each(ctx, e, func(id string) error {
			compared++
			return p.compare(ctx, e, id)
		})
		if err == nil {
			err = p.checkStrays(ctx, e)
		}
		if err != nil {
			return compared, err
		}
	}
	return compared, e.EachStated(ctx, since, func(recType, id string) error {
		p, known := byType[recType]
		if !known || p.Vanishes {
			return nil
		}
		exists, err := p.Exists(ctx, e, id)
		if err != nil || exists {
			return err // and was compared before
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
		return &Break{p.Type, id, "it exists, and no audit entry knows of it"}
	case err != nil:
		return err
	case gone && newest.Digest == "":
		return nil
	case gone:
		return &Break{p.Type, id, fmt.Sprintf("it is missing; audit entry %d left it (%s)", newest.Seq, newest.Action)}
	case newest.Digest == "":
		return &Break{p.Type, id, fmt.Sprintf("it exists, though audit entry %d deleted it (%s)", newest.Seq, newest.Action)}
	}
	digest, err := e.Digest(record)
	if err != nil {
		return fmt.Errorf("digest of %s/%s: %w", p.Type, id, err)
	}
	if digest != newest.Digest {
		return &Break{p.Type, id, fmt.Sprintf("it is not as audit entry %d left it (%s)", newest.Seq, newest.Action)}
	}
	return nil
}

func (p Proof) checkStrays(ctx context.Context, e *audittrail.Evidence) error {
	if p.Strays == "" {
		return nil
	}
	var id string
	err := e.QueryRow(ctx, p.Strays).Scan(&id)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for strays of %s: %w", p.Type, err)
	}
	return &Break{p.Type, id, "no record accounts for this row"}
}
