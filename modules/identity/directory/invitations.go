package directory

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"kontor/modules/kit/event"
	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// Invitation is an open invitation of a person by e-mail. It ends when the person accepts it, when it is withdrawn, and some
// time after it has expired.
type Invitation struct {
	ID          string     `json:"id"`
	Email       string     `json:"email" example:"anna.keller@example.ch"`
	DisplayName string     `json:"display_name" example:"Anna Keller" doc:"The name of the new user; empty for none."`
	Language    string     `json:"language" enum:"en,de,fr,it"`
	Roles       []string   `json:"roles" example:"Advisor" doc:"Names of the roles that the new user gets, in alphabetical order."`
	Status      string     `json:"status" enum:"open,expired"`
	SentAt      store.Time `json:"sent_at" doc:"When the latest message was sent. Earlier links are void."`
	ExpiresAt   store.Time `json:"expires_at"`
	CreatedAt   store.Time `json:"created_at"`
	CreatedBy   string     `json:"created_by"`

	key    string   // of the e-mail address
	roles  []string // ids
	digest string
}

// EachUser names the inviting user.
func (i Invitation) EachUser(add func(id string)) { add(i.CreatedBy) }

// invitationType is the record type of audit entries about invitations.
const invitationType = "invitations"

// defaultInvitationLife is the validity of a link.
const defaultInvitationLife = 7 * 24 * time.Hour

// keepExpired is how long expired invitations stay in the list, where they can be sent again.
const keepExpired = 30 * 24 * time.Hour

// Messages of invitations to one address count as other messages do. One user may send more of them than codes.
const (
	invitesPerHour = 60
	invitesPerDay  = 300
	forInvitation  = "invitation"
)

// invitationDigest returns the keyed digest of a secret and everything that the invitation gives. A row that was changed in the
// database is therefore void.
func (s *Service) invitationDigest(i Invitation, secret string) string {
	text := fmt.Sprintf("%q %q %q %q %d %q", i.ID, i.Email, i.roles, i.CreatedBy, i.ExpiresAt, secret)
	return hex.EncodeToString(s.db.Keyed("invitation", []byte(text)))
}

// renew gives the invitation a new secret and validity, and returns the token of its link.
func (s *Service) renew(i *Invitation, now store.Time) (token string) {
	secret := rand.Text()
	i.SentAt, i.ExpiresAt, i.Status = now, now.Add(s.InvitationLife), "open"
	i.digest = s.invitationDigest(*i, secret)
	return i.ID + "." + secret
}

// invite invites a person. Callers can only give roles that they hold; administrators hold all.
//
// Callers who may read all users get apierr.CredentialExists for an address that has an account. For others the response does not
// reveal it, and the owner of the address gets a message without a link. invite also returns apierr.InvalidInput,
// apierr.GrantNotHeld and apierr.OTPSendLimited.
func (s *Service) invite(ctx context.Context, in inviteInput) (Invitation, error) {
	caller := access.From(ctx)
	roles, err := resolveRoles(ctx, s.db, in.Roles)
	if err != nil {
		return Invitation{}, err
	}
	i := Invitation{ID: store.NewID(), Email: in.id.value, DisplayName: in.DisplayName, Language: in.Language, key: in.id.key, roles: roles,
		CreatedAt: s.db.Now(), CreatedBy: caller.UserID}
	token := s.renew(&i, i.CreatedAt)
	send, taken, err := s.prepareInvitation(ctx, i, token)
	if err != nil {
		return Invitation{}, err
	}
	if taken && caller.May(access.Users, access.ReadAll) {
		return Invitation{}, apierr.CredentialExists
	}
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		if err := s.mayAssign(ctx, tx, caller.UserID, roles); err != nil {
			return err
		}
		if err := s.invitationLimits(ctx, i).consume(ctx, tx); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, insertInvitation, i.ID, i.Email, i.key, i.DisplayName, i.Language, strings.Join(roles, ","), i.digest,
			i.ExpiresAt, i.SentAt, i.CreatedAt, i.CreatedBy); err != nil {
			return err
		}
		if err := fillInvitedRoles(ctx, tx, &i); err != nil {
			return err
		}
		auditInvitation(ctx, tx, "users.invite", i)
		tx.Respond(i)
		return send(ctx, tx)
	})
	return i, err
}

// mayAssign returns apierr.GrantNotHeld if a user may not give one of the roles. It reads the roles that they hold now.
func (s *Service) mayAssign(ctx context.Context, q store.Querier, userID string, roles []string) error {
	held, err := s.RolesOf(ctx, q, userID)
	if err != nil || slices.Contains(held, access.Administrator) {
		return err
	}
	for _, role := range roles {
		if !slices.Contains(held, role) {
			return apierr.GrantNotHeld
		}
	}
	return nil
}

