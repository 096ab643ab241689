package directory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

// setRoles replaces the roles of a user. Callers cannot change their own roles. They can only grant and revoke roles that they
// hold; administrators hold all. It returns apierr.UserNotFound, apierr.NoAccess, apierr.GrantNotHeld and
// apierr.LastAdministrator.
func (s *Service) setRoles(ctx context.Context, in rolesInput) (User, error) {
	var u User
	err := s.db.InTx(ctx, func(tx *store.Tx) (err error) {
		u, err = s.setRolesIn(ctx, tx, in)
		return err
	})
	return u, err
}

// RemoveRoles takes all roles from a user, also those that begin later. It returns the errors of setRoles.
func (s *Service) RemoveRoles(ctx context.Context, tx *store.Tx, userID string) error {
	_, err := s.setRolesIn(ctx, tx, rolesInput{UserID: userID, Roles: &[]string{}, Terms: &[]termInput{}})
	return err
}

// setRolesIn is setRoles within a transaction.
func (s *Service) setRolesIn(ctx context.Context, tx *store.Tx, in rolesInput) (u User, err error) {
	caller := access.From(ctx)
	if u, err = s.getForUpdate(ctx, tx, in.UserID); err != nil {
		return u, err
	}
	ids, err := resolveRoles(ctx, tx, *in.Roles)
	if err != nil {
		return u, err
	}
	var terms map[string]assigned
	if in.Terms != nil {
		if terms, err = resolveTerms(ctx, tx, *in.Terms, ids); err != nil {
			return u, err
		}
	}
	now, err := assignedTo(ctx, tx, u.ID)
	if err != nil {
		return u, err
	}
	wanted := wantedRoles(now, ids, terms)
	stays := func(a assigned) bool { return a.roleID == access.Administrator && !a.endsOrBegins() }
	if !slices.ContainsFunc(wanted, stays) {
		if err := s.keepAdministrator(ctx, tx, u); err != nil {
			return u, err
		}
	}
	if caller.UserID == u.ID {
		return u, apierr.NoAccess
	}
	held, err := s.RolesOf(ctx, tx, caller.UserID) // read now: roles may have changed since the request was authenticated
	if err != nil {
		return u, err
	}
	return s.assign(ctx, tx, u, wanted, func(role string) bool {
		return slices.Contains(held, access.Administrator) || slices.Contains(held, role)
	})
}

// resolveRoles returns the distinct ids of roles given by name or id. It returns apierr.InvalidInput with the unknown ones, and with
// Everyone, which cannot be assigned.
func resolveRoles(ctx context.Context, q store.Querier, namesOrIDs []string) ([]string, error) {
	var problems apierr.Fields
	ids := make([]string, 0, len(namesOrIDs))
	for i, text := range namesOrIDs {
		id, name := "", types.Fold(text)
		if parsed, err := types.ParseID(text); err == nil {
			id, name = parsed, ""
		}
		var found string
		err := q.QueryRow(ctx, selectRole, id, name).Scan(&found)
		switch {
		case errors.Is(err, store.ErrNotFound):
			problems.Add(fmt.Sprintf("roles.%d", i), "invalid.unknown_record")
		case err != nil:
			return nil, fmt.Errorf("find a role: %w", err)
		case found == access.Everyone:
			problems.Add(fmt.Sprintf("roles.%d", i), "invalid.role_of_everyone")
		case !slices.Contains(ids, found):
			ids = append(ids, found)
		}
	}
	return ids, problems.Err()
}

// assign replaces the roles of a user. may reports which roles the caller may grant and revoke.
func (s *Service) assign(ctx context.Context, tx *store.Tx, u User, wanted []assigned, may func(role string) bool) (User, error) {
	changed, err := s.replaceRoles(ctx, tx, u.ID, wanted, may)
	if err != nil || !changed {
		return u, err
	}
	names := strings.Join(u.Roles, ", ")
	if err := accountProof.ChangeRow(ctx, tx, "users.roles", u.ID, touchUser, u.ID, tx.Now(), records.Actor(ctx)); err != nil {
		return u, err
	}
	after, err := userTable.GetUnchecked(ctx, tx, u.ID)
	if u, err = withRoles(ctx, tx, after, err); err != nil {
		return u, err
	}
	s.changed(tx, u.ID)
	entry := store.AuditEntry{Actor: records.Actor(ctx), Action: actionUserRoles, RecType: userRolesProof.Type, RecID: u.ID}
	entry.Changes = []store.FieldChange{store.Changed("roles", names, strings.Join(u.Roles, ", "))}
	return u, userRolesProof.AuditEntry(ctx, tx, entry)
}

// replaceRoles writes the roles of a user that differ from the wanted ones, and reports whether there were any.
func (s *Service) replaceRoles(ctx context.Context, tx *store.Tx, userID string, wanted []assigned, may func(role string) bool) (changed bool, err error) {
	now, err := assignedTo(ctx, tx, userID)
	if err != nil {
		return false, err
	}
	find := func(roles []assigned, id string) int {
		return slices.IndexFunc(roles, func(a assigned) bool { return a.roleID == id })
	}
	for _, a := range now {
		if find(wanted, a.roleID) >= 0 {
			continue
		}
		if !may(a.roleID) {
			return false, apierr.GrantNotHeld
		}
		if _, err := tx.Exec(ctx, deleteUserRole, userID, a.roleID); err != nil {
			return false, err
		}
		changed = true
	}
	for _, a := range wanted {
		if i := find(now, a.roleID); i >= 0 && now[i].same(a) {
			continue
		}
		if !may(a.roleID) {
			return false, apierr.GrantNotHeld
		}
		if _, err := tx.Exec(ctx, upsertUserRole, userID, a.roleID, tx.Now(), records.Actor(ctx), a.starts, a.expires, a.inForce); err != nil {
			return false, err
		}
		if a.endsOrBegins() && s.Peers.Terms != nil {
			s.Peers.Terms.TermsChanged(tx)
		}
		changed = true
	}
	return changed, nil
}

// keepAdministrator returns apierr.LastAdministrator if the user is the last active administrator.
func (s *Service) keepAdministrator(ctx context.Context, tx *store.Tx, u User) error {
	if u.Status != Active || u.Kind == Machine {
		return nil
	}
	roles, err := s.RolesOf(ctx, tx, u.ID)
	if err != nil || !slices.Contains(roles, access.Administrator) {
		return err
	}
	var others int
	if err := tx.QueryRow(ctx, countOtherAdministrators, access.Administrator, u.ID).Scan(&others); err != nil {
		return err
	}
	if others == 0 {
		return apierr.LastAdministrator
	}
	return nil
}

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
	held := []heldRole{}
	err := store.Each(ctx, q, func(row store.Scanner) error {
		var r heldRole
		var inForce bool
		err := row.Scan(&r.RoleID, &r.CreatedAt, &r.CreatedBy, &r.StartsAt, &r.ExpiresAt, &inForce)
		r.Later = !inForce
		held = append(held, r)
		return err
	}, selectUserRoles, userID)
	return store.Record{Answer: map[string]any{"user_id": userID, "roles": held}}, err
}
