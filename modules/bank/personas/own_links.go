package personas

import (
	"context"

	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/server/access"
)

// OwnLink is a link to the caller, with the names and date of birth of the persona. Callers need them to decide whether to
// accept the link.
type OwnLink struct {
	UserLink
	FirstName   string     `json:"first_name"`
	LastName    string     `json:"last_name"`
	DateOfBirth types.Date `json:"date_of_birth" nullable:"false"`
}

// OwnLinksInput contains the parameters of the list of the caller's links.
type OwnLinksInput struct {
	Query list.Params `query:"*"`
}

// OwnLinks returns the caller's links to personas, including pending ones.
func (s *Service) OwnLinks(ctx context.Context, in OwnLinksInput) (list.Page[OwnLink], error) {
	return ownLinkList.Page(ctx, s.db, in.Query, list.Where{SQL: "persona_users.user_id = $1", Args: []any{access.From(ctx).UserID}})
}

var ownLinkList = list.New(list.Source[OwnLink]{
	From: "persona_users JOIN personas ON personas.id = persona_users.persona_id",
	Columns: `persona_users.id, persona_users.persona_id, persona_users.user_id, persona_users.accepted_at, persona_users.created_at,
		persona_users.created_by, persona_users.version, personas.first_name, personas.last_name, personas.date_of_birth`,
	ID: "persona_users.id", Created: "persona_users.created_at", Tables: []string{"persona_users", "personas"},
	Scan: func(row records.Row) (OwnLink, error) {
		var l OwnLink
		err := row.Scan(&l.ID, &l.PersonaID, &l.UserID, &l.acceptedAt, &l.CreatedAt, &l.CreatedBy, &l.version, &l.FirstName, &l.LastName, &l.DateOfBirth)
		l.Status = statusOf(l.acceptedAt)
		return l, err
	},
	Fields: list.Fields{
		{Name: "id", Type: list.UUID, Column: "persona_users.id"},
		{Name: "persona_id", Type: list.UUID, Column: "persona_users.persona_id"},
		{Name: "created_at", Type: list.Time, Column: "persona_users.created_at"},
		{Name: "created_by", Type: list.UUID, Column: "persona_users.created_by"},
	},
})
