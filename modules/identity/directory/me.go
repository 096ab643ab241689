package directory

import (
	"context"
	"fmt"

	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/store"
)

// Me is the caller's user. Only the user sees whether the password is the printed one.
type Me struct {
	User
	FactorRequiredBy *store.Time `json:"factor_required_by" doc:"By when the user must enrol a second factor, which a role requires; null otherwise."`
	PasswordPrinted  bool        `json:"password_printed,omitzero" doc:"True while the password is the one that the first start printed; missing otherwise."`
}

// ETag returns the validator of the record. There is none while the password is the printed one or a second factor is missing: a
// new password or factor changes the response and not the record.
func (m Me) ETag() string {
	if m.PasswordPrinted || m.FactorRequiredBy != nil {
		return ""
	}
	return m.User.ETag()
}

// me returns the caller's user.
func (s *Service) me(ctx context.Context, _ endpoint.None) (Me, error) {
	caller := access.From(ctx)
	userID := caller.UserID
	u, err := s.read(ctx, s.db, userID, access.Read)
	if err != nil {
		return Me{}, err
	}
	printed, err := s.auth.PasswordPrinted(ctx, s.db, userID)
	if err != nil {
		return Me{}, fmt.Errorf("read whether the password was printed: %w", err)
	}
	me := Me{User: u, PasswordPrinted: printed}
	if by := caller.SignedIn.EnrolBy; !by.IsZero() {
		at := store.TimeOf(by)
		me.FactorRequiredBy = &at
	}
	return me, nil
}
