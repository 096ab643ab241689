package personas

import (
	"context"
	"errors"
	"net/http"

	"kontor/modules/kit/list"
	"kontor/modules/kit/types"
	"kontor/modules/kit/validate"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// UserLink says that a persona is the identity of a user.
type UserLink struct {
	ID        string     `json:"id"`
	PersonaID string     `json:"persona_id"`
	UserID    string     `json:"user_id"`
	Status    LinkStatus `json:"status" enum:"pending,active" doc:"A pending link gives no rights; the user accepts it."`
	CreatedAt store.Time `json:"created_at"`
	CreatedBy string     `json:"created_by"`

	acceptedAt *store.Time
	version    int64
}

// LinkStatus says whether a link counts.
type LinkStatus string

// The states of a link.
const (
	LinkPending LinkStatus = "pending"
	LinkActive  LinkStatus = "active"
)

// statusOf is the state of a link by the time at which it was accepted.
func statusOf(acceptedAt *store.Time) LinkStatus {
	if acceptedAt == nil {
		return LinkPending
	}
	return LinkActive
}

// ETag is the version of the record.
func (l UserLink) ETag() string { return endpoint.VersionTag(l.version) }

// OfPersonaInput are the parameters of a list that belongs to a persona.
type OfPersonaInput struct {
	ID    string      `path:"persona_id"`
	Query list.Params `query:"*"`
}

// ofPersona is the condition of the lists that belong to a persona.
func (in OfPersonaInput) ofPersona() list.Where {
	return list.Where{SQL: "persona_id = $1", Args: []any{in.ID}}
}

// AddUserInput names the user whose identity a persona is.
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

// RemoveUserInput names one link between a persona and a user.
type RemoveUserInput struct {
	ID     string `path:"persona_id"`
	UserID string `path:"user_id"`
}

// Users lists the users of a persona for whoever may read it.
func (s *Service) Users(ctx context.Context, in OfPersonaInput) (list.Page[UserLink], error) {
	if _, err := table.Get(ctx, s.db, in.ID, access.Read); err != nil {
		return list.Page[UserLink]{}, err
	}
	return userLinkList.Page(ctx, s.db, in.Query, in.ofPersona())
}

// AddUser makes a persona the identity of a user, who may read it from then on. Entered by others than staff or the user,
// the link is pending until the user accepts it. It returns apierr.PersonaUserExists for a user who is linked already and
// apierr.UserNotFound for one who does not exist.
func (s *Service) AddUser(ctx context.Context, in AddUserInput) (UserLink, error) {
	caller := access.From(ctx)
	l := UserLink{ID: store.NewID(), PersonaID: in.ID, UserID: in.UserID, CreatedBy: caller.UserID, CreatedAt: s.db.Now(), version: 1}
	if caller.UserID == in.UserID || isStaff(caller) {
		l.acceptedAt = &l.CreatedAt
	}
	l.Status = statusOf(l.acceptedAt)
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		if _, err := table.Get(ctx, tx, in.ID, access.Update); err != nil {
			return err
		}
		if err := insertUserLink(ctx, tx, l); err != nil {
			return err
		}
		tx.Respond(http.StatusCreated, l)
		return proof.Audit(ctx, tx, "personas.add_user", in.ID, nil)
	})
	switch {
	case errors.Is(err, store.ErrDuplicate):
		return l, apierr.PersonaUserExists.Wrap(err)
	case errors.Is(err, store.ErrMissingReference): // the persona was just read
		return l, apierr.UserNotFound.Wrap(err)
	}
	return l, err
}

// AcceptUser confirms a pending link: the user says that the persona is their identity, or staff say so. A link that is
// active already stays as it is. It returns apierr.PersonaNotFound, apierr.PersonaUserNotFound and, for anybody else,
// apierr.NoAccess.
func (s *Service) AcceptUser(ctx context.Context, in RemoveUserInput) (UserLink, error) {
	caller := access.From(ctx)
	var link UserLink
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		if _, err := table.GetUnchecked(ctx, tx, in.ID); err != nil {
			return err
		}
		if caller.UserID != in.UserID && !isStaff(caller) {
			return apierr.NoAccess
		}
		var err error
		if link, err = findUserLink(ctx, tx, in.ID, in.UserID); err != nil {
			return err
		}
		if err := endpoint.CheckMatch(ctx, link.ETag()); err != nil || link.acceptedAt != nil {
			return err
		}
		now := tx.Now()
		link.acceptedAt, link.Status, link.version = &now, LinkActive, link.version+1
		if err := acceptUserLink(ctx, tx, link); err != nil {
			return err
		}
		return proof.Audit(ctx, tx, "personas.accept_user", in.ID, nil)
	})
	return link, err
}

// findUserLink reads a link, or returns apierr.PersonaUserNotFound.
func findUserLink(ctx context.Context, q store.Querier, personaID, userID string) (UserLink, error) {
	l, err := selectUserLink(ctx, q, personaID, userID)
	if errors.Is(err, store.ErrNotFound) {
		err = apierr.PersonaUserNotFound
	}
	return l, err
}

// mayUnlink lets whoever may update a persona end a link, and the linked user reject a pending one.
func mayUnlink(ctx context.Context, q store.Querier, in RemoveUserInput) error {
	_, err := table.Get(ctx, q, in.ID, access.Update)
	if !errors.Is(err, apierr.NoAccess) || access.From(ctx).UserID != in.UserID {
		return err
	}
	if l, found := findUserLink(ctx, q, in.ID, in.UserID); found != nil || l.acceptedAt != nil {
		return err
	}
	return nil
}

// RemoveUser ends that a persona is the identity of a user, or rejects a pending link. Who the user was by it is
// remembered, unless somebody who may delete personas corrects a mistake. It returns apierr.PersonaUserNotFound.
func (s *Service) RemoveUser(ctx context.Context, in RemoveUserInput) (endpoint.Message, error) {
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		if err := mayUnlink(ctx, tx, in); err != nil {
			return err
		}
		l, err := findUserLink(ctx, tx, in.ID, in.UserID)
		if err != nil {
			return err
		}
		if err := endpoint.CheckMatch(ctx, l.ETag()); err != nil {
			return err
		}
		caller := access.From(ctx)
		if corrects := caller.May(access.Personas, access.Delete) && caller.UserID != l.UserID; !corrects {
			if err := keepIdentity(ctx, tx, in.ID, l.UserID); err != nil {
				return err
			}
		}
		if err := deleteUserLink(ctx, tx, l.ID); err != nil {
			return err
		}
		return proof.Audit(ctx, tx, "personas.remove_user", in.ID, nil)
	})
	return endpoint.Confirm(ctx, s.texts, "personas.user_removed"), err
}
