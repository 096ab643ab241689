package store

import "fmt"

// Scope is whose eyes a statement looks through: those of one user, or of somebody who may see all
// records of the type.
type Scope struct {
	UserID string
	All    bool // the caller holds the permission on the whole type; no record is looked at
}

// RecordAccess is the condition "the scope may do this with this record", for a statement that reads or
// changes few records by their ids: the scope sees all, or the user made the record, or it is granted
// to the user or one of the user's roles. alias names the table of the record; the condition takes four
// arguments from $first on, which Args gives:
//
//	SELECT …, <condition> AS accessible FROM customers c WHERE c.id = $1
//
// The text depends on nothing but the two parameters, so that it can be a package's constant. A module
// with further owners puts OR between its own condition and this one.
func RecordAccess(alias string, first int) string {
	return fmt.Sprintf(`($%[2]d = TRUE OR %[1]s.created_by = $%[3]d OR EXISTS (
		SELECT 1 FROM grants g
		WHERE g.rec_id = %[1]s.id AND g.rec_type = $%[4]d AND g.permission = $%[5]d
			AND g.principal_id IN (SELECT $%[3]d UNION ALL SELECT ur.role_id FROM user_roles ur WHERE ur.user_id = $%[3]d)))`,
		alias, first, first+1, first+2, first+3)
}

// Args are the arguments of RecordAccess: record type and permission as grants name them.
func (s Scope) Args(recType, permission string) []any {
	return []any{s.All, s.UserID, recType, permission}
}

// ListAccess is the same condition for a statement that lists, with its arguments from $first on: it
// starts from what the user made and was granted, by their indexes, instead of asking for every record
// of the table, which needs an index on created_by. For a scope that sees all it is TRUE and takes no argument.
func (s Scope) ListAccess(alias, recType, permission string, first int) (condition string, args []any) {
	if s.All {
		return "TRUE", nil
	}
	condition = fmt.Sprintf(`(%[1]s.created_by = $%[2]d OR %[1]s.id IN (
		SELECT g.rec_id FROM grants g
		WHERE g.rec_type = $%[3]d AND g.permission = $%[4]d
			AND g.principal_id IN (SELECT $%[2]d UNION ALL SELECT ur.role_id FROM user_roles ur WHERE ur.user_id = $%[2]d)))`,
		alias, first, first+1, first+2)
	return condition, []any{s.UserID, recType, permission}
}
