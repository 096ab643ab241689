package rbac

import (
	"context"
	"errors"
	"slices"

	"kontor/modules/kit/records"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// grantorOf reads the roles of a user and the grants on types and endpoints that the user and these roles have. Within a
// transaction the result is current, even if grants changed since the request began.
func (s *Service) grantorOf(ctx context.Context, q store.Querier, userID string) (*access.Caller, error) {
	roles, err := s.Users.RolesOf(ctx, q, userID)
	if err != nil {
		return nil, err
	}
	data, err := readGrants(ctx, q, ofPrincipals, userID)
	if err != nil {
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
// themselves or to a role of theirs. Administrators alone decide what everyone may call, although they hold Everyone, too. own are the
// user's permissions on the record by relation. It returns apierr.GrantToSelf, apierr.RightsNotHeld, apierr.GrantNotHeld, and
// apierr.InvalidInput for a permission of Everyone on records.
func (s *Service) checkDelegation(ctx context.Context, q store.Querier, userID string, own access.Permission, in GrantInput) error {
	grantor, err := s.grantorOf(ctx, q, userID)
	if err != nil {
		return err
	}
	switch toEveryone := in.RoleID == access.Everyone; {
	case toEveryone && !grantor.Administrator():
		return apierr.RightsNotHeld
	case toEveryone && in.Endpoint == "":
		return apierr.Invalid("rec_type", "invalid.everyone_endpoints")
	case in.UserID == userID, !toEveryone && slices.Contains(grantor.Roles, in.RoleID):
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

const selectRecordGrant = `
	SELECT 1 FROM grants
	WHERE rec_id = $2 AND rec_type = $3 AND permission = $4 AND principal_id IN (` + records.Principals + `) LIMIT 1`

// hasRecordGrant reports whether a grant on the record gives a permission to the user or to one of their roles.
func hasRecordGrant(ctx context.Context, q store.Querier, userID string, t access.RecordType, wanted access.Permission, recID string) (bool, error) {
	return store.Exists(ctx, q, selectRecordGrant, userID, recID, t.Name, wanted.String())
}

// Callers do not give away or take away more than they hold. Operations on the sign-in, sessions, status, roles or data of another
// user, or on a role, need every right that the user or the role holds. The rows of the endpoint table name
// their subject, and the server calls [Service.CheckSubject] before their handlers.
//
// Rights are those by grants, to the user or to their roles: on record types, on endpoints and on single records. Relations, such as
// that of a customer to their own records, are no rights in this sense: no advisor could help a customer otherwise.

// shownRights is how many rights a refusal names.
const shownRights = 20

// CheckSubject returns apierr.RightsNotHeld unless the caller holds every right that the subject of a row holds, and
// apierr.GrantNotHeld for a service account. It returns apierr.NoAccess to callers who could not use the row for any user: they do
// not learn what others hold. An unknown subject holds nothing: the handler answers.
func (s *Service) CheckSubject(ctx context.Context, row *endpoint.Endpoint, id string) error {
	if access.From(ctx).Administrator() {
		return nil
	}
	if row.Subject.Kind() == access.SubjectPersona {
		return s.checkPersona(ctx, row, id)
	}
	holder, err := s.subject(ctx, row.Subject, id)
	if err != nil {
		return err
	}
	return s.checkHolder(ctx, row, holder)
}

// checkPersona compares the rights of the caller with those of each user of a persona.
func (s *Service) checkPersona(ctx context.Context, row *endpoint.Endpoint, id string) error {
	if s.Personas == nil {
		return nil
	}
	users, err := s.Personas.UsersOf(ctx, s.db, id)
	if err != nil {
		return err
	}
	for _, user := range users {
		holder, err := s.subject(ctx, access.UserIn(""), user)
		if err == nil {
			err = s.checkHolder(ctx, row, holder)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkHolder compares the rights of the caller with those of the holder.
func (s *Service) checkHolder(ctx context.Context, row *endpoint.Endpoint, holder access.Caller) error {
	caller := access.From(ctx)
	lacking, err := s.lacking(ctx, s.db, caller, holder.WithPolicy(s.Policy.Load()))
	switch {
	case err != nil || len(lacking) == 0:
		return err
	case !mayLearn(caller, row.Access):
		return apierr.NoAccess
	case row.Subject.Kind() == access.SubjectAccount:
		return apierr.GrantNotHeld
	case caller.May(access.Grants, access.ReadAll) && caller.May(access.Users, access.ReadAll):
		return apierr.RightsNotHeld.Detail("rights", lacking[:min(len(lacking), shownRights)])
	}
	return apierr.RightsNotHeld
}

// mayLearn reports whether the caller could use a row for some users: it has the permission on the type, or reads all users.
func mayLearn(caller *access.Caller, rule access.Rule) bool {
	t, p, ok := rule.Record()
	return ok && caller.May(t, p) || caller.May(access.Users, access.ReadAll)
}

// checkTaking returns apierr.RightsNotHeld unless the caller holds every right of the role from which they take a grant of others.
func (s *Service) checkTaking(ctx context.Context, q store.Querier, g Grant, roleID string) error {
	if g.CreatedBy == access.From(ctx).UserID {
		return nil
	}
	return s.checkHolds(ctx, q, &access.Caller{Roles: []string{roleID}})
}

// subject returns the holder of the rights that a row needs.
func (s *Service) subject(ctx context.Context, subject access.Subject, id string) (holder access.Caller, err error) {
	switch subject.Kind() {
	case access.SubjectUser, access.SubjectAccount:
		holder.UserID = id
	case access.SubjectCredential:
		holder.UserID, err = s.Users.HolderOf(ctx, s.db, id)
	case access.SubjectInvitation:
		holder.Roles, err = s.Users.InvitedRoles(ctx, s.db, id)
	case access.SubjectRole:
		holder.Roles = []string{id}
	case access.SubjectGrant:
		grant, err := grantTable.GetUnchecked(ctx, s.db, id)
		if errors.Is(err, apierr.GrantNotFound) {
			return holder, nil
		}
		if err != nil {
			return holder, err
		}
		switch {
		case grant.CreatedBy == access.From(ctx).UserID: // what is given may be taken back
		case grant.RoleID != nil:
			holder.Roles = []string{*grant.RoleID}
		default:
			holder.UserID = *grant.UserID
		}
	}
	if err != nil || holder.UserID == "" {
		return holder, err
	}
	if holder.UserID == access.From(ctx).UserID {
		return access.Caller{}, nil // what is one's own
	}
	holder.Roles, err = s.Users.AssignedRoles(ctx, s.db, holder.UserID) // with those that begin later
	return holder, err
}

// CheckHolds returns apierr.GrantNotHeld unless the caller holds every right that a user holds, as of now. An operator without a
// session holds all. It is for services that act for a user whom no path names.
func (s *Service) CheckHolds(ctx context.Context, q store.Querier, userID string) error {
	by := access.From(ctx).UserID
	if by == "" || by == store.NilID || by == userID {
		return nil
	}
	caller, err := s.grantorOf(ctx, q, by)
	if err != nil {
		return err
	}
	holder, err := s.grantorOf(ctx, q, userID)
	if err != nil {
		return err
	}
	lacking, err := s.lacking(ctx, q, caller, holder)
	if err == nil && len(lacking) > 0 {
		err = apierr.GrantNotHeld
	}
	return err
}

// lacking returns the rights that a holder has and that the caller does not have.
func (s *Service) lacking(ctx context.Context, q store.Querier, caller, holder *access.Caller) ([]string, error) {
	lacking := caller.Lacking(holder)
	if len(lacking) > 0 || caller.Administrator() {
		return lacking, nil
	}
	lacking, err := s.lackingOnRecords(ctx, q, caller, holder)
	if len(lacking) > 0 || err != nil {
		return lacking, err
	}
	external, err := lackingExternal(ctx, q, caller, holder)
	if external == "" && err == nil {
		external, err = s.lackingLater(ctx, q, caller, holder)
	}
	if external != "" {
		lacking = []string{external}
	}
	return lacking, err
}

// lackingOnRecords compares the grants on single records. A caller holds one also by a relation to the record, as for giving it on.
func (s *Service) lackingOnRecords(ctx context.Context, q store.Querier, caller, holder *access.Caller) ([]string, error) {
	held, err := recordGrantsOf(ctx, q, holder)
	if err != nil {
		return nil, err
	}
	for some := range slices.Chunk(held, maxChecks) {
		decisions, err := s.Decide(ctx, caller, some)
		if err != nil {
			return nil, err
		}
		for i, d := range decisions {
			if !d.Allowed && !d.Missing {
				return []string{some[i].RecType + ":" + some[i].Permission + " " + some[i].RecID}, nil
			}
		}
	}
	return nil, nil
}

// recordGrantsOf reads what grants on single records give a user and their roles.
func recordGrantsOf(ctx context.Context, q store.Querier, holder *access.Caller) ([]access.Check, error) {
	principals := principalsOf(holder)
	if len(principals) == 0 {
		return nil, nil
	}
	statement := `SELECT DISTINCT rec_type, permission, rec_id FROM grants WHERE rec_id <> '' AND principal_id IN (` + store.In(1, len(principals)) + `)`
	return store.All(ctx, q, func(row store.Scanner) (c access.Check, err error) {
		err = row.Scan(&c.RecType, &c.Permission, &c.RecID)
		return c, err
	}, statement, store.AppendIn(nil, principals)...)
}
