package records

import (
	"context"

	"kontor/store"
)

// UserRoles proves which roles a user holds. Two modules write them: users, who gives and takes roles, and access control,
// which takes a role from everybody when it is deleted.
var UserRoles = Proof{
	Type: "user_roles", From: "user_roles", Key: "user_id", Read: readUserRoles,
}

// ActionUserRoles is the action of their entries.
const ActionUserRoles = "user_roles.change"

const selectUserRoles = `SELECT role_id, created_at, created_by FROM user_roles WHERE user_id = $1 ORDER BY role_id`

// heldRole is a role of a user.
type heldRole struct {
	RoleID    string     `json:"role_id"`
	CreatedAt store.Time `json:"created_at"`
	CreatedBy string     `json:"created_by"`
}

// readUserRoles reads the roles of a user, who may have none.
func readUserRoles(ctx context.Context, q store.Querier, userID string) (store.Record, error) {
	rows, err := q.Query(ctx, selectUserRoles, userID)
	if err != nil {
		return store.Record{}, err
	}
	defer rows.Close()
	held := []heldRole{}
	for rows.Next() {
		var r heldRole
		if err := rows.Scan(&r.RoleID, &r.CreatedAt, &r.CreatedBy); err != nil {
			return store.Record{}, err
		}
		held = append(held, r)
	}
	return store.Record{Answer: map[string]any{"user_id": userID, "roles": held}}, rows.Err()
}
