package store

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"kontor/store/idempotency"
)

// SealedColumn says where a module stores sealed values, so that a rotation of the master key can seal them again. The module
// registers it when it is built, and gives either Select and Update, or Next.
type SealedColumn struct {
	// Table and Column are those that [DB.Seal] is called with.
	Table, Column string
	// Select reads values that are not sealed with the newest key. Its columns are a text that orders the rows and is unique,
	// the row id that Seal was called with, and the sealed value. Its parameters are the pattern of values that it must not
	// return, the text of the last row that was read, and the largest number of rows.
	Select string
	// Update replaces a value if it has not changed. Its parameters are the text that orders the rows, and the old and the
	// new value.
	Update string
	// Next replaces Select and Update for values that need more. It reads at most limit values after a row.
	Next func(ctx context.Context, newest, after string, limit int) ([]SealedValue, error)
}

// SealedValue is a value that is not sealed with the newest key.
type SealedValue struct {
	// After is the text of the row that orders it.
	After string
	// Reseal prepares the new value outside of a transaction and returns the function that writes it. That function must
	// change nothing when the value has changed in the meantime. A nil function leaves the value as it is.
	Reseal func(ctx context.Context) (write func(ctx context.Context, tx *Tx) error, err error)
}

// sealedColumns are the registered columns.
type sealedColumns struct {
	mu      sync.RWMutex
	columns []SealedColumn
	known   map[[2]string]bool
}

// RegisterSealed registers a column with sealed values. Registering it again replaces the registration.
func (db *DB) RegisterSealed(c SealedColumn) {
	s := &db.sealed
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, other := range s.columns {
		if other.Table == c.Table && other.Column == c.Column {
			s.columns[i] = c
			return
		}
	}
	s.columns = append(s.columns, c)
	if s.known == nil {
		s.known = map[[2]string]bool{}
	}
	s.known[[2]string{c.Table, c.Column}] = true
}

// check returns an error for a column that a rotation would not reach.
func (s *sealedColumns) check(table, column string) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if !s.known[[2]string{table, column}] {
		return fmt.Errorf("%s.%s is sealed but not registered with RegisterSealed", table, column)
	}
	return nil
}

func (s *sealedColumns) all() []SealedColumn {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return append([]SealedColumn(nil), s.columns...)
}

// resealBatch is the number of values that one transaction replaces, so that other writes do not wait long.
const resealBatch = 50

// Resealed is the progress of sealing values again.
type Resealed struct {
	Table, Column string
	Values        int64 // of the column, so far
}

// reseal seals the values of all columns with the newest key, and returns how many there were.
func (db *DB) reseal(ctx context.Context, report func(Resealed)) (total int64, err error) {
	for _, c := range db.sealed.all() {
		progress := Resealed{Table: c.Table, Column: c.Column}
		for after := ""; ; {
			values, err := db.nextSealed(ctx, c, after)
			if err != nil {
				return total, fmt.Errorf("read values of %s.%s: %w", c.Table, c.Column, err)
			}
			if len(values) == 0 {
				break
			}
			written, err := db.resealValues(ctx, values)
			if err != nil {
				return total, fmt.Errorf("seal values of %s.%s: %w", c.Table, c.Column, err)
			}
			after = values[len(values)-1].After
			if written > 0 {
				progress.Values += written
				total += written
				report(progress)
			}
		}
	}
	return total, nil
}

// resealValues seals values and writes them in one transaction. It returns how many there were to write.
func (db *DB) resealValues(ctx context.Context, values []SealedValue) (int64, error) {
	writes := make([]func(context.Context, *Tx) error, 0, len(values))
	for _, v := range values {
		write, err := v.Reseal(ctx)
		if errors.Is(err, ErrNotFound) { // the row was deleted in the meantime
			continue
		}
		if err != nil {
			return 0, err
		}
		if write != nil {
			writes = append(writes, write)
		}
	}
	if len(writes) == 0 {
		return 0, nil
	}
	return int64(len(writes)), db.InTx(ctx, func(tx *Tx) error {
		for _, write := range writes {
			if err := write(ctx, tx); err != nil {
				return err
			}
		}
		return nil
	})
}

// nextSealed reads the next values of a column that are not sealed with the newest key.
func (db *DB) nextSealed(ctx context.Context, c SealedColumn, after string) ([]SealedValue, error) {
	newest := db.keys.SealedPrefix() + "%"
	if c.Next != nil {
		return c.Next(ctx, newest, after, resealBatch)
	}
	rows, err := db.Query(ctx, c.Select, newest, after, resealBatch)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var values []SealedValue
	for rows.Next() {
		var order, rowID, sealed string
		if err := rows.Scan(&order, &rowID, &sealed); err != nil {
			return nil, err
		}
		values = append(values, SealedValue{After: order, Reseal: func(context.Context) (func(context.Context, *Tx) error, error) {
			plain, err := db.Unseal(c.Table, c.Column, rowID, sealed)
			if err != nil {
				return nil, err
			}
			resealed, err := db.Seal(c.Table, c.Column, rowID, plain)
			return func(ctx context.Context, tx *Tx) error {
				_, err := tx.Exec(ctx, c.Update, order, sealed, resealed)
				return err
			}, err
		}})
	}
	return values, rows.Err()
}

// sealedAnswers are the stored answers to repeated requests.
func (db *DB) sealedAnswers() SealedColumn {
	return SealedColumn{Table: "idempotency_keys", Column: "body", Next: func(ctx context.Context, newest, after string, limit int) ([]SealedValue, error) {
		found, err := idempotency.FindOld(ctx, db, newest, after, limit)
		var values []SealedValue
		for _, old := range found {
			values = append(values, SealedValue{After: old.After, Reseal: func(context.Context) (func(context.Context, *Tx) error, error) {
				if err := old.Reseal(db.keys); err != nil {
					return nil, err
				}
				return func(ctx context.Context, tx *Tx) error { return old.Write(ctx, tx) }, nil
			}})
		}
		return values, err
	}}
}
