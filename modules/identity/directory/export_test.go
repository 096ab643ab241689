package directory

import (
	"context"

	"kontor/store"
)

// CountFailure counts a wrong code.
func (s *Service) CountFailure(ctx context.Context, tx *store.Tx) error {
	return s.countFailure(ctx, tx)
}

// CachedPeople returns the number of cached people.
func (s *Service) CachedPeople() (n int) {
	for i := range s.people.shards {
		n += len(s.people.shards[i].entries)
	}
	return n
}
