package audit

import (
	"fmt"
	"slices"
	"strings"

	"kontor/modules/kit/list"
	"kontor/server/apierr"
)

// params are the parameters of the list. Entries of changes have no kind in the table, so that the index of kinds contains only
// events. A search for changes therefore becomes a condition of its own.
type params struct {
	list.Params
	where []list.Where
}

const searchKind = "search.kind"

// BindQuery reads the parameters.
func (p *params) BindQuery(query map[string][]string, problems *apierr.Fields) {
	var kinds []string
	for _, value := range query[searchKind] {
		kinds = append(kinds, list.SplitValues(strings.ToLower(value))...)
	}
	if !slices.Contains(kinds, kindChange) || len(kinds) > maxKinds {
		p.Params.BindQuery(query, problems)
		return
	}
	others := map[string][]string{}
	for name, values := range query {
		if name != searchKind {
			others[name] = values
		}
	}
	p.Params.BindQuery(others, problems)
	where := list.Where{SQL: "(kind IS NULL"}
	for _, kind := range kinds {
		where.Args = append(where.Args, kind)
		where.SQL += fmt.Sprintf(" OR kind = $%d", len(where.Args))
	}
	where.SQL += ")"
	p.where = []list.Where{where}
}

// maxKinds limits the kinds in one search; it exceeds the number of kinds.
const maxKinds = 10
