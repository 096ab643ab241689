package personas

import (
	"context"
	"errors"
	"net/http"

	"kontor/modules/input"
	"kontor/modules/list"
	"kontor/modules/value"
	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/server/fault"
	"kontor/store"
)

// UserLink says that a persona is the identity of a user.
type UserLink struct {
	ID        string     `json:"id"`
	PersonaID string     `json:"persona_id"`
	UserID    string     `json:"user_id"`
	CreatedAt store.Time `json:"created_at"`
	CreatedBy string     `json:"created_by"`

	version int64
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
func (in *AddUserInput) Validate(v *fault.Fields) { in.UserID = requiredID(v, "user_id", in.UserID) }

// requiredID checks a required id.
func requiredID(v *fault.Fields, field, text string) string {
	if text == "" {
		v.Add(field, "invalid.required")
	}
	return input.Parsed(v, field, text, value.ParseID)
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

// AddUser makes a persona the identity of a user, who may read it from then on. It returns fault.PersonaUserExists for a
// user who is linked already and fault.UserNotFound for one who does not exist.
func (s *Service) AddUser(ctx context.Context, in AddUserInput) (UserLink, error) {
	l := UserLink{ID: store.NewID(), PersonaID: in.ID, UserID: in.UserID, CreatedBy: access.From(ctx).UserID, CreatedAt: s.db.Now(), version: 1}
	after, answer := s.db.Digest(l), s.db.Answer(ctx, l)
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		if _, err := table.Get(ctx, tx, in.ID, access.Update); err != nil {
			return err
		}
		if err := insertUserLink(ctx, tx, l); err != nil {
			return err
		}
		table.Audit(ctx, tx, "personas.add_user", in.ID, nil, after)
		tx.Respond(http.StatusCreated, answer)
		return nil
	})
	switch {
	case errors.Is(err, store.ErrDuplicate):
		return l, fault.PersonaUserExists.Because(err)
	case errors.Is(err, store.ErrMissingReference): // the persona was just read
		return l, fault.UserNotFound.Because(err)
	}
	return l, err
}

// RemoveUser ends that a persona is the identity of a user. It returns fault.PersonaUserNotFound.
func (s *Service) RemoveUser(ctx context.Context, in RemoveUserInput) (endpoint.Message, error) {
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		if _, err := table.Get(ctx, tx, in.ID, access.Update); err != nil {
			return err
		}
		l, err := selectUserLink(ctx, tx, in.ID, in.UserID)
		if errors.Is(err, store.ErrNotFound) {
			return fault.PersonaUserNotFound
		}
		if err != nil {
			return err
		}
		if err := endpoint.CheckMatch(ctx, l.ETag()); err != nil {
			return err
		}
		if caller := access.From(ctx).UserID; caller == l.UserID {
			if err := keepIdentity(ctx, tx, in.ID, caller); err != nil {
				return err
			}
		}
		if err := deleteUserLink(ctx, tx, l.ID); err != nil {
			return err
		}
		table.Audit(ctx, tx, "personas.remove_user", in.ID, l, nil)
		return nil
	})
	return endpoint.Confirm(ctx, s.texts, "personas.user_removed"), err
}
