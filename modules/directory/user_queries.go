package directory

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

const userColumns = "id, status, language, created_at, modified_at, last_login_at, version"

func scanUser(row records.Row) (User, error) {
	u := User{Roles: []string{}}
	err := row.Scan(&u.ID, &u.Status, &u.Language, &u.CreatedAt, &u.ModifiedAt, &u.LastLoginAt, &u.version)
	return u, err
}

// accounts are the users as records. Everybody reads and changes his own; what of it is for others to decide, such as
// the status, the service holds back.
var accounts = records.Table[User]{
	Type:      access.Users,
	From:      "users",
	Columns:   userColumns,
	Scan:      scanUser,
	Relations: []records.Relation{{Allows: access.Read | access.Update, SQL: "id = $1"}},
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
		{Name: "status", Type: list.Text, Column: "status", Key: "status"},
		{Name: "language", Type: list.Text, Column: "language", Key: "language"},
		{Name: "created_at", Type: list.Time, Column: "created_at"},
		{Name: "modified_at", Type: list.Time, Column: "modified_at"},
		{Name: "last_login_at", Type: list.Time, Column: "last_login_at", Null: true},
	},
	Scan: scanUser,
})

const (
	insertUser = `
		INSERT INTO users (id, status, language, created_at, created_by, modified_at, modified_by)
		VALUES ($1, $2, $3, $4, $5, $4, $5)`

	updateUser = `
		UPDATE users SET status = $2, language = $3, modified_at = $4, modified_by = $5, version = version + 1
		WHERE id = $1 AND version = $6`

	// What nothing is left of: a registration whose only claim somebody else took over.
	disableEmptyUser = `
		UPDATE users SET status = 'disabled', modified_at = $2, modified_by = $3, version = version + 1
		WHERE id = $1 AND status = 'pending' AND NOT EXISTS (SELECT 1 FROM credentials WHERE user_id = $1)`

	touchUser = `UPDATE users SET modified_at = $2, modified_by = $3, version = version + 1 WHERE id = $1`

	selectRoleNames = `
		SELECT ur.user_id, r.name FROM user_roles ur JOIN roles r ON r.id = ur.role_id
		WHERE ur.user_id IN (%s) ORDER BY r.name_key`

	selectRoleIDs = `SELECT role_id FROM user_roles WHERE user_id = $1`

	selectRole = `SELECT id FROM roles WHERE id = $1 OR name_key = $2`

	// The assignment of roles is the one thing of access control that users write.
	insertUserRole = `
		INSERT INTO user_roles (user_id, role_id, created_at, created_by) VALUES ($1, $2, $3, $4)
		ON CONFLICT (user_id, role_id) DO NOTHING`

	deleteUserRole = `DELETE FROM user_roles WHERE user_id = $1 AND role_id = $2`

	countOtherAdministrators = `
		SELECT count(*) FROM user_roles ur JOIN users u ON u.id = ur.user_id
		WHERE ur.role_id = $1 AND u.status = 'active' AND u.id <> $2`
)

// rolesAtOnce is for how many users one statement reads the roles; shorter lists are filled up, so that one prepared
// statement serves all.
const rolesAtOnce = 20

// fillRoles reads the names of the roles of all given users.
func fillRoles(ctx context.Context, q store.Querier, users []User) error {
	for len(users) > 0 {
		n := min(len(users), rolesAtOnce)
		if n == 1 {
			return readRoles(ctx, q, users, 1)
		}
		if err := readRoles(ctx, q, users[:n], rolesAtOnce); err != nil {
			return err
		}
		users = users[n:]
	}
	return nil
}

func readRoles(ctx context.Context, q store.Querier, users []User, places int) error {
	args := make([]any, places)
	marks := make([]string, places)
	for i := range args {
		args[i] = users[min(i, len(users)-1)].ID
		marks[i] = "$" + strconv.Itoa(i+1)
	}
	rows, err := q.Query(ctx, fmt.Sprintf(selectRoleNames, strings.Join(marks, ", ")), args...)
	if err != nil {
		return fmt.Errorf("read roles of users: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var userID, name string
		if err := rows.Scan(&userID, &name); err != nil {
			return err
		}
		for i := range users {
			if users[i].ID == userID {
				users[i].Roles = append(users[i].Roles, name)
			}
		}
	}
	return rows.Err()
}

// withRoles completes a user that was read.
func withRoles(ctx context.Context, q store.Querier, u User, err error) (User, error) {
	if err != nil {
		return User{}, err
	}
	one := []User{u}
	err = fillRoles(ctx, q, one)
	return one[0], err
}

// roleIDs gives the ids of the roles that a user holds.
func roleIDs(ctx context.Context, q store.Querier, userID string) ([]string, error) {
	rows, err := q.Query(ctx, selectRoleIDs, userID)
	if err != nil {
		return nil, fmt.Errorf("read roles of a user: %w", err)
	}
	defer rows.Close()
	var ids []string
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}
