package directory

import (
	"cmp"
	"context"
	"errors"

	"kontor/modules/kit/records"
	"kontor/modules/kit/signin"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// Invited is an invitation as the invited person sees it.
type Invited struct {
	Email       string     `json:"email"`
	DisplayName string     `json:"display_name"`
	Language    string     `json:"language" enum:"en,de,fr,it"`
	ExpiresAt   store.Time `json:"expires_at"`
}

// Accepted is the new user of an accepted invitation.
type Accepted struct {
	UserID string `json:"user_id"`
	Email  string `json:"email" doc:"The credential to sign in with."`
}

type viewInvitationInput struct {
	Token string `json:"token" required:"true" format:"password" doc:"From the link of the message."`
}

// Validate requires a token.
func (in *viewInvitationInput) Validate(v *apierr.Fields) { required(v, "token", in.Token) }

type acceptInput struct {
	Token    string `json:"token" required:"true" minLength:"1" format:"password" doc:"From the link of the message."`
	Password string `json:"password" format:"password" minLength:"12" maxLength:"128" required:"true"`

	problems *apierr.Fields
}

// Collect keeps the problems of the request: the service adds those of the password policy.
func (in *acceptInput) Collect(problems *apierr.Fields) { in.problems = problems }

// viewInvitation returns an invitation to the holder of its link. It returns apierr.InvitationInvalid.
func (s *Service) viewInvitation(ctx context.Context, in viewInvitationInput) (Invited, error) {
	i, err := s.validInvitation(ctx, s.db, in.Token)
	return Invited{Email: i.Email, DisplayName: i.DisplayName, Language: i.Language, ExpiresAt: i.ExpiresAt}, err
}

// validInvitation returns the invitation of a token. It returns apierr.InvitationInvalid, whatever the cause: the invitation is
// unknown, used, withdrawn, renewed, expired or changed, or the inviting user is no longer active, or may no longer give its
// roles.
func (s *Service) validInvitation(ctx context.Context, q store.Querier, token string) (Invitation, error) {
	id, secret, ok := parseInvitation(token)
	if !ok {
		return Invitation{}, apierr.InvitationInvalid
	}
	i, err := scanInvitation(q.QueryRow(ctx, `SELECT `+invitationColumns+` FROM invitations WHERE id = $1`, id))
	if err != nil {
		return Invitation{}, records.OrMissing(err, apierr.InvitationInvalid)
	}
	if !sameDigest(i.digest, s.invitationDigest(i, secret)) || i.ExpiresAt <= q.Now() {
		return Invitation{}, apierr.InvitationInvalid
	}
	active, err := s.Active(ctx, q, i.CreatedBy)
	if err != nil {
		return Invitation{}, err
	}
	if !active[i.CreatedBy] {
		return Invitation{}, apierr.InvitationInvalid
	}
	err = s.mayAssign(ctx, q, i.CreatedBy, i.roles)
	if err == nil {
		err = fillInvitedRoles(ctx, q, &i)
	}
	if errors.Is(err, apierr.GrantNotHeld) || err == nil && len(i.Roles) != len(i.roles) { // a role was deleted
		err = apierr.InvitationInvalid
	}
	return i, err
}

// accept creates the user of an invitation, with the password that they choose. The address counts as validated, because the link
// was sent to it. The link works once. accept returns apierr.InvalidInput for a password that breaks the policy, and
// apierr.InvitationInvalid.
func (s *Service) accept(ctx context.Context, in acceptInput) (Accepted, error) {
	problems := cmp.Or(in.problems, &apierr.Fields{})
	required(problems, "token", in.Token)
	s.auth.CheckPassword(problems, "password", in.Password)
	if err := problems.Err(); err != nil {
		return Accepted{}, err
	}
	i, err := s.validInvitation(ctx, s.db, in.Token) // before the password is hashed
	if err != nil {
		return Accepted{}, err
	}
	s.auth.CheckPassword(problems, "password", in.Password, i.Email, i.DisplayName)
	if err := problems.Err(); err != nil {
		return Accepted{}, err
	}
	hash, err := s.auth.HashPassword(ctx, in.Password)
	if err != nil {
		return Accepted{}, err
	}
	u := User{ID: store.NewID(), DisplayName: i.DisplayName, Status: Active, Language: i.Language}
	c := newCredential(u.ID, identifier{Email, i.Email, i.key})
	c.Validated = true
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		if i, err = s.validInvitation(ctx, tx, in.Token); err != nil {
			return err
		}
		return s.join(ctx, tx, i, &u, &c, hash)
	})
	if errors.Is(err, apierr.CredentialExists) { // validated by another user since
		err = apierr.InvitationInvalid.Wrap(err)
	}
	return Accepted{UserID: u.ID, Email: i.Email}, err
}

