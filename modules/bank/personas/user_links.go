package personas

import (
	"context"
	"errors"

	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/modules/kit/validate"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// UserLink links a user to the persona that is their identity.
type UserLink struct {
	ID        string     `json:"id"`
	PersonaID string     `json:"persona_id"`
	UserID    string     `json:"user_id"`
	Status    LinkStatus `json:"status" enum:"pending,active" doc:"A pending link has no effect until the user accepts it."`
	CreatedAt store.Time `json:"created_at"`
	CreatedBy string     `json:"created_by"`

	acceptedAt *store.Time
	version    int64
}

// LinkStatus is the state of a link.
type LinkStatus string

// The states of a link.
const (
	LinkPending LinkStatus = "pending"
	LinkActive  LinkStatus = "active"
)

// statusOf returns the state of a link with a time of acceptance.
func statusOf(acceptedAt *store.Time) LinkStatus {
	if acceptedAt == nil {
		return LinkPending
	}
	return LinkActive
}

// ETag returns the version of the record.
func (l UserLink) ETag() string { return endpoint.VersionTag(l.version) }

// EachUser names the linked user and the creator.
func (l UserLink) EachUser(add func(id string)) {
	add(l.UserID)
	add(l.CreatedBy)
}

// OfPersonaInput contains the parameters of a list that belongs to a persona.
type OfPersonaInput struct {
	ID    string      `path:"persona_id"`
	Query list.Params `query:"*"`
}

// ofPersona returns the condition of the list.
func (in OfPersonaInput) ofPersona() list.Where {
	return list.Where{SQL: "persona_id = $1", Args: []any{in.ID}}
}

// AddUserInput is the user to link to a persona.
type AddUserInput struct {
	ID     string `path:"persona_id"`
	UserID string `json:"user_id"`
}

// Validate checks the id.
func (in *AddUserInput) Validate(v *apierr.Fields) { in.UserID = requiredID(v, "user_id", in.UserID) }

// requiredID checks a required id.
func requiredID(v *apierr.Fields, field, text string) string {
	if text == "" {
		v.Add(field, "invalid.required")
	}
	return validate.Parsed(v, field, text, types.ParseID)
}

// UserLinkInput identifies the link between a persona and a user.
type UserLinkInput struct {
	ID     string `path:"persona_id"`
	UserID string `path:"user_id"`
}

// Users returns the links of a persona to users, for callers who may read the persona.
func (s *Service) Users(ctx context.Context, in OfPersonaInput) (list.Page[UserLink], error) {
	if _, err := personas.Get(ctx, s.db, in.ID, access.Read); err != nil {
		return list.Page[UserLink]{}, err
	}
	return userLinkList.Page(ctx, s.db, in.Query, in.ofPersona())
}

// AddUser links a user to a persona. The link is pending until the user accepts it, unless staff or the user create it.
// Users of active links may read the persona. AddUser returns apierr.PersonaUserExists for a linked user and
// apierr.UserNotFound for an unknown one.
func (s *Service) AddUser(ctx context.Context, in AddUserInput) (UserLink, error) {
	caller := access.From(ctx)
	l := UserLink{ID: store.NewID(), PersonaID: in.ID, UserID: in.UserID, CreatedBy: caller.UserID, CreatedAt: s.db.Now(), version: 1}
	if caller.UserID == in.UserID || isStaff(caller) {
		l.acceptedAt = &l.CreatedAt
	}
	l.Status = statusOf(l.acceptedAt)
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		if _, err := personas.Get(ctx, tx, in.ID, access.Update); err != nil {
			return err
		}
		if _, err := personas.Get(ctx, tx, in.ID, access.Read); err != nil {
			return err // linked users read the persona: callers give no more than they hold
		}
		if _, err := tx.Exec(ctx, insertUserLinkStatement, l.ID, l.PersonaID, l.UserID, l.acceptedAt, l.CreatedAt, l.CreatedBy); err != nil {
			return err
		}
		tx.Respond(l)
		return proof.Audit(ctx, tx, "personas.add_user", in.ID, nil)
	})
	switch {
	case errors.Is(err, store.ErrDuplicate):
		return l, apierr.PersonaUserExists.Wrap(err)
	case errors.Is(err, store.ErrMissingReference): // of the user: the persona exists
		return l, apierr.UserNotFound.Wrap(err)
	}
	return l, err
}

