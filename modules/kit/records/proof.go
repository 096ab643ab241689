package records

import (
	"context"
	"errors"
	"fmt"

	"kontor/store"
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
