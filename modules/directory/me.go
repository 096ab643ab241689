package directory

import (
	"context"
	"fmt"

	"kontor/server/access"
	"kontor/server/endpoint"
)

// Me is the caller's user. Only the user sees whether the password is the printed one.
type Me struct {
	User
	PasswordPrinted bool `json:"password_printed,omitzero" doc:"True while the password is the one that the first start printed; missing otherwise."`
}

// ETag returns the validator of the record. There is none while the password is the printed one: a new password changes the
// response and not the record.
func (m Me) ETag() string {
	if m.PasswordPrinted {
		return ""
	}
	return m.User.ETag()
}

// me returns the caller's user.
func (s *Service) me(ctx context.Context, _ endpoint.None) (Me, error) {
	userID := access.From(ctx).UserID
	u, err := s.read(ctx, s.db, userID, access.Read)
	if err != nil {
		return Me{}, err
	}
	printed, err := s.auth.PasswordPrinted(ctx, s.db, userID)
	if err != nil {
		return Me{}, fmt.Errorf("read whether the password was printed: %w", err)
	}
	return Me{User: u, PasswordPrinted: printed}, nil
}
