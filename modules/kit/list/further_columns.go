package list

import "kontor/store"

// furtherColumns passes the first columns to the module's scanner and keeps the others.
type furtherColumns struct {
	rows    *store.Rows
	stacked bool
	sorted  int  // how many columns there are of what the row is sorted by
	end     bool // keep them
	value   any
	last    []any
	dest    []any
}

// Scan reads the columns of the scanner, the value of the stacked field, and what the row is sorted by.
func (r *furtherColumns) Scan(dest ...any) error {
	r.dest = append(r.dest[:0], dest...)
	if r.stacked {
		r.dest = append(r.dest, &r.value)
	}
	r.last = nil
	if r.end {
		r.last = make([]any, r.sorted)
	}
	for i := range r.sorted {
		if r.end {
			r.dest = append(r.dest, &r.last[i])
		} else {
			r.dest = append(r.dest, store.Ignored)
		}
	}
	return r.rows.Scan(r.dest...)
}
