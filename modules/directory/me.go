package directory

import (
	"context"
	"fmt"

	"kontor/server/access"
	"kontor/server/endpoint"
)

// Me is the caller's own user. Only its owner sees whether the password is the printed one.
type Me struct {
	User
	PasswordPrinted bool `json:"password_printed,omitzero" doc:"The password is still the one that the first start printed; missing otherwise."`
}

// ETag names the state of the record. While the password is the printed one there is none: a new password changes the
// answer and not the record.
func (m Me) ETag() string {
	if m.PasswordPrinted {
		return ""
	}
	return m.User.ETag()
}

const countPrinted = `SELECT COUNT(*) FROM passwords WHERE user_id = $1 AND printed = TRUE`

// me reads the caller's own user.
func (s *Service) me(ctx context.Context, _ endpoint.None) (Me, error) {
	userID := access.From(ctx).UserID
	u, err := s.read(ctx, s.db, userID, access.Read)
	if err != nil {
		return Me{}, err
	}
	var printed int
	if err := s.db.QueryRow(ctx, countPrinted, userID).Scan(&printed); err != nil {
		return Me{}, fmt.Errorf("read whether the password was printed: %w", err)
	}
	return Me{User: u, PasswordPrinted: printed > 0}, nil
}
