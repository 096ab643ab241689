package records

import (
	"context"
	"fmt"
	"strings"

	"kontor/modules/kit/types"
	"kontor/store"
)

// SortKeys are columns with types.SortKey of names. Statements that write a name write its key. Rows of earlier versions have none
// until [FillSortKeys] has run; until then they are sorted before all others.
type SortKeys struct {
	From  string   // the table; its primary key is the column id
	Names []string // the columns with names; the key of each is in the column of its name with the suffix _order
}

const (
	orderSuffix = "_order"
	// sortKeyBatch is the number of rows that one transaction fills.
	sortKeyBatch = 200
)

// FillSortKeys computes missing sort keys. It may be interrupted and run again.
func FillSortKeys(ctx context.Context, db *store.DB, all ...SortKeys) error {
	for _, k := range all {
		for after, more := "", true; more; {
			err := db.InTx(ctx, func(tx *store.Tx) (err error) {
				after, more, err = k.fill(ctx, tx, after)
				return err
			})
			if err != nil {
				return fmt.Errorf("fill the sort keys of %s: %w", k.From, err)
			}
		}
	}
	return nil
}

// fill fills the keys of the next rows after an id.
func (k SortKeys) fill(ctx context.Context, tx *store.Tx, after string) (last string, more bool, err error) {
	missing, set := make([]string, len(k.Names)), make([]string, len(k.Names))
	for i, name := range k.Names {
		missing[i] = "(" + name + orderSuffix + " = '' AND " + name + " <> '')"
		set[i] = fmt.Sprintf("%s%s = $%d", name, orderSuffix, i+2)
	}
	rows, err := tx.Query(ctx, "SELECT id, "+strings.Join(k.Names, ", ")+" FROM "+k.From+" WHERE id > $1 AND ("+
		strings.Join(missing, " OR ")+") ORDER BY id LIMIT $2", after, sortKeyBatch)
	if err != nil {
		return after, false, err
	}
	var found [][]any
	for rows.Next() {
		values := make([]string, len(k.Names)+1)
		dest, args := make([]any, len(values)), make([]any, len(values))
		for i := range values {
			dest[i] = &values[i]
		}
		if err := rows.Scan(dest...); err != nil {
			return after, false, err
		}
		args[0], last = values[0], values[0]
		for i, name := range values[1:] {
			args[i+1] = types.SortKey(name)
		}
		found = append(found, args)
	}
	if err := rows.Err(); err != nil {
		return after, false, err
	}
	for _, args := range found {
		if _, err := tx.Exec(ctx, "UPDATE "+k.From+" SET "+strings.Join(set, ", ")+" WHERE id = $1", args...); err != nil {
			return after, false, err
		}
	}
	return last, len(found) == sortKeyBatch, nil
}
