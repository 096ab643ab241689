package find

import (
	"strings"

	"kontor/store"
)

// listed returns a statement for a list of ids, with its arguments.
func listed(statement string, ids []string) (string, []any) {
	return strings.Replace(statement, "%s", store.In(1, len(ids)), 1), store.AppendIn(nil, ids)
}
