package payers

import "reflect"

// SetPage selects a page, see [endpoint.Pageable].
func (in *ListInput) SetPage(limit int, offset int64) { in.query.SetPage(limit, offset) }

// RowType returns the type of the rows, see [endpoint.RowPage].
func (Page) RowType() reflect.Type { return reflect.TypeFor[Payer]() }

// RowCount returns the number of payers of the page.
func (p Page) RowCount() int { return len(p.Payers) }

// Row returns a pointer to a payer.
func (p Page) Row(i int) any { return &p.Payers[i] }

// TotalRows returns the number of payers on all pages.
func (p Page) TotalRows() int64 { return p.Total }

// MoreRows reports whether further payers follow.
func (p Page) MoreRows() bool { return p.HasMore }