// join stores the user of an invitation, and deletes it with all others to the address. Unvalidated claims of the address end.
func (s *Service) join(ctx context.Context, tx *store.Tx, i Invitation, u *User, c *Credential, hash string) error {
	if err := s.deleteClaim(ctx, tx, c.key, tx.Now()+1, i.CreatedBy); err != nil {
		return err
	}
	if err := s.add(ctx, tx, u, c, hash, i.roles, i.CreatedBy); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, deleteInvitationsTo, i.key); err != nil {
		return err
	}
	tx.Audit(store.AuditEntry{Actor: u.ID, Action: "users.invite_accept", RecType: access.Users.Name, RecID: u.ID})
	tx.Audit(store.AuditEntry{Actor: u.ID, Action: "users.invite_accept", RecType: invitationType, RecID: i.ID})
	return s.auth.TrustNetwork(ctx, tx, u.ID)
}

// validate validates a credential with its code. It returns apierr.UserNotFound, apierr.CredentialNotFound, apierr.NoAccess,
// apierr.CredentialValidated, apierr.StaleSession, apierr.InvalidOTP, apierr.OTPExpired, apierr.OTPAttemptsExceeded, for a right
// code apierr.CredentialExists, and in another session what signin.Rule.Prove returns.
func (s *Service) validate(ctx context.Context, in validateInput) (Credential, error) {
	if err := s.proveOtherSession(ctx, in); err != nil {
		return Credential{}, err
	}
	digits, wellFormed := parseCode(in.OTP)
	hash := "" // a malformed code is wrong, and does not count as a guess
	if wellFormed {
		hash = s.codeHash(in.CredentialID, forValidation, digits)
	}
	var c Credential
	var outcome apierr.Kind
	var taken bool
	err := s.db.InTx(ctx, func(tx *store.Tx) (err error) {
		if c, err = s.validatable(ctx, tx, in, hash); err == nil {
			outcome, taken, err = s.tryCode(ctx, tx, &c, hash, s.countFailure)
		}
		return err
	})
	return c, codeError(err, outcome, taken)
}

// codeError returns the error of an attempt to validate a credential, or nil.
func codeError(err error, outcome apierr.Kind, taken bool) error {
	switch {
	case err != nil:
		return err
	case taken:
		return apierr.CredentialExists
	case outcome == apierr.OTPAttemptsExceeded:
		// By then a new code can be requested.
		return outcome.RetryAfter(otpWindow)
	case outcome != codeAccepted:
		return outcome
	}
	return nil
}

// proveOtherSession verifies the proof of users who validate a credential of their own in another session than the one that added
// it. Everything else is left to the transaction.
func (s *Service) proveOtherSession(ctx context.Context, in validateInput) error {
	caller := access.From(ctx)
	if caller.UserID != in.UserID {
		return nil
	}
	c, err := credentialOf(ctx, s.db, in.UserID, in.CredentialID, access.Update)
	if err != nil || c.Validated || c.session != "" && c.session == caller.SessionID {
		return err
	}
	user, err := userTable.GetUnchecked(ctx, s.db, c.UserID)
	if err != nil || user.Status == Pending {
		return err
	}
	if err := endpoint.RequireAssurance(ctx, endpoint.SecondFactor); err != nil {
		return err
	}
	return s.auth.Prove(ctx, in.Proof)
}

// tryCode validates a credential if the code is right. count counts a wrong code. taken reports that another user has already
// validated the value; the code is consumed then, too.
func (s *Service) tryCode(ctx context.Context, tx *store.Tx, c *Credential, hash string, count func(context.Context, *store.Tx) error) (outcome apierr.Kind, taken bool, err error) {
	if outcome, err = s.useCode(ctx, tx, c.ID, forValidation, hash); err != nil {
		return outcome, false, err
	}
	if outcome != codeAccepted {
		credentialTable.Audit(ctx, tx, "credentials.validate_failed", c.ID, nil, nil)
		return outcome, false, count(ctx, tx)
	}
	if taken, err = s.claimValue(ctx, tx, *c); err != nil || taken {
		return outcome, taken, err
	}
	return outcome, false, s.validated(ctx, tx, c)
}

