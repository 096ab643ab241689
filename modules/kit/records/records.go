// Package records reads and changes the records of one type with the caller's access checked in the same statement. Each
// module with records declares one [Table]. Reading a record, the condition of its lists and the answers to permission checks
// all come from that declaration, so that they cannot differ.
//
// A caller may access a record by a grant on the type, a relation to the record (such as its creator), or a grant on the
// record. Grants are to the caller or to one of the caller's roles.
//
// The package also compares records with the audit trail ([Proof], [Check]) and bounds what one user may store ([Quota]). It
// owns the table storage_usage. Grants and roles held are read through the views permissions (published by rbac) and
// held_roles (published by directory).
package records

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"kontor/modules/kit/list"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

// Row is a row for a scanner.
type Row = list.Row

// Selection is a SELECT of the ids of records, such as those that are a person. Its text does not grow with the records.
type Selection struct {
	SQL    string
	Args   []any
	Tables []string // whose changes change the result
}

// Relation is a relation of users to records that grants permissions without a stored grant.
type Relation struct {
	Name   string // such as [access.RelationCreator]
	Allows access.Permission
	SQL    string   // condition on a row of the table; $1 is the user's id
	Users  string   // SELECT of the users who have the relation to the record $1; empty if SQL compares one column: "user_id = $1"
	Tables []string // further tables that the condition reads
}

// Creator returns the relation of creators to the records of a table with the columns created_by and by_staff. Records that users make
// for themselves are theirs. Those that they make for the bank are the bank's: the relation lasts as long as they act for it, see
// [access.Caller.ActsForBank].
func Creator(t access.RecordType, from string) Relation {
	return creator(from, func(user string) string {
		return "(by_staff = FALSE OR " + ActsForBank(t, user) + ")"
	})
}

// CreatorWhile returns the relation of creators to the records of a table with the column created_by that only the bank creates. It lasts
// as long as the creators may create such records.
func CreatorWhile(t access.RecordType, from string) Relation {
	return creator(from, func(user string) string { return holds(t, user, access.Create) })
}

func creator(from string, lasts func(user string) string) Relation {
	return Relation{
		Name: access.RelationCreator, Allows: access.Read | access.Update | access.Delete,
		SQL:   "created_by = $1 AND " + lasts("$1"),
		Users: "SELECT created_by FROM " + from + " WHERE id = $1 AND " + lasts(from+".created_by"),
	}
}

// Creators returns the creator of a record as long as their relation to it lasts: who is notified of it.
func (t *Table[T]) Creators(ctx context.Context, q store.Querier, id string) ([]string, error) {
	for _, relation := range t.Relations {
		if relation.Name == access.RelationCreator {
			return store.All(ctx, q, store.Text, relation.users(t.From), id)
		}
	}
	return nil, nil
}

// ActsForBank returns the condition of [access.Caller.ActsForBank] for a user, who is a placeholder or a column.
func ActsForBank(t access.RecordType, user string) string {
	return holds(t, user, access.Update, access.ReadAll)
}

// holds returns the condition that a user has one of the permissions on a type.
func holds(t access.RecordType, user string, any ...access.Permission) string {
	names := make([]string, len(any))
	for i, p := range any {
		names[i] = "'" + p.String() + "'"
	}
	return fmt.Sprintf(`(EXISTS (SELECT 1 FROM held_roles h WHERE h.user_id = %[1]s AND h.role_id = '%[2]s')
		OR EXISTS (SELECT 1 FROM permissions a WHERE a.rec_type = '%[3]s' AND a.rec_id = '' AND a.permission IN (%[4]s)
			AND (a.principal_id = %[1]s OR a.principal_id IN (SELECT h.role_id FROM held_roles h WHERE h.user_id = %[1]s))))`,
		user, access.Administrator, t.Name, strings.Join(names, ", "))
}

// Table declares where the records of a type are and how they are read.
type Table[T any] struct {
	Type      access.RecordType
	From      string // the table; its primary key is the column id
	Columns   string // what Scan reads, separated by commas
	Scan      func(row Row) (T, error)
	Relations []Relation
	Missing   apierr.Kind // the error for an unknown id
	// Record returns the form of a row that audit digests cover; nil: the row as the API answers it.
	Record func(row T) store.Record

	statements sync.Map // texts of the statements that read one record, by access.Permission
}

// Get reads one record if the caller of the context has the wanted permission. It returns Missing for an unknown id and
// apierr.NoAccess without the permission.
func (t *Table[T]) Get(ctx context.Context, q store.Querier, id string, wanted access.Permission) (T, error) {
	caller := access.From(ctx)
	if caller.May(t.Type, wanted) {
		return t.GetUnchecked(ctx, q, id)
	}
	allowed := false
	record, err := t.Scan(further{q.QueryRow(ctx, t.statement(wanted), caller.UserID, id), []any{&allowed}})
	if err == nil && !allowed {
		err = apierr.NoAccess
	}
	return t.found(record, err)
}

