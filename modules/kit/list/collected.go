package list

import "context"

// collector appends the rows that statements read. Only it depends on their type.
type collector interface {
	// begin is called before each statement whose rows are added.
	begin(ctx context.Context)
	// add scans a row.
	add(row Row) error
}

// collected are the rows of a list.
type collected[T any] struct {
	scan func(row Row) (T, error)
	rows []T
}

func (*collected[T]) begin(context.Context) {}

func (c *collected[T]) add(row Row) error {
	item, err := c.scan(row)
	if err != nil {
		return err
	}
	if c.rows == nil {
		c.rows = make([]T, 0, defaultLimit)
	}
	c.rows = append(c.rows, item)
	return nil
}

// inOrder returns the rows at these positions; nil: all rows.
func inOrder[T any](rows []T, positions []int) []T {
	switch {
	case positions == nil && rows == nil:
		return []T{}
	case positions == nil:
		return rows
	}
	ordered := make([]T, len(positions))
	for i, at := range positions {
		ordered[i] = rows[at]
	}
	return ordered
}
