package directory

import (
	"context"
	"strings"

	"kontor/modules/kit/list"
	"kontor/modules/kit/types"
	"kontor/server/apierr"
	"kontor/store"
)

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
		in.Language = languageOf(ctx)
	}
	if _, err := types.ParseLanguage(in.Language); err != nil {
		v.Add("language", "invalid.language")
	}
	switch {
	case len(in.Roles) == 0:
		v.Add("roles", "invalid.min_items", apierr.Args{"Min": 1})
	case len(in.Roles) > maxRoles:
		v.Add("roles", "invalid.max_items", apierr.Args{"Max": maxRoles})
	}
}
