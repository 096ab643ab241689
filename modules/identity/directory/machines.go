package directory

import (
	"context"

	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

// The module serviceaccounts calls the functions of this file: it owns what makes a user a service account.

// MachineChange changes the user of a service account. nil stays as it is.
type MachineChange struct {
	Name   *string
	Status *string // Active or Disabled
}

// CreateMachine stores the active user of a service account and returns its id. roles are names or ids. The caller must be an
// administrator, an operator without a session, or hold the roles. It returns apierr.InvalidInput for unknown roles and
// apierr.GrantNotHeld.
func (s *Service) CreateMachine(ctx context.Context, tx *store.Tx, name string, roles []string) (id string, err error) {
	wanted, err := resolveRoles(ctx, tx, roles)
	if err != nil {
		return "", err
	}
	if err := s.CheckHeld(ctx, tx, wanted); err != nil {
		return "", err
	}
	u := User{ID: store.NewID(), Kind: Machine, DisplayName: name, Status: Active, Language: types.English.String(), Roles: []string{},
		CreatedAt: tx.Now(), ModifiedAt: tx.Now(), version: 1}
	by := records.Actor(ctx)
	if err := insertAccount(ctx, tx, &u, wanted, by); err != nil {
		return "", err
	}
	return u.ID, s.auditNew(ctx, tx, &u, by)
}

// CheckHeld returns apierr.GrantNotHeld if the caller does not hold all of the roles, given by id. Administrators hold all, and
// so does an operator without a session.
func (s *Service) CheckHeld(ctx context.Context, tx *store.Tx, roles []string) error {
	caller := access.From(ctx)
	if caller.UserID == "" || caller.UserID == store.NilID {
		return nil
	}
	held, err := s.RolesOf(ctx, tx, caller.UserID) // read now: roles may have changed since the request was authenticated
	if err != nil {
		return err
	}
	all := make(map[string]bool, len(held))
	for _, role := range held {
		all[role] = true
	}
	for _, role := range roles {
		if !all[role] && !all[access.Administrator] {
			return apierr.GrantNotHeld
		}
	}
	return nil
}

// ChangeMachine changes the user of a service account. It returns apierr.RecordErased.
func (s *Service) ChangeMachine(ctx context.Context, tx *store.Tx, id string, c MachineChange) error {
	u, err := userTable.GetUnchecked(ctx, tx, id)
	if u, err = withRoles(ctx, tx, u, err); err != nil {
		return err
	}
	if u.Erased() {
		return apierr.RecordErased
	}
	if c.Name != nil && *c.Name != u.DisplayName {
		before := u
		u.DisplayName = *c.Name
		if err := s.save(ctx, tx, before, &u, "users.update"); err != nil {
			return err
		}
	}
	if c.Status == nil || *c.Status == u.Status {
		return nil
	}
	return s.changeStatus(ctx, tx, &u, *c.Status)
}
