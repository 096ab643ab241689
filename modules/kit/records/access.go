package records

import (
	"fmt"
	"strings"

	"kontor/modules/kit/list"
	"kontor/server/access"
)

// Principals is a SELECT of the principals whose grants a user has: the user $1 and the roles that they hold.
const Principals = `SELECT $1 UNION ALL SELECT role_id FROM held_roles WHERE user_id = $1`

// heldByUser is the condition that permission p is granted to the user $1 or to a role of the user.
const heldByUser = `p.principal_id IN (` + Principals + `)`

// grantTables are the tables below the views permissions and held_roles. Totals that depend on grants are counted again when
// one of them changes.
var grantTables = []string{"grants", "user_roles"}

const selectGrant = `
	SELECT 1 FROM permissions p
	WHERE p.rec_id = $2 AND p.rec_type = $3 AND p.permission = $4 AND ` + heldByUser + `
	LIMIT 1`

// GrantedIDs returns a SELECT of the ids of the records of a type on which the user $1 has the permission by grants on single
// records, with the tables whose changes change its result.
func GrantedIDs(t access.RecordType, wanted access.Permission) (sql string, tables []string) {
	return fmt.Sprintf(`SELECT p.rec_id FROM permissions p WHERE p.rec_type = '%s' AND p.permission = '%s' AND `+heldByUser, t.Name, wanted), grantTables
}

// Visible returns the condition of a list: no condition for a caller who may read all records of the type, otherwise the
// records that a relation or a grant lets the caller read.
func (t *Table[T]) Visible(caller *access.Caller) list.Where {
	if caller.May(t.Type, access.ReadAll) {
		return list.Where{}
	}
	granted, tables := GrantedIDs(t.Type, access.Read)
	where := list.Where{Granted: granted, Args: []any{caller.UserID}, Tables: tables[:len(tables):len(tables)]}
	for _, relation := range t.Relations {
		if relation.Allows.Has(access.Read) {
			where.Any = append(where.Any, relation.SQL)
			where.Tables = append(where.Tables, relation.Tables...)
		}
	}
	return where
}

// statement returns the SQL that reads one record. With a wanted permission, $1 is the user, $2 the id, and the last column
// is the user's access; without one, $1 is the id.
func (t *Table[T]) statement(wanted access.Permission) string {
	if text, ok := t.statements.Load(wanted); ok {
		return text.(string)
	}
	text := "SELECT " + t.Columns + " FROM " + t.From + " WHERE id = $1"
	if wanted != access.None {
		text = "SELECT " + t.Columns + ", (" + t.condition(wanted) + ") FROM " + t.From + " WHERE id = $2"
	}
	t.statements.Store(wanted, text)
	return text
}

// condition returns the SQL condition that the user $1 has the permission by a relation or by a grant on the record.
func (t *Table[T]) condition(wanted access.Permission) string {
	var b strings.Builder
	for _, relation := range t.Relations {
		if relation.Allows.Has(wanted) {
			b.WriteString(relation.SQL)
			b.WriteString(" OR ")
		}
	}
	fmt.Fprintf(&b, `EXISTS (SELECT 1 FROM permissions p WHERE p.rec_id = %s.id AND p.rec_type = '%s' AND p.permission = '%s'
		AND `+heldByUser+`)`, t.From, t.Type.Name, wanted)
	return b.String()
}
