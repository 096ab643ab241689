package list

import (
	"reflect"

	"kontor/server/endpoint"
)

// SetPage selects a page whose limit may exceed that of clients, see [endpoint.Pageable].
func (p *Params) SetPage(limit int, offset int64) { p.limit, p.offset = limit, offset }

// Rows describes the rows of the page, see [endpoint.RowPage].
func (p Page[T]) Rows() endpoint.Rows {
	return endpoint.Rows{Type: reflect.TypeFor[T](), Count: len(p.Data.Rows), Total: p.Total, More: p.HasMore}
}

// Row returns a pointer to a row.
func (p Page[T]) Row(i int) any { return &p.Data.Rows[i] }
