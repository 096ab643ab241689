package directory

import (
	"context"

	"kontor/store"
)

// CountFailure counts a wrong code.
func (s *Service) CountFailure(ctx context.Context, tx *store.Tx) error {
	return s.countFailure(ctx, tx)
}

// PeopleKept returns how many people are in memory.
func (s *Service) PeopleKept() (n int) {
	for i := range s.people.shards {
		n += len(s.people.shards[i].entries)
	}
	return n
}
