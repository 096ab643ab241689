package oidc

import (
	"context"
	"errors"
	"slices"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// settle finds or creates the user of a statement, applies the mapped roles, and returns to the console with a one-time code.
// It returns a *rejection.
func (s *Service) settle(ctx context.Context, st statement, began begun) (endpoint.Result, error) {
	var result endpoint.Result
	var rejected *rejection
	err := s.db.InTx(ctx, func(tx *store.Tx) (err error) {
		rejected = nil
		if began.Again {
			result, err = s.settleProof(ctx, tx, st, began)
			return rejectedIn(err, &rejected)
		}
		link, userID, err := s.findUser(ctx, tx, &st)
		if err != nil {
			return rejectedIn(err, &rejected)
		}
		p, member := forSignIn, memberCode
		if link {
			p, member = forLink, memberLink
		}
		code, cookie, err := s.issueCode(ctx, tx, p, userID, st)
		result = s.toConsole(began.ReturnTo, member, code, cookie)
		return err
	})
	if err == nil && rejected != nil {
		err = rejected
	}
	return result, err
}

// rejectedIn stores a rejection and returns nil, so that the transaction is committed: roles may have been removed. It returns every
// other error.
func rejectedIn(err error, into **rejection) error {
	if errors.As(err, into) {
		return nil
	}
	return err
}

// settleProof returns to the console with a one-time code that proves the user of an identity. It returns a *rejection.
func (s *Service) settleProof(ctx context.Context, tx *store.Tx, st statement, began begun) (endpoint.Result, error) {
	// A provider may ignore that the person must authenticate again. An older authentication proves nothing.
	if st.At == 0 || st.At < began.At.Add(-leeway) {
		return endpoint.Result{}, reject(apierr.OIDCFailed, "not_again", nil)
	}
	identity, err := selectIdentity(ctx, tx, st.Issuer, st.Subject)
	if errors.Is(err, store.ErrNotFound) {
		return endpoint.Result{}, reject(apierr.OIDCNoAccount, "unknown", nil)
	}
	if err != nil {
		return endpoint.Result{}, err
	}
	st.Identity = identity.ID
	if err := s.requireStaff(ctx, tx, identity.UserID); err != nil {
		return endpoint.Result{}, err
	}
	code, cookie, err := s.issueCode(ctx, tx, forProof, identity.UserID, st)
	return s.toConsole(began.ReturnTo, memberProof, code, cookie), err
}

// findUser returns the user to sign in, or with link the user who may link the account. It returns a *rejection.
func (s *Service) findUser(ctx context.Context, tx *store.Tx, st *statement) (link bool, userID string, err error) {
	identity, err := selectIdentity(ctx, tx, st.Issuer, st.Subject)
	if err == nil {
		st.Identity = identity.ID
		return false, identity.UserID, s.admit(ctx, tx, identity.UserID, st.Roles)
	}
	if !errors.Is(err, store.ErrNotFound) {
		return false, "", err
	}
	if st.Email == "" {
		return false, "", reject(apierr.OIDCNoAccount, "email_unverified", nil)
	}
	owner, err := selectText(ctx, tx, selectOwnerOfEmail, s.users.LoginKey(st.Email))
	if err != nil {
		return false, "", err
	}
	if owner != "" {
		return true, owner, s.requireStaff(ctx, tx, owner)
	}
	userID, err = s.create(ctx, tx, st)
	return false, userID, err
}

// admit applies the mapped roles to a linked user and returns a *rejection unless they are active staff.
func (s *Service) admit(ctx context.Context, tx *store.Tx, userID string, claimed []string) error {
	_, active, _, err := s.isActiveStaff(ctx, tx, userID)
	if err != nil {
		return err
	}
	if !active {
		return &rejection{kind: apierr.OIDCNoAccount, note: "disabled", user: userID}
	}
	if err := s.syncRoles(ctx, tx, userID, claimed); err != nil {
		return err
	}
	return s.requireStaff(ctx, tx, userID)
}

// requireStaff returns a *rejection unless a user is active staff. The accounts of customers cannot be used through the provider.
func (s *Service) requireStaff(ctx context.Context, q store.Querier, userID string) error {
	_, active, staff, err := s.isActiveStaff(ctx, q, userID)
	switch {
	case err != nil:
		return err
	case !active:
		return &rejection{kind: apierr.OIDCNoAccount, note: "disabled", user: userID}
	case !staff:
		return &rejection{kind: apierr.OIDCNoAccount, note: "not_staff", user: userID}
	}
	return nil
}

// syncRoles gives a user the roles that the claim stands for, and takes the other roles of the setting.
func (s *Service) syncRoles(ctx context.Context, tx *store.Tx, userID string, claimed []string) error {
	managed, wanted, err := s.mapRoles(ctx, tx, claimed)
	if err != nil || len(managed) == 0 {
		return err
	}
	kept, err := s.users.SyncRoles(ctx, tx, userID, managed, wanted)
	if kept {
		s.options.Log.Warn("the provider takes the role Administrator from the last administrator, who keeps it", "user_id", userID)
		endpoint.Report(ctx, endpoint.Event{Kind: endpoint.Denial, Action: "auth.oidc_kept_administrator", RecType: access.Users.Name, RecID: userID})
	}
	return err
}

// mapRoles returns the ids of the roles of the setting, and of those that the values of the claim stand for.
func (s *Service) mapRoles(ctx context.Context, q store.Querier, claimed []string) (managed, wanted []string, err error) {
	for _, m := range s.options.RoleMap {
		id, err := selectRoleID(ctx, q, m.Role)
		if err != nil {
			return nil, nil, err
		}
		if id == "" {
			continue
		}
		if !slices.Contains(managed, id) {
			managed = append(managed, id)
		}
		if slices.Contains(claimed, m.Claim) && !slices.Contains(wanted, id) {
			wanted = append(wanted, id)
		}
	}
	return managed, wanted, nil
}

// create creates a user with an identity at the first sign-in, if the setting allows it and one of the mapped roles is a role
// of staff.
func (s *Service) create(ctx context.Context, tx *store.Tx, st *statement) (userID string, err error) {
	if !s.options.CreateUsers {
		return "", reject(apierr.OIDCNoAccount, "unknown", nil)
	}
	_, wanted, err := s.mapRoles(ctx, tx, st.Roles)
	if err != nil {
		return "", err
	}
	if !slices.ContainsFunc(wanted, s.options.Policy.Load().Staff) {
		return "", reject(apierr.OIDCNoAccount, "not_staff", nil)
	}
	userID, err = s.users.CreateFederated(ctx, tx, NewUser{Email: st.Email, DisplayName: st.Name, Language: st.Language, Roles: wanted})
	if errors.Is(err, apierr.CredentialExists) {
		// Another user has claimed the address a moment ago and has not validated it: see the package directory.
		return "", reject(apierr.OIDCNoAccount, "address_claimed", err)
	}
	if err != nil {
		return "", err
	}
	identity, err := s.insertIdentity(ctx, tx, Identity{UserID: userID, Subject: st.Subject, Email: st.Email, CreatedBy: store.NilID})
	st.Identity = identity.ID
	return userID, err
}