// AcceptUser activates a pending link. Only the linked user and staff may do so; other callers get apierr.NoAccess. An active
// link stays unchanged. AcceptUser also returns apierr.PersonaNotFound and apierr.PersonaUserNotFound.
func (s *Service) AcceptUser(ctx context.Context, in UserLinkInput) (UserLink, error) {
	caller := access.From(ctx)
	var link UserLink
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		if _, err := personas.GetUnchecked(ctx, tx, in.ID); err != nil {
			return err
		}
		if caller.UserID != in.UserID && !isStaff(caller) {
			return apierr.NoAccess
		}
		var err error
		if caller.UserID != in.UserID {
			if _, err = personas.Get(ctx, tx, in.ID, access.Read); err != nil {
				return err // as in AddUser
			}
		}
		if link, err = findUserLink(ctx, tx, in.ID, in.UserID); err != nil {
			return err
		}
		if err := endpoint.CheckMatch(ctx, link.ETag()); err != nil || link.acceptedAt != nil {
			return err
		}
		now := tx.Now()
		link.acceptedAt, link.Status, link.version = &now, LinkActive, link.version+1
		if _, err := tx.Exec(ctx, acceptUserLinkStatement, link.ID, link.acceptedAt, link.version); err != nil {
			return err
		}
		return proof.Audit(ctx, tx, "personas.accept_user", in.ID, nil)
	})
	return link, err
}

// findUserLink returns a link, or apierr.PersonaUserNotFound.
func findUserLink(ctx context.Context, q store.Querier, personaID, userID string) (UserLink, error) {
	l, err := scanUserLink(q.QueryRow(ctx, selectUserLinkStatement, personaID, userID))
	if errors.Is(err, store.ErrNotFound) {
		err = apierr.PersonaUserNotFound
	}
	return l, err
}

// checkUnlink checks that the caller may remove a link: callers who may update the persona, and the user of a pending link.
func checkUnlink(ctx context.Context, q store.Querier, in UserLinkInput) error {
	_, err := personas.Get(ctx, q, in.ID, access.Update)
	if !errors.Is(err, apierr.NoAccess) || access.From(ctx).UserID != in.UserID {
		return err
	}
	if l, found := findUserLink(ctx, q, in.ID, in.UserID); found != nil || l.acceptedAt != nil {
		return err
	}
	return nil
}

// RemoveUser removes the link between a persona and a user. It keeps the link and the user's former identity as evidence, unless
// another caller who may delete personas corrects a mistake. It returns apierr.PersonaUserNotFound and apierr.OwnPersona.
func (s *Service) RemoveUser(ctx context.Context, in UserLinkInput) (endpoint.Message, error) {
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		if err := checkUnlink(ctx, tx, in); err != nil {
			return err
		}
		l, err := findUserLink(ctx, tx, in.ID, in.UserID)
		if err != nil {
			return err
		}
		if err := endpoint.CheckMatch(ctx, l.ETag()); err != nil {
			return err
		}
		if l.acceptedAt != nil {
			if err := rejectOwn(ctx, tx, in.ID); err != nil {
				return err
			}
		}
		caller := access.From(ctx)
		if correction := caller.May(access.Personas, access.Delete) && caller.UserID != l.UserID; !correction {
			if err := keepUser(ctx, tx, in.ID, l.UserID); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(ctx, deleteUserLinkStatement, l.ID); err != nil {
			return err
		}
		return proof.Audit(ctx, tx, "personas.remove_user", in.ID, nil)
	})
	return endpoint.Confirm(ctx, s.texts, "personas.user_removed"), err
}

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
