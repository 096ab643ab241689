package list

import (
	"context"
	"hash/maphash"

	"github.com/go-json-experiment/json/jsontext"

	"kontor/server/endpoint"
	"kontor/store"
)

// Kept is a list with the encoded rows of a keeper. It is safe for concurrent use.
type Kept struct {
	source *source
	keeper Keeper
	hints  *hints
}

// Of returns a list with the rows of another one in the form of a keeper.
func Of[T any](l *List[T], keeper Keeper) *Kept {
	return &Kept{source: l.source, keeper: keeper, hints: &hints{seed: maphash.MakeSeed()}}
}

// Page is [List.Page] with encoded rows.
func (k *Kept) Page(ctx context.Context, db Store, p Params, conditions ...Where) (page Page[jsontext.Value], err error) {
	rows := &keptRows{keeper: k.keeper, hints: k.hints}
	found, err := k.source.page(ctx, db, p, conditions, rows)
	if err == nil {
		page.set(&found, inOrder(rows.rows, found.order))
	}
	return page, err
}

// keptRows are the encoded rows of a page.
type keptRows struct {
	keeper Keeper
	hints  *hints
	rows   []jsontext.Value
	known  bool // the keeper knew all rows
	scan   func(row Row) (item jsontext.Value, known bool, err error)
}

func (k *keptRows) begin(ctx context.Context) {
	if k.scan == nil { // ids that were found are read by several statements
		k.scan, k.known, k.rows = k.keeper.Scanner(ctx), true, make([]jsontext.Value, 0, defaultLimit)
	}
}

func (k *keptRows) add(row Row) error {
	item, known, err := k.scan(row)
	if err == nil {
		k.rows, k.known = append(k.rows, item), k.known && known
	}
	return err
}

// readKnown runs the statement of a page with the column of the id. It returns known only if it has found the whole page.
func (k *keptRows) readKnown(ctx context.Context, db store.Querier, b *builder, v view, limit int) (read result, known bool, err error) {
	began := k.keeper.Begin(ctx)
	rows, err := db.Query(ctx, b.sql(), b.args...)
	if err != nil {
		return read, false, err
	}
	defer rows.Close()
	free := endpoint.PageBytes
	k.rows = make([]jsontext.Value, 0, defaultLimit)
	var id store.ReusedText
	dest := make([]any, 1+len(v.orders))
	dest[0] = &id
	for i := range v.orders {
		dest[1+i] = store.Ignored
	}
	for rows.Next() {
		if read.rows == limit {
			read.more = true
			break
		}
		if read.rows == limit-1 { // only this one needs a cursor after it
			read.last = make([]any, len(v.orders))
			for i := range read.last {
				dest[1+i] = &read.last[i]
			}
		}
		if err := rows.Scan(dest...); err != nil {
			return read, false, err
		}
		item, bytes, ok := k.keeper.Known(id)
		if free -= rowBytes + bytes; !ok || free < 0 { // the page may end before the limit
			return read, false, nil
		}
		k.rows = append(k.rows, item)
		read.rows++
	}
	return read, rows.Err() == nil && k.keeper.Holds(began), rows.Err()
}
