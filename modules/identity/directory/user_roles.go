package directory

import (
	"context"

	"kontor/modules/kit/records"
	"kontor/store"
)

// userRolesProof proves which roles a user holds.
var userRolesProof = records.Proof{Type: "user_roles", From: "user_roles", Key: "user_id", Read: readUserRoles, Migration: 71, Changes: &store.ChangeRule{}} // which added the columns of terms

// actionUserRoles is the action of the audit entries about the roles of a user.
const actionUserRoles = "user_roles.change"

const selectUserRoles = `SELECT role_id, created_at, created_by, starts_at, expires_at, in_force FROM user_roles WHERE user_id = $1 ORDER BY role_id`

// heldRole is a role of a user.
type heldRole struct {
	RoleID    string     `json:"role_id"`
	CreatedAt store.Time `json:"created_at"`
	CreatedBy string     `json:"created_by"`

	// The digests of roles without a term are those of earlier versions, which had no such members.
	StartsAt  *store.Time `json:"starts_at,omitzero" form:"later"`
	ExpiresAt *store.Time `json:"expires_at,omitzero" form:"later"`
	Later     bool        `json:"later,omitzero" form:"later"` // starts_at is not reached
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
		var inForce bool
		if err := rows.Scan(&r.RoleID, &r.CreatedAt, &r.CreatedBy, &r.StartsAt, &r.ExpiresAt, &inForce); err != nil {
			return store.Record{}, err
		}
		r.Later = !inForce
		held = append(held, r)
	}
	return store.Record{Answer: map[string]any{"user_id": userID, "roles": held}}, rows.Err()
}
