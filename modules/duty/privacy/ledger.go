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
	if _, err := s.repeatMissing(ctx, recorded, stored); err != nil {
		return err
	}
	return s.db.RecordErasures(ledgerEntries(stored)...)
}

// repeatMissing repeats the erasures of a ledger that the database does not have, and returns their number.
func (s *Service) repeatMissing(ctx context.Context, recorded []store.Erasure, stored []Erasure) (repeated int, err error) {
	known := make(map[personal.Subject]bool, len(stored))
	for _, e := range stored {
		known[e.subject()] = true
	}
	for _, r := range recorded {
		e := Erasure{ID: r.ID, Kind: personal.Kind(r.Kind), SubjectID: r.Subject, Reason: r.Reason, RequestedAt: r.At, RequestedBy: r.By}
		if known[e.subject()] {
			continue
		}
		present, err := s.repeat(ctx, e)
		if err != nil {
			return repeated, fmt.Errorf("repeat erasure %s: %w", e.ID, err)
		}
		if present {
			repeated++
		}
		known[e.subject()] = true
	}
	return repeated, nil
}

// Ledger returns the ledger of erasures of a database that has none beside it: all erasures that were ever recorded.
func (s *Service) Ledger(ctx context.Context) (ledger []byte, entries int, err error) {
	stored, err := store.All(ctx, s.db, scanErasure, selectAllErasures)
	if err != nil {
		return nil, 0, fmt.Errorf("read the erasures: %w", err)
	}
	return s.db.EncodeErasures(ledgerEntries(stored)), len(stored), nil
}

// Apply repeats the erasures of a ledger that the database does not have, because an older backup was restored. It returns how many
// the ledger has and how many were repeated, after all of their data were overwritten. It returns store.ErrLedger.
func (s *Service) Apply(ctx context.Context, ledger []byte) (entries, repeated int, err error) {
	recorded, err := s.db.ParseErasures(ledger)
	if err != nil {
		return 0, 0, err
	}
	stored, err := store.All(ctx, s.db, scanErasure, selectAllErasures)
	if err != nil {
		return 0, 0, fmt.Errorf("read the erasures: %w", err)
	}
	if repeated, err = s.repeatMissing(ctx, recorded, stored); err != nil {
		return len(recorded), repeated, err
	}
	unfinished, err := store.All(ctx, s.db, scanErasure, selectUnfinishedErasures)
	if err != nil {
		return len(recorded), repeated, err
	}
	for _, e := range unfinished {
		if e.Status == Running {
			if err := s.eraseData(ctx, e); err != nil {
				return len(recorded), repeated, err
			}
		}
	}
	return len(recorded), repeated, nil
}

// repeat records an erasure of the ledger in a restored database. A subject that the database does not have was created after
// the backup: there is nothing to erase, and repeat reports false.
func (s *Service) repeat(ctx context.Context, e Erasure) (present bool, err error) {
	ctx = access.With(ctx, &access.Caller{UserID: e.RequestedBy})
	s.Log.Warn("a restored database holds data that were erased; erasing them again", "erasure", e.ID, "kind", e.Kind)
	err = s.db.InTx(ctx, func(tx *store.Tx) error { return s.insert(ctx, tx, e) })
	if isMissing(err) {
		return false, nil
	}
	return err == nil, err
}

// isMissing reports whether the database does not have a subject.
func isMissing(err error) bool {
	return errors.Is(err, store.ErrNotFound) || errors.Is(err, apierr.CustomerNotFound) || errors.Is(err, apierr.UserNotFound) ||
		errors.Is(err, apierr.PersonaNotFound)
}
