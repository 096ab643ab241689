package list

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"kontor/server/endpoint"
)

// Encode encodes a page whose rows are encoded. It does not copy the rows.
func Encode(p Page[jsontext.Value]) (*endpoint.Encoded, error) {
	if p.Data.stacked || p.Metadata != nil || len(p.Keys) > 0 {
		return endpoint.Encode(p)
	}
	parts := make([][]byte, 0, 2*len(p.Data.Rows)+1)
	before := []byte(`{"data":[`)
	for _, row := range p.Data.Rows {
		parts = append(parts, before, row)
		before = comma
	}
	end := make([]byte, 0, 160+len(p.NextCursor))
	if len(p.Data.Rows) == 0 {
		end = append(end, before...)
	}
	end = strconv.AppendInt(append(end, `],"total":`...), p.Total, 10)
	end = strconv.AppendInt(append(end, `,"total_unfiltered":`...), p.TotalUnfiltered, 10)
	end = strconv.AppendBool(append(end, `,"has_more":`...), p.HasMore)
	if p.NextCursor != "" {
		var err error
		if end, err = jsontext.AppendQuote(append(end, `,"next_cursor":`...), p.NextCursor); err != nil {
			return nil, err
		}
	}
	return &endpoint.Encoded{Parts: append(parts, append(end, '}'))}, nil
}

var comma = []byte{','}
