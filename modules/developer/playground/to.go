package playground

import (
	"context"
	"sync"
	"time"

	"kontor/server/apierr"
	"kontor/store"
)

// Busy is held while the clock is moved. Others who need it to stand still hold it, too.
func (s *Service) Busy() *sync.Mutex { return &s.moving }

// AdvanceTo moves the clock to a time, as [Service.Advance] does.
func (s *Service) AdvanceTo(ctx context.Context, to time.Time) error {
	moved, err := s.Advance(ctx, Move{to: store.TimeOf(to)})
	if err == nil && !moved.Complete {
		return apierr.DeadlineExceeded
	}
	return err
}
