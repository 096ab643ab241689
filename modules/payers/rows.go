package payers

import (
	"reflect"

	"kontor/server/endpoint"
)

// SetPage selects a page, see [endpoint.Pageable].
func (in *ListInput) SetPage(limit int, offset int64) { in.query.SetPage(limit, offset) }

// Rows describes the payers of the page, see [endpoint.RowPage].
func (p Page) Rows() endpoint.Rows {
	return endpoint.Rows{Type: reflect.TypeFor[Payer](), Count: len(p.Payers), Total: p.Total, More: p.HasMore}
}

// Row returns a pointer to a payer.
func (p Page) Row(i int) any { return &p.Payers[i] }
