package list

import (
	"context"

	"kontor/store"
)

// collector appends the rows that statements read. Only it depends on their type.
type collector interface {
	// begin is called before a statement whose rows add scans.
	begin(ctx context.Context)
	// add scans a row. It reports whether the keeper knew it.
	add(row Row) (known bool, err error)
	// beginKnown, addKnown and holds ask the keeper, see [Keeper]. addKnown appends the row with an id, if it is known.
	beginKnown(ctx context.Context) store.Reading
	addKnown(id []byte) (bytes int, ok bool)
	holds(since store.Reading) bool
	// clear removes all rows.
	clear()
}

// collected are the rows of a list.
type collected[T any] struct {
	list    *List[T]
	rows    []T
	scanner func(row Row) (item T, known bool, err error) // of the keeper
}

func (c *collected[T]) begin(ctx context.Context) {
	if c.list.keeper != nil {
		c.scanner = c.list.keeper.Scanner(ctx)
	}
}

func (c *collected[T]) add(row Row) (known bool, err error) {
	var item T
	if c.scanner != nil {
		item, known, err = c.scanner(row)
	} else {
		item, err = c.list.scan(row)
	}
	if err == nil {
		c.append(item)
	}
	return known, err
}

func (c *collected[T]) beginKnown(ctx context.Context) store.Reading {
	return c.list.keeper.Begin(ctx)
}

func (c *collected[T]) addKnown(id []byte) (bytes int, ok bool) {
	item, bytes, ok := c.list.keeper.Known(id)
	if ok {
		c.append(item)
	}
	return bytes, ok
}

func (c *collected[T]) holds(since store.Reading) bool { return c.list.keeper.Holds(since) }

func (c *collected[T]) append(item T) {
	if c.rows == nil {
		c.rows = make([]T, 0, defaultLimit)
	}
	c.rows = append(c.rows, item)
}

func (c *collected[T]) clear() { c.rows = c.rows[:0] }

// inOrder returns the rows at these positions; nil: all rows.
func (c *collected[T]) inOrder(positions []int) []T {
	switch {
	case positions != nil:
		ordered := make([]T, len(positions))
		for i, at := range positions {
			ordered[i] = c.rows[at]
		}
		return ordered
	case c.rows == nil:
		return []T{}
	}
	return c.rows
}
