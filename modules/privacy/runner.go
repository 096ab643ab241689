package privacy

import (
	"context"
	"errors"
	"fmt"

	"kontor/modules/kit/personal"
	"kontor/server/access"
	"kontor/server/apierr"
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
		return erasureProof.Audit(ctx, tx, "privacy.erasure_"+string(status), e.ID, was)
	})
}

func ledgerEntries(erasures []Erasure) []store.Erasure {
	entries := make([]store.Erasure, 0, len(erasures))
	for _, e := range erasures {
		entries = append(entries, store.Erasure{ID: e.ID, Kind: string(e.Kind), Subject: e.SubjectID, Reason: e.Reason, By: e.RequestedBy, At: e.RequestedAt})
	}
	return entries
}

// reconcile compares the ledger with the database. Erasures that only the ledger has were made after the backup from which the
// database was restored: they begin again. Those that only the database has are added to the ledger.
func (s *Service) reconcile(ctx context.Context) error {
	recorded, err := s.db.Erasures()
	if err != nil {
		return err
	}
	stored, err := store.All(ctx, s.db, scanErasure, selectAllErasures)
	if err != nil {
		return err
	}
	known := make(map[personal.Subject]bool, len(stored))
	for _, e := range stored {
		known[e.subject()] = true
	}
	for _, r := range recorded {
		e := Erasure{ID: r.ID, Kind: personal.Kind(r.Kind), SubjectID: r.Subject, Reason: r.Reason, RequestedAt: r.At, RequestedBy: r.By}
		if known[e.subject()] {
			continue
		}
		if err := s.repeat(ctx, e); err != nil {
			return fmt.Errorf("repeat erasure %s: %w", e.ID, err)
		}
		known[e.subject()] = true
	}
	return s.db.RecordErasures(ledgerEntries(stored)...)
}

// repeat records an erasure of the ledger in a restored database. A subject that the database does not have was created after
// the backup: there is nothing to erase.
func (s *Service) repeat(ctx context.Context, e Erasure) error {
	ctx = access.With(ctx, &access.Caller{UserID: e.RequestedBy})
	s.Log.Warn("a restored database holds data that were erased; erasing them again", "erasure", e.ID, "kind", e.Kind)
	err := s.db.InTx(ctx, func(tx *store.Tx) error { return s.insert(ctx, tx, e) })
	if isMissing(err) {
		return nil
	}
	return err
}

// isMissing reports whether the database does not have a subject.
func isMissing(err error) bool {
	return errors.Is(err, store.ErrNotFound) || errors.Is(err, apierr.CustomerNotFound) || errors.Is(err, apierr.UserNotFound) ||
		errors.Is(err, apierr.PersonaNotFound)
}