// prepareInvitation renders the message of an invitation. If a user has validated the address, the message tells them so, and taken
// is true.
func (s *Service) prepareInvitation(ctx context.Context, i Invitation, token string) (send func(context.Context, *store.Tx) error, taken bool, err error) {
	owned, err := selectValidated(ctx, s.db, loginKeys{i.key, i.key})
	switch {
	case errors.Is(err, store.ErrNotFound):
		return s.outbox.PrepareOTP(event.OTPMessage{UserID: store.NilID, Channel: channel(Email), Recipient: i.Email, Language: i.Language,
			Purpose: forInvitation, Code: token, Minutes: int(s.InvitationLife / time.Minute)}), false, nil
	case err != nil:
		return nil, false, err
	}
	owner, err := userTable.GetUnchecked(ctx, s.db, owned.UserID)
	if err != nil {
		return nil, false, err
	}
	return s.prepareCode(owned, owner.Language, forTakenValue).send, true, nil
}

// invitationLimits returns the limits of a message to the address and of the inviting user.
func (s *Service) invitationLimits(ctx context.Context, i Invitation) limits {
	l := limits{rejection: apierr.OTPSendLimited, quotas: []quota{
		{s.subject("target", i.key), otpSends, otpWindow},
		{s.subject("target for "+forInvitation, i.key), dailySends[forInvitation], day},
	}}
	if !s.InviteAny {
		inviter := s.subject("inviter", access.From(ctx).UserID)
		l.quotas = append(l.quotas, quota{inviter, invitesPerHour, hour}, quota{inviter, invitesPerDay, day})
	}
	return l
}

// auditInvitation writes an entry about an invitation, with the roles that it gives. The address is not part of it.
func auditInvitation(ctx context.Context, tx *store.Tx, action string, i Invitation) {
	tx.Audit(store.AuditEntry{Actor: records.Actor(ctx), Action: action, RecType: invitationType, RecID: i.ID,
		Changes: []store.FieldChange{store.Changed("roles", "", strings.Join(i.Roles, ", "))}})
}

// invitations lists open and expired invitations: all for callers who may read all users, otherwise their own.
func (s *Service) invitations(ctx context.Context, in struct {
	Query list.Params `query:"*"`
}) (list.Page[Invitation], error) {
	page, err := invitationList.Page(ctx, s.db, in.Query, invitationsOf(ctx))
	if err != nil {
		return page, err
	}
	now := s.db.Now()
	for n := range page.Data.Rows {
		i := &page.Data.Rows[n]
		if i.ExpiresAt <= now {
			i.Status = "expired"
		}
		if err := fillInvitedRoles(ctx, s.db, i); err != nil {
			return page, err
		}
	}
	return page, nil
}

func invitationsOf(ctx context.Context) list.Where {
	caller := access.From(ctx)
	if caller.May(access.Users, access.ReadAll) {
		return list.Where{}
	}
	return list.Where{SQL: "created_by = $1", Args: []any{caller.UserID}}
}

// invitation reads an invitation that the caller may see. It returns apierr.InvitationNotFound.
func (s *Service) invitation(ctx context.Context, q store.Querier, id string) (Invitation, error) {
	caller := access.From(ctx)
	i, err := scanInvitation(q.QueryRow(ctx, `SELECT `+invitationColumns+` FROM invitations WHERE id = $1`, id))
	if errors.Is(err, store.ErrNotFound) || err == nil && i.CreatedBy != caller.UserID && !caller.May(access.Users, access.ReadAll) {
		return i, apierr.InvitationNotFound
	}
	if err == nil {
		err = fillInvitedRoles(ctx, q, &i)
	}
	return i, err
}

// resendInvitation sends a new link, with a new validity. Earlier links become void. The rights of the user who invited still
// count. It returns apierr.InvitationNotFound and apierr.OTPSendLimited.
func (s *Service) resendInvitation(ctx context.Context, in endpoint.ByID) (Invitation, error) {
	i, err := s.invitation(ctx, s.db, in.ID)
	if err != nil {
		return i, err
	}
	token := s.renew(&i, s.db.Now())
	send, _, err := s.prepareInvitation(ctx, i, token)
	if err != nil {
		return i, err
	}
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		if err := s.invitationLimits(ctx, i).consume(ctx, tx); err != nil {
			return err
		}
		changed, err := tx.Exec(ctx, renewInvitation, i.ID, i.digest, i.ExpiresAt, i.SentAt)
		if err != nil {
			return err
		}
		if changed == 0 { // accepted or withdrawn meanwhile
			return apierr.InvitationNotFound
		}
		auditInvitation(ctx, tx, "users.invite_again", i)
		tx.Respond(i)
		return send(ctx, tx)
	})
	return i, err
}

