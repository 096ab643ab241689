package directory

import (
	"context"
	"fmt"

	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

const userColumns = "id, display_name, status, language, created_at, modified_at, last_login_at, version, erased_at, kind"

func scanUser(row records.Row) (User, error) {
	u := User{Roles: []string{}}
	err := row.Scan(&u.ID, &u.DisplayName, &u.Status, &u.Language, &u.CreatedAt, &u.ModifiedAt, &u.LastLoginAt, &u.version, &u.ErasedAt, &u.Kind)
	return u, err
}

// userTable holds the users as records. Users may read and update their own record; the service keeps them from changing what
// only administrators may change, such as the status.
var userTable = records.Table[User]{
	Type:      access.Users,
	From:      "users",
	Columns:   userColumns,
	Scan:      scanUser,
	Relations: []records.Relation{{Name: access.RelationSelf, Allows: access.Read | access.Update, SQL: "id = $1"}},
	Missing:   apierr.UserNotFound,
}

var userList = list.New(list.Source[User]{
	From:    "users",
	Columns: userColumns,
	ID:      "id",
	Created: "created_at",
	Tables:  []string{"users"},
	Fields: list.Fields{
		{Name: "id", Type: list.UUID, Column: "id"},
		{Name: "display_name", Type: list.Text, Column: "display_name", Key: "display_name_key", Order: "display_name_order", Fold: types.SearchKey, Index: list.ThenID},
		{Name: "kind", Type: list.Text, Column: "kind", Key: "kind", Index: list.ThenCreated},
		{Name: "status", Type: list.Text, Column: "status", Key: "status", Index: list.ThenCreated},
		{Name: "language", Type: list.Text, Column: "language", Key: "language", Index: list.ThenCreated},
		{Name: "created_at", Type: list.Time, Column: "created_at"},
		{Name: "modified_at", Type: list.Time, Column: "modified_at", Index: list.ThenID},
		{Name: "last_login_at", Type: list.Time, Column: "last_login_at", Null: true, Index: list.ThenID},
	},
	Scan: scanUser,
})

const (
	insertUser = `
		INSERT INTO users (
			id, status, language, created_at, created_by, modified_at, modified_by, display_name, display_name_key, display_name_skeleton, kind,
			display_name_order)
		VALUES ($1, $2, $3, $4, $5, $4, $5, $6, $7, $8, $9, $10)`

	updateUser = `
		UPDATE users SET
			status = $2, language = $3, modified_at = $4, modified_by = $5, version = version + 1,
			display_name = $7, display_name_key = $8, display_name_skeleton = $9, display_name_order = $10
		WHERE id = $1 AND version = $6`

	// Pending users whose only credential was taken over.
	disableEmptyUser = `
		UPDATE users SET status = 'disabled', modified_at = $2, modified_by = $3, version = version + 1
		WHERE id = $1 AND status = 'pending' AND NOT EXISTS (SELECT 1 FROM credentials WHERE user_id = $1)`

	touchUser = `UPDATE users SET modified_at = $2, modified_by = $3, version = version + 1 WHERE id = $1`

	selectRoleNames = `
		SELECT ur.user_id, r.name FROM held_roles ur JOIN role_names r ON r.id = ur.role_id
		WHERE ur.user_id IN (%s) ORDER BY r.name_key`

	selectRole = `SELECT id FROM role_names WHERE id = $1 OR name_key = $2`

	insertUserRole = `
		INSERT INTO user_roles (user_id, role_id, created_at, created_by) VALUES ($1, $2, $3, $4)
		ON CONFLICT (user_id, role_id) DO NOTHING`

	deleteUserRole = `DELETE FROM user_roles WHERE user_id = $1 AND role_id = $2`

	// Service accounts do not count: they cannot sign in, nor change roles. Nor do administrators whose role ends by itself.
	countOtherAdministrators = `
		SELECT count(*) FROM user_roles ur JOIN users u ON u.id = ur.user_id
		WHERE ur.role_id = $1 AND ur.in_force = TRUE AND ur.expires_at IS NULL AND u.status = 'active' AND u.kind = 'person' AND u.id <> $2`
)

// fillRoles adds the names of their roles to users.
func fillRoles(ctx context.Context, q store.Querier, users []User) error {
	ids, at := make([]string, len(users)), make(map[string]int, len(users))
	for i, u := range users {
		ids[i], at[u.ID] = u.ID, i
	}
	err := eachByID(ctx, q, selectRoleNames, ids, func(rows *store.Rows) error {
		var userID, name string
		if err := rows.Scan(&userID, &name); err != nil {
			return err
		}
		u := &users[at[userID]]
		u.Roles = append(u.Roles, name)
		return nil
	})
	if err == nil {
		err = fillTerms(ctx, q, users)
	}
	if err != nil {
		return fmt.Errorf("read roles of users: %w", err)
	}
	return nil
}

// withRoles adds the roles to a user that was read.
func withRoles(ctx context.Context, q store.Querier, u User, err error) (User, error) {
	if err != nil {
		return User{}, err
	}
	one := []User{u}
	err = fillRoles(ctx, q, one)
	return one[0], err
}
