package directory

import (
	"cmp"
	"context"
	"errors"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

func languageOf(ctx context.Context) string { return endpoint.Language(ctx) }

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
	Token    string `json:"token" required:"true" format:"password" doc:"From the link of the message."`
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
	if errors.Is(err, store.ErrNotFound) {
		return Invitation{}, apierr.InvitationInvalid
	}
	if err != nil {
		return Invitation{}, err
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

// purgeInvitations deletes invitations that expired long ago.
func (s *Service) purgeInvitations(ctx context.Context) error {
	for deleted := int64(purgeBatch); deleted == purgeBatch; {
		err := s.db.InTx(ctx, func(tx *store.Tx) (err error) {
			deleted, err = tx.Exec(ctx, deleteExpiredInvitations, tx.Now().Add(-keepExpired), purgeBatch)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
