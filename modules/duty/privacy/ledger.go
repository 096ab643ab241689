package privacy

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"kontor/modules/kit/personal"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
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

// Status is the state of an erasure.
type Status string

// The states.
const (
	Running  Status = "running"  // personal data are being overwritten
	Cleaning Status = "cleaning" // no answer contains them any more; the files of the database may
	Erased   Status = "erased"   // no file of the data directory contains them any more
)

// Values returns all states.
func (Status) Values() []string { return []string{string(Running), string(Cleaning), string(Erased)} }

// Erasure is the erasure of a person's data.
type Erasure struct {
	ID          string        `json:"id"`
	Kind        personal.Kind `json:"kind"`
	SubjectID   string        `json:"subject_id" doc:"The customer, user or persona."`
	Reason      string        `json:"reason" enum:"request,retention,order,error"`
	Status      Status        `json:"status" doc:"running: the data are being overwritten. cleaning: no answer contains them any more. erased: no file of the data directory does."`
	RequestedAt store.Time    `json:"requested_at"`
	RequestedBy string        `json:"requested_by"`
	ErasedAt    *store.Time   `json:"erased_at" doc:"When the files were clean; null until then."`
	Left        []Left        `json:"left" doc:"What stays, and why."`

	version int64
}

// ETag returns the version of the record.
func (e Erasure) ETag() string { return endpoint.VersionTag(e.version) }

// EachUser names the requester.
func (e Erasure) EachUser(add func(id string)) { add(e.RequestedBy) }

// Left is something that an erasure does not remove.
type Left struct {
	What string `json:"what" example:"audit_trail"`
	Why  string `json:"why" doc:"In the language of the request."`
}

// left lists what the erasure of a person of each kind does not remove. The texts have the keys "privacy.left.<name>".
var left = map[personal.Kind][]string{
	personal.Customer: {"audit_trail", "ids", "users_of_customer", "views_of_others", "backups"},
	personal.User:     {"audit_trail", "ids", "messages_of_others", "authorship", "customers_of_user", "views_of_others", "backups"},
	personal.Persona:  {"audit_trail", "ids", "views_of_others", "backups"},
}

// Relationship is the business relationship with a customer.
type Relationship struct {
	CustomerID     string      `json:"customer_id"`
	Customer       bool        `json:"customer" doc:"Whether the identity was verified at any time. Retention periods apply to such customers only."`
	EndedAt        *store.Time `json:"ended_at" doc:"null: it has not ended."`
	RetentionUntil types.Date  `json:"retention_until" doc:"The last day on which the data must be kept; null until the relationship has ended."`
	OnHold         bool        `json:"on_hold" doc:"Whether a legal hold prevents the erasure: on the customer, or on another one of the same person."`
	Erasable       bool        `json:"erasable" doc:"Whether the data may be erased today."`
	// ProposedEnd waits for a second person.
	ProposedEnd *ProposedEnd `json:"proposed_end,omitzero" doc:"An end far in the past, which counts when a second person sends the same; missing without one."`

	heldBy  string // the customer under the hold
	version int64
}

// ProposedEnd is an end of a relationship far in the past, as one person has stated it.
type ProposedEnd struct {
	EndedAt    store.Time  `json:"ended_at"`
	ProposedAt *store.Time `json:"proposed_at" nullable:"false"`
	ProposedBy string      `json:"proposed_by"`
}

// EachUser names the user who proposed an end.
func (r Relationship) EachUser(add func(id string)) {
	if r.ProposedEnd != nil {
		add(r.ProposedEnd.ProposedBy)
	}
}

// ETag returns the version of the record.
func (r Relationship) ETag() string { return endpoint.VersionTag(r.version) }

// LegalHold prevents the erasure of a customer.
type LegalHold struct {
	CustomerID string     `json:"customer_id"`
	Active     bool       `json:"active" doc:"Whether the hold is in force today: false after its last day, and without a hold."`
	Reason     string     `json:"reason" maxLength:"500" doc:"Empty without a hold."`
	Until      types.Date `json:"until" doc:"The last day of the hold; null: until it is removed."`
	CreatedAt  store.Time `json:"created_at" doc:"1970-01-01T00:00:00.000Z without a hold."`
	CreatedBy  string     `json:"created_by" doc:"00000000-0000-0000-0000-000000000000 without a hold."`

	version int64
}

// ETag returns the version of the record.
func (h LegalHold) ETag() string { return endpoint.VersionTag(h.version) }

// EachUser names the creator.
func (h LegalHold) EachUser(add func(id string)) {
	if h.CreatedBy != store.NilID {
		add(h.CreatedBy)
	}
}

// Due is a customer whose data may be erased: the retention period has ended, and there is no hold.
type Due struct {
	CustomerID string     `json:"customer_id"`
	EndedAt    store.Time `json:"ended_at" doc:"When the business relationship ended."`
}
