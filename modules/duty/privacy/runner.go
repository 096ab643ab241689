package privacy

import (
	"context"
	"fmt"

	"kontor/modules/kit/personal"
	"kontor/server/access"
	"kontor/store"
)

// begin runs an erasure in the background, unless it runs already. The channel is closed at its end. An erasure that fails is
// repeated by the regular job.
func (s *Service) begin(e Erasure) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if end, runs := s.running[e.ID]; runs {
		return end
	}
	end := make(chan struct{})
	s.running[e.ID] = end
	s.wait.Go(func() {
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.running, e.ID)
			close(end)
		}()
		s.turn.Lock()
		defer s.turn.Unlock()
		if err := s.finish(s.ctx, e.ID); err != nil && s.ctx.Err() == nil {
			s.Log.Error("an erasure failed; it will be repeated", "erasure", e.ID, "cause", err)
		}
	})
	return end
}

// finish completes an erasure from the state in which it is.
func (s *Service) finish(ctx context.Context, id string) error {
	e, err := scanErasure(s.db.QueryRow(ctx, selectErasureByID, id))
	if err != nil || e.Status == Erased {
		return err
	}
	if err := s.db.RecordErasures(ledgerEntries([]Erasure{e})...); err != nil {
		return err
	}
	if e.Status == Running {
		if err := s.eraseData(ctx, e); err != nil {
			return err
		}
	}
	if err := s.db.Clean(ctx); err != nil {
		return fmt.Errorf("clean the files: %w", err)
	}
	return s.setStatus(ctx, e, Erased)
}

// eraseData overwrites the data of a person in all modules. It starts again after an interruption.
func (s *Service) eraseData(ctx context.Context, e Erasure) error {
	ctx = access.With(ctx, &access.Caller{UserID: e.RequestedBy})
	for _, m := range s.Modules {
		if err := s.eraseIn(ctx, m, e.subject()); err != nil {
			return fmt.Errorf("erase in %T: %w", m, err)
		}
	}
	if err := s.db.ForgetAnswers(ctx, e.SubjectID); err != nil {
		return fmt.Errorf("forget answers: %w", err)
	}
	return s.setStatus(ctx, e, Cleaning)
}

func (s *Service) eraseIn(ctx context.Context, m personal.Module, subject personal.Subject) error {
	for cursor := ""; ; {
		err := s.db.InTx(ctx, func(tx *store.Tx) error {
			next, err := m.ErasePerson(ctx, tx, subject, cursor)
			if err == nil {
				tx.AfterCommit(func() { cursor = next })
			}
			return err
		})
		if err != nil || cursor == "" {
			return err
		}
	}
}

func (s *Service) setStatus(ctx context.Context, e Erasure, status Status) error {
	ctx = access.With(ctx, &access.Caller{UserID: e.RequestedBy})
	return s.db.InTx(ctx, func(tx *store.Tx) error {
		var erased *store.Time
		if now := tx.Now(); status == Erased {
			erased = &now
		}
		was, err := erasureProof.Read(ctx, tx, e.ID)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, updateErasure, e.ID, string(status), erased); err != nil {
			return err
		}
		tx.AnnounceSoon(s.topic, e.ID)
		return erasureProof.Audit(ctx, tx, "privacy.erasure_"+string(status), e.ID, was)
	})
}
