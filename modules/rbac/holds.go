package rbac

import (
	"context"
	"slices"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

// holder reads what a user holds at this moment: his roles, and his and their grants on types and endpoints. Within a
// transaction that is exact, whatever was granted or taken away since his request came in.
func holder(ctx context.Context, q store.Querier, userID string) (*access.Caller, error) {
	roles, err := rolesOf(ctx, q, userID)
	if err != nil {
		return nil, err
	}
	data := access.PolicyData{Types: map[string]map[string]access.Permission{}, Endpoints: map[string][]string{}}
	if err := readTypeGrants(ctx, q, data.Types, selectTypeGrantsOf, userID); err != nil {
		return nil, err
	}
	if err := readEndpointGrants(ctx, q, data.Endpoints, selectEndpointGrantsOf, userID); err != nil {
		return nil, err
	}
	return access.Caller{UserID: userID, Roles: roles}.WithPolicy(access.NewPolicy(data)), nil
}

// ownRight is what the user may do with the record of a grant by his relation to it.
func (s *Service) ownRight(ctx context.Context, userID string, in GrantInput) (access.Permission, error) {
	if in.RecID == "" {
		return access.None, nil
	}
	t, _ := access.LookupType(in.RecType)
	found, err := s.records(t).Standings(ctx, userID, []string{in.RecID})
	return found[in.RecID].Own, err
}

// mayGrant decides whether the user may make a grant. It returns apierr.GrantToSelf and apierr.GrantNotHeld.
func mayGrant(ctx context.Context, q store.Querier, userID string, own access.Permission, in GrantInput) error {
	grantor, err := holder(ctx, q, userID)
	if err != nil {
		return err
	}
	if in.UserID == userID || slices.Contains(grantor.Roles, in.RoleID) {
		return apierr.GrantToSelf
	}
	if in.Endpoint != "" {
		if !grantor.MayCall(in.Endpoint) {
			return apierr.GrantNotHeld
		}
		return nil
	}
	t, _ := access.LookupType(in.RecType)
	for _, name := range in.Permissions {
		wanted, _ := access.ParsePermission(name)
		held := grantor.May(t, wanted)
		if in.RecID != "" && !held {
			held = own.Has(wanted)
			if !held {
				held, err = holdsOnRecord(ctx, q, userID, t, wanted, in.RecID)
			}
		}
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
	WHERE rec_id = $1 AND rec_type = $2 AND permission = $3
		AND principal_id IN (SELECT $4 UNION ALL SELECT role_id FROM user_roles WHERE user_id = $4)`

func holdsOnRecord(ctx context.Context, q store.Querier, userID string, t access.RecordType, wanted access.Permission, recID string) (bool, error) {
	var n int
	err := q.QueryRow(ctx, countRecordGrants, recID, t.Name, wanted.String(), userID).Scan(&n)
	return n > 0, err
}
