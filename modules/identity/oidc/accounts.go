package oidc

import (
	"context"
	"errors"
	"slices"

	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/modules/kit/signin"
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
	userID, err = s.users.CreateFederated(ctx, tx, signin.NewUser{Email: st.Email, DisplayName: st.Name, Language: st.Language, Roles: wanted})
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

// Identity is an account at the provider with which a user may sign in.
type Identity struct {
	ID          string      `json:"id"`
	UserID      string      `json:"user_id"`
	Issuer      string      `json:"issuer" format:"uri" example:"https://login.bank.example"`
	Subject     string      `json:"subject" maxLength:"255" example:"248289761001" doc:"Id of the account at the issuer."`
	Email       string      `json:"email" format:"-" example:"anna.keller@bank.example" doc:"The address of the account when it was linked; empty if unknown."`
	CreatedAt   store.Time  `json:"created_at"`
	CreatedBy   string      `json:"created_by"`
	LastUsedAt  *store.Time `json:"last_used_at"`
	TrustedFrom *store.Time `json:"trusted_from" doc:"Until then the account can neither replace an older method of sign-in nor be the only proof for a sensitive change; null for one that came with the user, or existed before this rule."`
}

// onTrial reports whether an identity is on trial (see the package signin).
func (i Identity) onTrial(now store.Time) bool { return i.TrustedFrom != nil && now < *i.TrustedFrom }

// EachUser names the user and the creator.
func (i Identity) EachUser(add func(id string)) {
	add(i.UserID)
	add(i.CreatedBy)
}

const (
	// maxIdentities is the number of identities of one user.
	maxIdentities = 10

	actionLink   = "identities.create"
	actionUnlink = "identities.delete"
)

// insertIdentity links an account at the provider to a user. It returns apierr.IdentityExists for an account that is linked,
// to whomever, and apierr.TooManyIdentities.
func (s *Service) insertIdentity(ctx context.Context, tx *store.Tx, i Identity) (Identity, error) {
	var n int
	if err := tx.QueryRow(ctx, countIdentities, i.UserID).Scan(&n); err != nil {
		return Identity{}, err
	}
	if n >= maxIdentities {
		return Identity{}, apierr.TooManyIdentities
	}
	i.ID, i.Issuer, i.CreatedAt = store.NewID(), s.options.Issuer, tx.Now()
	var trusted store.Time
	if i.TrustedFrom != nil {
		trusted = *i.TrustedFrom
	}
	_, err := tx.Exec(ctx, insertIdentityRow, i.ID, i.UserID, i.Issuer, i.Subject, i.Email, i.CreatedAt, i.CreatedBy, trusted)
	if errors.Is(err, store.ErrDuplicate) {
		return Identity{}, apierr.IdentityExists.Wrap(err)
	}
	if err != nil {
		return Identity{}, err
	}
	undo, keepUndo := s.sessions.NewUndo(signin.Identity, i.UserID, i.ID)
	if i.TrustedFrom == nil {
		undo = ""
	} else if err := keepUndo(ctx, tx); err != nil {
		return Identity{}, err
	}
	if err := identityProof.Audit(ctx, tx, actionLink, i.ID, nil); err != nil {
		return Identity{}, err
	}
	return i, s.outbox.CredentialAdded(ctx, tx, i.UserID, s.Name(), undo)
}

// link links an account at the provider: the caller's own with a one-time code of the provider's answer, or that of a user
// with the subject, for callers who may create identities. It returns apierr.UserNotFound, apierr.NoAccess,
// apierr.OIDCInvalidCode, apierr.NotStaff, apierr.IdentityExists and apierr.TooManyIdentities. Users who link an account of their own
// prove themself with an older method: link also returns what signin.Rule.Prove does.
func (s *Service) link(ctx context.Context, in linkInput) (Identity, error) {
	caller := access.From(ctx)
	if in.Subject != "" && !caller.May(access.Identities, access.Create) {
		return Identity{}, apierr.NoAccess
	}
	if caller.UserID == in.UserID && s.provider != nil {
		if err := s.sessions.Prove(ctx, in.proof()); err != nil {
			return Identity{}, err
		}
	}
	var linked Identity
	var refused error
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		refused = nil
		exists, active, staff, err := s.isActiveStaff(ctx, tx, in.UserID)
		switch {
		case err != nil:
			return err
		case !exists:
			return apierr.UserNotFound
		case s.provider == nil:
			return apierr.NotFound
		case in.Code != "" && caller.UserID != in.UserID:
			return apierr.NoAccess
		case !active || !staff:
			return apierr.NotStaff
		}
		subject, email := in.Subject, ""
		if in.Code != "" {
			userID, st, valid, err := s.useCode(ctx, tx, forLink, in.Code)
			if err != nil {
				return err
			}
			if !valid || userID != caller.UserID || st.Issuer != s.options.Issuer {
				refused = apierr.OIDCInvalidCode
				return nil // committed: the code is void
			}
			subject, email = st.Subject, st.Email
		}
		trusted := tx.Now().Add(signin.Trial)
		linked, err = s.insertIdentity(ctx, tx, Identity{UserID: in.UserID, Subject: subject, Email: email, CreatedBy: records.Actor(ctx), TrustedFrom: &trusted})
		if err != nil {
			return err
		}
		tx.Respond(linked)
		return nil
	})
	if err == nil && refused != nil {
		s.report(ctx, &rejection{kind: apierr.OIDCInvalidCode, note: "link_code", user: caller.UserID})
		err = refused
	}
	return linked, err
}