// GetUnchecked reads one record without an access check. It returns Missing for an unknown id.
func (t *Table[T]) GetUnchecked(ctx context.Context, q store.Querier, id string) (T, error) {
	return t.found(t.read(ctx, q, id))
}

// found returns a record, or nothing of it with an error.
func (t *Table[T]) found(record T, err error) (T, error) {
	var zero T
	switch {
	case err == nil:
		return record, nil
	case errors.Is(err, store.ErrNotFound):
		return zero, t.Missing
	case errors.Is(err, apierr.NoAccess):
		return zero, err
	}
	return zero, fmt.Errorf("read %s: %w", t.Type.Name, err)
}

// OrMissing returns the error for a missing record in place of store.ErrNotFound, and every other error as it is.
func OrMissing(err error, missing apierr.Kind) error {
	if errors.Is(err, store.ErrNotFound) {
		return missing
	}
	return err
}

// read reads one record without an access check. It returns store.ErrNotFound.
func (t *Table[T]) read(ctx context.Context, q store.Querier, id string) (T, error) {
	return t.Scan(q.QueryRow(ctx, t.statement(access.None), id))
}

// Granted reports whether the caller has the permission by a grant on the type or on the record. Relations do not count.
func (t *Table[T]) Granted(ctx context.Context, q store.Querier, id string, wanted access.Permission) (bool, error) {
	caller := access.From(ctx)
	if caller.May(t.Type, wanted) {
		return true, nil
	}
	granted, err := store.Exists(ctx, q, selectGrant, caller.UserID, id, t.Type.Name, wanted.String())
	if err != nil {
		return false, fmt.Errorf("read a grant on %s: %w", t.Type.Name, err)
	}
	return granted, nil
}

// further is a row with columns after those that the module's scanner reads.
type further struct {
	Row
	columns []any
}

// Scan reads all columns.
func (r further) Scan(dest ...any) error { return r.Row.Scan(slices.Concat(dest, r.columns)...) }

// Principals is a SELECT of the principals whose grants a user has: the user $1 and the roles that they hold.
const Principals = `SELECT $1 UNION ALL SELECT role_id FROM held_roles WHERE user_id = $1`

// HoldersOfEveryone is a SELECT of the users who hold the role Everyone. $1 is the role Registrant. See [access.HeldRoles].
const HoldersOfEveryone = `
	SELECT e.id FROM people e
	WHERE e.status = 'active' AND e.kind = 'person' AND (
		NOT EXISTS (SELECT 1 FROM held_roles r WHERE r.user_id = e.id AND r.role_id = $1)
		OR EXISTS (SELECT 1 FROM held_roles r WHERE r.user_id = e.id AND r.role_id <> $1))`

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

