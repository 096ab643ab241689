package list

import "reflect"

// SetPage selects a page whose limit may exceed that of clients, see [endpoint.Pageable].
func (p *Params) SetPage(limit int, offset int64) { p.limit, p.offset = limit, offset }

// RowType returns the type of the rows, see [endpoint.RowPage].
func (Page[T]) RowType() reflect.Type { return reflect.TypeFor[T]() }

// RowCount returns the number of rows of the page.
func (p Page[T]) RowCount() int { return len(p.Data.Rows) }

// Row returns a pointer to a row.
func (p Page[T]) Row(i int) any { return &p.Data.Rows[i] }

// TotalRows returns the number of rows on all pages.
func (p Page[T]) TotalRows() int64 { return p.Total }

// MoreRows reports whether further rows follow.
func (p Page[T]) MoreRows() bool { return p.HasMore }
