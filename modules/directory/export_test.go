package directory

import (
	"context"

	"kontor/store"
)

// CountFailure notes a wrong code.
func (s *Service) CountFailure(ctx context.Context, tx *store.Tx) error {
	return s.countFailure(ctx, tx)
}
