package rbac

import (
	"context"
	"slices"

	"kontor/modules/kit/records"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

// grantorOf reads the roles of a user and the grants on types and endpoints that the user and these roles have. Within a
// transaction the result is current, even if grants changed since the request began.
func (s *Service) grantorOf(ctx context.Context, q store.Querier, userID string) (*access.Caller, error) {
	roles, err := s.Users.RolesOf(ctx, q, userID)
	if err != nil {
		return nil, err
	}
	data := access.PolicyData{Types: map[string]map[string]access.Permission{}, Endpoints: map[string][]string{}, Own: s.policy.own}
	if err := readTypeGrants(ctx, q, data.Types, selectTypeGrantsOf, userID); err != nil {
		return nil, err
	}
	if err := readEndpointGrants(ctx, q, data.Endpoints, selectEndpointGrantsOf, userID); err != nil {
		return nil, err
	}
	return access.Caller{UserID: userID, Roles: roles}.WithPolicy(access.NewPolicy(data)), nil
}

// ownPermissions returns what a user may do with the record of a grant by their relation to it.
func (s *Service) ownPermissions(ctx context.Context, userID string, in GrantInput) (access.Permission, error) {
	if in.RecID == "" || in.external {
		return access.None, nil
	}
	t, _ := access.LookupType(in.RecType)
	owner := s.recordsOf(t)
	if owner == nil {
		return access.None, nil // checkRecord rejects the grant
	}
	found, err := owner.Relations(ctx, userID, []string{in.RecID})
	return found[in.RecID], err
}

// checkDelegation checks that a user may create a grant: users can only grant permissions that they hold, and not to
// themselves or to a role of theirs. own are the user's permissions on the record by relation. It returns apierr.GrantToSelf
// and apierr.GrantNotHeld.
func (s *Service) checkDelegation(ctx context.Context, q store.Querier, userID string, own access.Permission, in GrantInput) error {
	grantor, err := s.grantorOf(ctx, q, userID)
	if err != nil {
		return err
	}
	if in.UserID == userID || slices.Contains(grantor.Roles, in.RoleID) {
		return apierr.GrantToSelf
	}
	return s.checkHeld(ctx, q, grantor, own, in)
}

// checkHeld returns apierr.GrantNotHeld unless a caller holds all that a grant gives.
func (s *Service) checkHeld(ctx context.Context, q store.Querier, grantor *access.Caller, own access.Permission, in GrantInput) (err error) {
	if in.Endpoint != "" {
		if !grantor.MayCall(in.Endpoint) {
			return apierr.GrantNotHeld
		}
		return nil
	}
	if in.external {
		return checkExternalDelegation(ctx, q, grantor, in)
	}
	t, _ := access.LookupType(in.RecType)
	for _, name := range in.Permissions {
		wanted, _ := access.ParsePermission(name)
		held := grantor.May(t, wanted) || own.Has(wanted)
		if !held && in.RecID != "" {
			if held, err = hasRecordGrant(ctx, q, grantor.UserID, t, wanted, in.RecID); err != nil {
				return err
			}
		}
		if !held {
			return apierr.GrantNotHeld.Detail("permission", name)
		}
	}
	return nil
}

// checkExternalDelegation checks that a user holds the permissions that they grant on another application's records.
func checkExternalDelegation(ctx context.Context, q store.Querier, grantor *access.Caller, in GrantInput) error {
	if grantor.Administrator() {
		return nil
	}
	for _, name := range in.Permissions {
		held, err := holdsExternal(ctx, q, grantor.UserID, in.RecType, in.RecID, name)
		if err != nil {
			return err
		}
		if !held {
			return apierr.GrantNotHeld.Detail("permission", name)
		}
	}
	return nil
}

const countRecordGrants = `
	SELECT COUNT(*) FROM grants
	WHERE rec_id = $2 AND rec_type = $3 AND permission = $4 AND principal_id IN (` + records.Principals + `)`

// hasRecordGrant reports whether a grant on the record gives a permission to the user or to one of their roles.
func hasRecordGrant(ctx context.Context, q store.Querier, userID string, t access.RecordType, wanted access.Permission, recID string) (bool, error) {
	var n int
	err := q.QueryRow(ctx, countRecordGrants, userID, recID, t.Name, wanted.String()).Scan(&n)
	return n > 0, err
}
