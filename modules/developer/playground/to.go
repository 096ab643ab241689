package playground

import (
	"context"
	"sync"
	"time"

	"kontor/server/apierr"
)

// Busy is held while the clock is moved. Others who need it to stand still hold it, too.
func (s *Service) Busy() *sync.Mutex { return &s.moving }

// AdvanceTo moves the clock to a time, as [Service.Advance] does.
func (s *Service) AdvanceTo(ctx context.Context, to time.Time) error {
	text := to.Format(time.RFC3339Nano)
	in := Move{To: &text}
	var problems apierr.Fields
	in.Validate(&problems)
	if err := problems.Err(); err != nil {
		return err
	}
	moved, err := s.Advance(ctx, in)
	if err == nil && !moved.Complete {
		return apierr.DeadlineExceeded
	}
	return err
}