// PageOf returns a page of the records of a user, who reads them all. It returns apierr.NoAccess to another caller who may read none.
func (t *Table[T]) PageOf(ctx context.Context, db *store.DB, all *list.List[T], in list.OfInput, of list.Where) (list.Page[T], error) {
	caller := access.From(ctx)
	if caller.UserID == in.ID || caller.May(t.Type, access.Read) {
		return all.Page(ctx, db, in.Query, of)
	}
	page, err := all.Page(ctx, db, in.Query, of, t.Visible(caller))
	if err == nil && page.TotalUnfiltered == 0 {
		err = apierr.NoAccess
	}
	return page, err
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

// Of returns a [access.Records] that answers from one table.
func Of[T any](db *store.DB, t *Table[T]) access.Records { return recordsOf[T]{db, t} }

type recordsOf[T any] struct {
	db    *store.DB
	table *Table[T]
}

// RecordType returns the type of the records.
func (r recordsOf[T]) RecordType() access.RecordType { return r.table.Type }

// Relations returns the permissions that a user has by relations.
func (r recordsOf[T]) Relations(ctx context.Context, userID string, ids []string) (map[string]access.Permission, error) {
	return r.table.RelationsOf(ctx, r.db, userID, ids)
}

// Related returns the users who have a permission on a record by relations.
func (r recordsOf[T]) Related(ctx context.Context, id string, wanted access.Permission) (users map[string][]string, exists bool, err error) {
	return r.table.RelatedTo(ctx, r.db, id, wanted)
}

// relationsChunk is the number of records of one statement.
const relationsChunk = 32

// RelationsOf returns, by id, the permissions that a user has by relations to records. Unknown ids are missing.
func (t *Table[T]) RelationsOf(ctx context.Context, q store.Querier, userID string, ids []string) (map[string]access.Permission, error) {
	columns := "id"
	for _, relation := range t.Relations {
		columns += ", (" + relation.SQL + ")"
	}
	found := make(map[string]access.Permission, len(ids))
	for part := range slices.Chunk(ids, relationsChunk) {
		err := store.Each(ctx, q, func(row store.Scanner) error {
			var id string
			holds := make([]bool, len(t.Relations))
			dest := []any{&id}
			for i := range holds {
				dest = append(dest, &holds[i])
			}
			err := row.Scan(dest...)
			allowed := access.None
			for i, relation := range t.Relations {
				if holds[i] {
					allowed |= relation.Allows
				}
			}
			found[id] = allowed
			return err
		}, "SELECT "+columns+" FROM "+t.From+" WHERE id IN ("+store.In(2, len(part))+")", store.AppendIn([]any{userID}, part)...)
		if err != nil {
			return nil, fmt.Errorf("read relations to %s: %w", t.Type.Name, err)
		}
	}
	return found, nil
}

// RelatedTo returns, by user id, the names of the relations that give users the permission on a record. It is the inverse of
// [Table.RelationsOf]. exists is false for an unknown record.
func (t *Table[T]) RelatedTo(ctx context.Context, q store.Querier, id string, wanted access.Permission) (users map[string][]string, exists bool, err error) {
	exists, err = store.Exists(ctx, q, "SELECT 1 FROM "+t.From+" WHERE id = $1", id)
	if err != nil {
		return nil, false, fmt.Errorf("look up %s: %w", t.Type.Name, err)
	}
	if !exists {
		return nil, false, nil
	}
	users = map[string][]string{}
	for _, relation := range t.Relations {
		if !relation.Allows.Has(wanted) {
			continue
		}
		related, err := store.All(ctx, q, store.Text, relation.users(t.From), id)
		if err != nil {
			return nil, true, fmt.Errorf("read users related to %s: %w", t.Type.Name, err)
		}
		for _, user := range related {
			users[user] = append(users[user], relation.Name)
		}
	}
	return users, true, nil
}

// users returns the SELECT of the users who have the relation to the record $1 of a table.
func (r Relation) users(from string) string {
	if r.Users != "" {
		return r.Users
	}
	column, ok := strings.CutSuffix(r.SQL, " = $1")
	if !ok || strings.ContainsAny(column, " (") {
		panic("the relation " + r.SQL + " needs Users")
	}
	return "SELECT " + column + " FROM " + from + " WHERE id = $1"
}

// Find reads at most limit records that meet a condition, of those that lists show the caller of the context, in the order of their ids.
// The condition is a constant of the program. Its parameters begin with $2; it must use each of them.
func (t *Table[T]) Find(ctx context.Context, q store.Querier, limit int, condition string, args ...any) ([]T, error) {
	caller := access.From(ctx)
	all := append([]any{caller.UserID}, args...)
	statement := fmt.Sprintf("SELECT %s FROM %s WHERE (%s) AND (%s) ORDER BY %s.id LIMIT %d",
		t.Columns, t.From, condition, t.readable(caller.May(t.Type, access.ReadAll)), t.From, limit)
	found, err := store.All(ctx, q, t.Scan, statement, all...)
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", t.Type.Name, err)
	}
	return found, nil
}

// readable returns the condition that the user $1 may read a record.
func (t *Table[T]) readable(all bool) string {
	if all {
		return "$1 = $1" // each parameter must be used
	}
	return t.condition(access.Read)
}

// Permitted returns the ids of records on which a user has a permission, in their order.
func (r recordsOf[T]) Permitted(ctx context.Context, sought access.Sought) ([]string, error) {
	ids, err := r.table.permitted(ctx, r.db, sought)
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", r.table.Type.Name, err)
	}
	return ids, nil
}

// permitted reads the records of each source of the permission by a statement of its own, from an index, and merges them. A statement
// with all conditions would read the whole table for a user with few records.
func (t *Table[T]) permitted(ctx context.Context, q store.Querier, sought access.Sought) ([]string, error) {
	if sought.All {
		return store.All(ctx, q, store.Text, `SELECT id FROM `+t.From+` WHERE id > $1 ORDER BY id LIMIT $2`, sought.After, sought.Limit)
	}
	var found []string
	for _, relation := range t.Relations {
		if !relation.Allows.Has(sought.Wanted) {
			continue
		}
		// The concatenation keeps the database from reading the table in the order of the ids until it has found enough.
		ids, err := store.All(ctx, q, store.Text,
			`SELECT id FROM `+t.From+` WHERE (`+relation.SQL+`) AND id || '' > $2 ORDER BY id || '' LIMIT $3`,
			sought.Caller.UserID, sought.After, sought.Limit)
		if err != nil {
			return nil, err
		}
		found = append(found, ids...)
	}
	for _, principal := range append([]string{sought.Caller.UserID}, sought.Caller.Roles...) {
		ids, err := store.All(ctx, q, store.Text, `
			SELECT p.rec_id FROM permissions p
			WHERE p.principal_id = $1 AND p.rec_type = $2 AND p.permission = $3 AND p.rec_id > $4
				AND EXISTS (SELECT 1 FROM `+t.From+` r WHERE r.id = p.rec_id)
			ORDER BY p.rec_id LIMIT $5`,
			principal, t.Type.Name, sought.Wanted.String(), sought.After, sought.Limit)
		if err != nil {
			return nil, err
		}
		found = append(found, ids...)
	}
	slices.Sort(found)
	found = slices.Compact(found)
	return found[:min(len(found), sought.Limit)], nil
}
