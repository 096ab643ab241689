package records

import (
	"context"
	"errors"
	"fmt"

	"kontor/server/access"
	"kontor/store"
)

// Proof declares how the audit trail knows the records of one type, so that a record can be compared with its newest entry.
// What changes a record leaves an entry with the record after it; both that and the check read it the same way.
type Proof struct {
	// Type is the record type as audit entries name it.
	Type string
	// From is the table, or what stands for one in a statement, that has a row for each existing record; Key is the column
	// with its id.
	From, Key string
	// Read reads a record in the form in which it is digested. It returns store.ErrNotFound.
	Read func(ctx context.Context, q store.Querier, id string) (store.Record, error)
	// Outside are the members of the answer that its digest does not cover, because they depend on the caller or on the time or
	// change without an entry. The JSON here takes their place; Read sets them to it.
	Outside map[string]string
	// Vanishes says that records may be deleted without an entry: those that have lost their use.
	Vanishes bool
	// Strays finds a row that belongs to no record: its id, in one column; empty for none to look for.
	Strays string
}

// Audit leaves an entry with the record as it now is. before is its state before the change, nil where it is not known.
func (p Proof) Audit(ctx context.Context, tx *store.Tx, action, id string, before any) error {
	entry := store.AuditEntry{Actor: Actor(ctx), Action: action, RecType: p.Type, RecID: id, Before: before}
	return p.AuditEntry(ctx, tx, entry)
}

// AuditEntry completes an entry with the record as it now is, and leaves it.
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

// Proof is that of records which a row of the table is all of. Types of several tables declare a Read of their own.
func (t *Table[T]) Proof() Proof {
	return Proof{Type: t.Type.Name, From: t.From, Key: "id", Read: t.read}
}

// read reads a record for its proof.
func (t *Table[T]) read(ctx context.Context, q store.Querier, id string) (store.Record, error) {
	record, err := t.scan(ctx, q, id)
	if err != nil {
		return store.Record{}, err
	}
	return t.record(record), nil
}

func (t *Table[T]) scan(ctx context.Context, q store.Querier, id string) (T, error) {
	return t.Scan(q.QueryRow(ctx, t.statement(access.None), id))
}

// record is a row as the audit trail knows it.
func (t *Table[T]) record(row T) store.Record {
	if t.Record != nil {
		return t.Record(row)
	}
	return store.Record{Answer: row}
}

// Each calls f with the ids of all records, in their order, reading few at a time.
func (p Proof) Each(ctx context.Context, q store.Querier, f func(id string) error) error {
	const step = 500
	last := ""
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
	var one int
	err := q.QueryRow(ctx, "SELECT 1 FROM "+p.From+" WHERE "+p.Key+" = $1", id).Scan(&one)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

func (p Proof) next(ctx context.Context, q store.Querier, after string, limit int) ([]string, error) {
	rows, err := q.Query(ctx, "SELECT DISTINCT "+p.Key+" FROM "+p.From+" WHERE "+p.Key+" > $1 ORDER BY "+p.Key+" LIMIT $2", after, limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	ids := make([]string, 0, limit)
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}
