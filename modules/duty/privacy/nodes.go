package privacy

import (
	"context"

	"github.com/google/uuid"
)

// receive receives that the status of an erasure has changed, on any node. The leader begins one that another node has recorded.
// Keys that are not ids are those of lost announcements: the regular job finds the erasures.
func (s *Service) receive(id string) {
	s.mu.Lock()
	close(s.changed)
	s.changed = make(chan struct{})
	s.mu.Unlock()
	if s.db.Shared() && s.db.Leads() && s.ctx.Err() == nil && uuid.Validate(id) == nil {
		s.begin(Erasure{ID: id})
	}
}

// awaitLeader waits until the leader has completed an erasure, or until the context ends.
func (s *Service) awaitLeader(ctx context.Context, id string) {
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		e, err := scanErasure(s.db.QueryRow(ctx, selectErasureByID, id))
		if err != nil || e.Status == Erased {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}