func (s *Service) findInvitation(ctx context.Context, ids []string, _ any) error {
	_, err := s.invitation(ctx, s.db, ids[0])
	return err
}

// withdrawInvitation deletes an invitation. Its link is void at once. It returns apierr.InvitationNotFound.
func (s *Service) withdrawInvitation(ctx context.Context, in endpoint.ByID) (endpoint.Message, error) {
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		i, err := s.invitation(ctx, tx, in.ID)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, deleteInvitation, i.ID); err != nil {
			return err
		}
		tx.Audit(store.AuditEntry{Actor: records.Actor(ctx), Action: "users.invite_withdraw", RecType: invitationType, RecID: i.ID})
		return nil
	})
	return endpoint.Confirm(ctx, s.texts, "users.invitation_withdrawn"), err
}

// sameDigest compares digests in constant time.
func sameDigest(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// parseInvitation splits the token of a link.
func parseInvitation(token string) (id, secret string, ok bool) {
	const longest = 200
	if len(token) > longest {
		return "", "", false
	}
	id, secret, ok = strings.Cut(strings.TrimSpace(token), ".")
	parsed, err := types.ParseID(id)
	return parsed, secret, ok && err == nil
}

const invitationColumns = "id, email, email_key, display_name, language, roles, digest, expires_at, sent_at, created_at, created_by"

func scanInvitation(row list.Row) (Invitation, error) {
	i := Invitation{Roles: []string{}, Status: "open"}
	var roles string
	err := row.Scan(&i.ID, &i.Email, &i.key, &i.DisplayName, &i.Language, &roles, &i.digest, &i.ExpiresAt, &i.SentAt, &i.CreatedAt, &i.CreatedBy)
	if roles != "" {
		i.roles = strings.Split(roles, ",")
	}
	return i, err
}

var invitationList = list.New(list.Source[Invitation]{
	From: "invitations", Columns: invitationColumns, ID: "id", Created: "created_at", Tables: []string{"invitations"}, Scan: scanInvitation,
	Fields: list.Fields{
		{Name: "id", Type: list.UUID, Column: "id"},
		{Name: "email", Type: list.Text, Column: "email"},
		{Name: "display_name", Type: list.Text, Column: "display_name"},
		{Name: "expires_at", Type: list.Time, Column: "expires_at"},
		{Name: "sent_at", Type: list.Time, Column: "sent_at"},
		{Name: "created_at", Type: list.Time, Column: "created_at"},
		{Name: "created_by", Type: list.UUID, Column: "created_by"},
	},
})

const (
	insertInvitation = `
		INSERT INTO invitations (id, email, email_key, display_name, language, roles, digest, expires_at, sent_at, created_at, created_by)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`

	renewInvitation = `UPDATE invitations SET digest = $2, expires_at = $3, sent_at = $4 WHERE id = $1`

	deleteInvitation = `DELETE FROM invitations WHERE id = $1`

	deleteInvitationsTo = `DELETE FROM invitations WHERE email_key = $1`

	deleteExpiredInvitations = `
		DELETE FROM invitations WHERE id IN (SELECT id FROM invitations WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2)`

	selectNamesOfRoles = `SELECT name FROM role_names WHERE id IN (`
)

// fillInvitedRoles sets the names of the roles that an invitation gives. Roles that were deleted are missing.
func fillInvitedRoles(ctx context.Context, q store.Querier, i *Invitation) error {
	names, err := store.All(ctx, q, store.Text, selectNamesOfRoles+store.In(1, len(i.roles))+`) ORDER BY name_key`, store.AppendIn(nil, i.roles)...)
	if names == nil {
		names = []string{}
	}
	i.Roles = names
	return err
}

// inviteInput describes the invited person.
type inviteInput struct {
	Email       string   `json:"email" required:"true" example:"anna.keller@example.ch"`
	DisplayName string   `json:"display_name" maxLength:"100" example:"Anna Keller"`
	Language    string   `json:"language" enum:"en,de,fr,it" doc:"Of the message and of the new user; the language of the request if it is missing."`
	Roles       []string `json:"roles" required:"true" minItems:"1" maxItems:"50" example:"Advisor" doc:"Names or ids of the roles that the new user gets."`

	id identifier
}

// Validate checks address, name, language and the number of roles.
func (in *inviteInput) Validate(ctx context.Context, v *apierr.Fields) {
	in.id = checkIdentifier(v, "email", "email", Email, in.Email)
	in.DisplayName = checkDisplayName(v, in.DisplayName)
	if in.Language == "" {
		in.Language = endpoint.Language(ctx)
	}
	if _, err := types.ParseLanguage(in.Language); err != nil {
		v.Add("language", "invalid.language")
	}
	if len(in.Roles) == 0 {
		v.Add("roles", "invalid.min_items", apierr.Args{"Min": 1})
	}
}
