package list

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"kontor/server/endpoint"
)

// Page is the answer of a list: the envelope of all lists.
type Page[T any] struct {
	Data            Data[T]   `json:"data"`
	Keys            []string  `json:"keys,omitempty" hidden:"true"` // the groups of Data, in their order
	Metadata        *Metadata `json:"metadata,omitempty" hidden:"true"`
	Total           int64     `json:"total" doc:"Number of matching rows that the caller may see."`
	TotalUnfiltered int64     `json:"total_unfiltered" doc:"Number of rows that the caller may see."`
	HasMore         bool      `json:"has_more" doc:"Whether there are further rows."`
	NextCursor      string    `json:"next_cursor,omitempty" doc:"The parameter cursor for the next page; missing on the last one."`
}

func (p *Page[T]) set(found *found, rows []T) {
	p.Data = Data[T]{Rows: rows, stacked: found.stacked, groups: found.groups}
	p.Keys, p.Metadata = found.keys, found.metadata
	p.Total, p.TotalUnfiltered = found.total, found.totalUnfiltered
	p.HasMore, p.NextCursor = found.hasMore, found.nextCursor
}

// EachUser names the users of the rows, see [endpoint.NamesUsers].
func (p Page[T]) EachUser(add func(id string)) {
	if !p.RowsNameUsers() {
		return
	}
	for i := range p.Data.Rows {
		any(&p.Data.Rows[i]).(endpoint.NamesUsers).EachUser(add) // the pointer has the methods of the value, too
	}
}

// RowsNameUsers reports whether the rows, or pointers to them, implement [endpoint.NamesUsers].
func (Page[T]) RowsNameUsers() bool {
	_, names := any((*T)(nil)).(endpoint.NamesUsers)
	return names
}

// Metadata describes the matching rows.
type Metadata struct {
	GroupTotals Totals `json:"group_totals"`
}

// Data are the rows of a page: an array, or with stack an object of arrays.
type Data[T any] struct {
	// Rows are the rows in their order, stacked or not. A module may change them in place, to set members that depend on the
	// caller; it must not change their number.
	Rows []T

	stacked bool
	groups  []rowGroup // in the order of the keys
}

// rowGroup is a group with the positions of its rows.
type rowGroup struct {
	key  string
	rows []int
}

// MarshalJSONTo encodes the rows, or the groups in the order of the keys.
func (d Data[T]) MarshalJSONTo(enc *jsontext.Encoder) error {
	if !d.stacked {
		return json.MarshalEncode(enc, d.Rows)
	}
	return writeGroups(enc, d.groups, func(i int) any { return &d.Rows[i] })
}

// writeGroups encodes an object of arrays. row returns a pointer to the row at a position.
func writeGroups(enc *jsontext.Encoder, groups []rowGroup, row func(i int) any) error {
	if err := enc.WriteToken(jsontext.BeginObject); err != nil {
		return err
	}
	for _, g := range groups {
		if err := g.write(enc, row); err != nil {
			return err
		}
	}
	return enc.WriteToken(jsontext.EndObject)
}

func (g rowGroup) write(enc *jsontext.Encoder, row func(i int) any) error {
	if err := enc.WriteToken(jsontext.String(g.key)); err != nil {
		return err
	}
	if err := enc.WriteToken(jsontext.BeginArray); err != nil {
		return err
	}
	for _, i := range g.rows {
		if err := json.MarshalEncode(enc, row(i)); err != nil {
			return err
		}
	}
	return enc.WriteToken(jsontext.EndArray)
}

// JSONSchemaOneOf returns the shape without stack for the API document. [StackedPage] is the other one.
func (Data[T]) JSONSchemaOneOf() []any { return []any{[]T{}} }

// StackedPage describes the answer of a list with the parameter stack, for the API document. A schema of its own keeps
// that of [Page] plain: generated clients have an array in data.
type StackedPage[T any] struct {
	Data            map[string][]T `json:"data" doc:"The rows of each group."`
	Keys            []string       `json:"keys,omitzero" doc:"The members of data, in their order."`
	Metadata        *Metadata      `json:"metadata,omitzero"`
	Total           int64          `json:"total" doc:"Number of matching rows that the caller may see."`
	TotalUnfiltered int64          `json:"total_unfiltered" doc:"Number of rows that the caller may see."`
	HasMore         bool           `json:"has_more" doc:"Whether there are further rows."`
	NextCursor      string         `json:"next_cursor,omitempty" doc:"The parameter cursor for the next page; missing on the last one."`
}

// EachUser is that of [Page]: it makes the API document describe the member people.
func (StackedPage[T]) EachUser(func(id string)) {}

// RowsNameUsers is that of [Page].
func (StackedPage[T]) RowsNameUsers() bool { return Page[T]{}.RowsNameUsers() }

// JSONSchemaStacked returns a value of the answer with the parameter stack, for the API document.
func (Page[T]) JSONSchemaStacked() any { return StackedPage[T]{} }

// Total is the number of matching rows of a group, on any page.
type Total struct {
	Key  string
	Rows int64
}

// Totals are encoded as one object with a member for each group.
type Totals []Total

// MarshalJSONTo encodes the totals in their order.
func (t Totals) MarshalJSONTo(enc *jsontext.Encoder) error {
	if err := enc.WriteToken(jsontext.BeginObject); err != nil {
		return err
	}
	for _, total := range t {
		if err := enc.WriteToken(jsontext.String(total.Key)); err != nil {
			return err
		}
		if err := enc.WriteToken(jsontext.Int(total.Rows)); err != nil {
			return err
		}
	}
	return enc.WriteToken(jsontext.EndObject)
}

// JSONSchemaOneOf returns the shape for the API document.
func (Totals) JSONSchemaOneOf() []any { return []any{map[string]int64{}} }
