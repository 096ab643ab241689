package directory

import (
	"context"

	"kontor/store"
)

// CountFailure counts a wrong code.
func (s *Service) CountFailure(ctx context.Context, tx *store.Tx) error {
	return s.countFailure(ctx, tx)
}