// identities lists the identities of a user. The caller is the user, or may read the identities. It returns
// apierr.UserNotFound and apierr.NoAccess.
func (s *Service) identities(ctx context.Context, in list.OfInput) (list.Page[Identity], error) {
	status, err := selectText(ctx, s.db, selectStatus, in.ID)
	if err == nil && status == "" {
		err = apierr.UserNotFound
	}
	if err != nil {
		return list.Page[Identity]{}, err
	}
	ofUser := list.Where{SQL: "user_id = $1", Args: []any{in.ID}}
	return identityTable.PageOf(ctx, s.db, identityList, in, ofUser)
}

// deletable returns an identity of a user that the caller may delete now. It returns apierr.UserNotFound, apierr.IdentityNotFound,
// apierr.NoAccess and apierr.OlderMethodKept.
func (s *Service) deletable(ctx context.Context, q store.Querier, userID, id string) (Identity, error) {
	status, err := selectText(ctx, q, selectStatus, userID)
	switch {
	case err != nil:
		return Identity{}, err
	case status == "":
		return Identity{}, apierr.UserNotFound
	}
	row, err := identityTable.Get(ctx, q, id, access.Delete)
	switch {
	case err != nil:
		return Identity{}, err
	case row.UserID != userID:
		return Identity{}, apierr.IdentityNotFound
	}
	var trusted store.Time
	if row.TrustedFrom != nil {
		trusted = *row.TrustedFrom
	}
	return row, s.sessions.CheckRemoval(ctx, q, userID, trusted)
}

func (s *Service) findDeletable(ctx context.Context, ids []string, _ any) error {
	_, err := s.deletable(ctx, s.db, ids[0], ids[1])
	return err
}

func (s *Service) findLinkable(ctx context.Context, ids []string, _ any) error {
	status, err := selectText(ctx, s.db, selectStatus, ids[0])
	if err == nil && status == "" {
		err = apierr.UserNotFound
	}
	return err
}

// unlink deletes an identity and ends the other sessions of its user, which may have been opened with it. It returns
// apierr.UserNotFound, apierr.IdentityNotFound, apierr.NoAccess, apierr.OlderMethodKept, and for an own identity what
// signin.Rule.Prove returns.
func (s *Service) unlink(ctx context.Context, in unlinkInput) (endpoint.Message, error) {
	caller := access.From(ctx)
	if _, err := s.deletable(ctx, s.db, in.UserID, in.IdentityID); err != nil {
		return endpoint.Message{}, err
	}
	if caller.UserID == in.UserID {
		if err := s.sessions.Prove(ctx, in.Proof); err != nil {
			return endpoint.Message{}, err
		}
	}
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		row, err := s.deletable(ctx, tx, in.UserID, in.IdentityID)
		if err != nil {
			return err
		}
		if err := s.delete(ctx, tx, row); err != nil {
			return err
		}
		keep := ""
		if caller.UserID == row.UserID {
			keep = caller.SessionID
		}
		if err := s.sessions.EndSessions(ctx, tx, row.UserID, keep); err != nil {
			return err
		}
		return s.outbox.CredentialRemoved(ctx, tx, row.UserID, s.Name(), "")
	})
	return endpoint.Confirm(ctx, s.options.Texts, "users.identity_deleted"), err
}

// delete deletes an identity and the open codes of its user.
func (s *Service) delete(ctx context.Context, tx *store.Tx, row Identity) error {
	if err := tx.Run(ctx, deleteCodesOf, row.UserID); err != nil {
		return err
	}
	return identityProof.ChangeRow(ctx, tx, actionUnlink, row.ID, deleteIdentityRow, row.ID)
}