// validatable returns a credential that the caller may validate with a code, whose hash is empty for a malformed one.
func (s *Service) validatable(ctx context.Context, tx *store.Tx, in validateInput, hash string) (Credential, error) {
	c, err := credentialOf(ctx, tx, in.UserID, in.CredentialID, access.Update)
	if err != nil {
		return c, err
	}
	if err := endpoint.CheckMatch(ctx, c.ETag()); err != nil {
		return c, err
	}
	if c.Validated {
		return c, apierr.CredentialValidated
	}
	if hash == "" {
		return c, apierr.InvalidOTP
	}
	user, err := userTable.GetUnchecked(ctx, tx, c.UserID)
	if err != nil || user.Status == Pending { // an attacker gains nothing from a session of a pending user
		return c, err
	}
	return c, endpoint.RequireAssurance(ctx, endpoint.SecondFactor)
}

// claimValue deletes unvalidated claims of other users to the value of a credential whose code was right. taken reports that
// another user has validated the value.
func (s *Service) claimValue(ctx context.Context, tx *store.Tx, c Credential) (taken bool, err error) {
	owned, err := selectValidated(ctx, tx, loginKeys{c.target(), c.target()})
	switch {
	case err == nil:
		return owned.ID != c.ID, nil
	case !errors.Is(err, store.ErrNotFound):
		return false, err
	case c.key == c.target():
		return false, nil
	}
	return false, s.deleteClaim(ctx, tx, c.target(), tx.Now(), records.Actor(ctx))
}

// validated marks a credential as validated. The first one makes a pending user an active customer. Further ones are reported
// to the existing addresses of the user, and are trusted later.
func (s *Service) validated(ctx context.Context, tx *store.Tx, c *Credential) error {
	user, err := userTable.GetUnchecked(ctx, tx, c.UserID)
	if user, err = withRoles(ctx, tx, user, err); err != nil {
		return err
	}
	now := tx.Now()
	if user.Status != Pending {
		c.trust(now.Add(signin.Trial))
		undo, keepUndo := s.auth.NewUndo(signin.Credential, c.UserID, c.ID)
		if err := keepUndo(ctx, tx); err != nil {
			return err
		}
		if err := s.outbox.CredentialAdded(ctx, tx, c.UserID, masked(*c), undo); err != nil {
			return err
		}
	}
	if err := credentialProof.ChangeRow(ctx, tx, "credentials.validate", c.ID, validateCredential, c.ID, now, c.target(), c.trustedFrom); err != nil {
		return err
	}
	s.invalidate(tx, c.UserID)
	c.key, c.Validated, c.ValidatedAt, c.version = c.target(), true, &now, c.version+1
	if user.Status != Pending {
		return nil
	}
	return s.changeStatus(ctx, tx, &user, Active)
}

// resend replaces the code of a credential and sends the new one. It returns apierr.UserNotFound, apierr.CredentialNotFound,
// apierr.NoAccess, apierr.CredentialValidated and apierr.OTPSendLimited.
func (s *Service) resend(ctx context.Context, in credentialPath) (resendOutput, error) {
	c, err := credentialOf(ctx, s.db, in.UserID, in.CredentialID, access.Update)
	if err != nil {
		return resendOutput{}, err
	}
	if c.Validated {
		return resendOutput{}, apierr.CredentialValidated
	}
	user, err := userTable.GetUnchecked(ctx, s.db, c.UserID)
	if err != nil {
		return resendOutput{}, err
	}
	code := s.prepareFirstCode(c, user.Language)
	if user.Status != Pending {
		if code, err = s.prepareProof(ctx, c, user.Language); err != nil {
			return resendOutput{}, err
		}
	}
	out := resendOutput{Message: endpoint.Confirm(ctx, s.texts, "users.otp_sent").Message}
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		now, err := credentialTable.GetUnchecked(ctx, tx, c.ID)
		if err != nil {
			return err
		}
		if now.Validated {
			return apierr.CredentialValidated
		}
		if err := s.sendLimits(ctx, c.target(), forValidation).consume(ctx, tx); err != nil {
			return err
		}
		if out.ExpiresAt, err = s.sendCode(ctx, tx, c.ID, code); err != nil {
			return err
		}
		credentialTable.Audit(ctx, tx, "credentials.send_otp", c.ID, nil, nil)
		return nil
	})
	return out, err
}
