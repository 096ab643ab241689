// Package personas keeps identities: people with their names and dates, the users whose identity they are, and what they
// are to each other.
//
// A persona is never removed: it becomes inactive, and stays readable as such. Users that are linked to a persona read
// it. A link between two personas is kept once and seen from both ends. What hangs on an identity, such as who may
// decide about which customer, is the matter of other modules, which ask [Service.Identities].
//
// A link to a user counts only when staff or the user entered it, or when the user has accepted it; until then it is
// pending and gives no rights. The same holds for relations that carry trust, such as a legal representative: what others
// than staff enter is pending until staff or the other side accept it.
package personas

import (
	"context"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/store"
)

// Persona is an identity as the API shows it.
type Persona struct {
	ID          string         `json:"id"`
	FirstName   string         `json:"first_name"`
	LastName    string         `json:"last_name"`
	DateOfBirth types.Date     `json:"date_of_birth" nullable:"false"`
	DateOfDeath types.Date     `json:"date_of_death"`
	Nationality *string        `json:"nationality" pattern:"^[A-Z]{3}$"`                                 // ISO 3166-1 alpha-3
	HashID      *string        `json:"hash_id" format:"-" doc:"The caller's own name for the identity."` // the caller's own name for the identity
	Active      bool           `json:"active"`
	Metadata    jsontext.Value `json:"metadata"`
	CreatedAt   store.Time     `json:"created_at"`
	CreatedBy   string         `json:"created_by"`
	ModifiedAt  store.Time     `json:"modified_at"`
	ModifiedBy  string         `json:"modified_by"`

	version int64
}

// ETag is the version of the record.
func (p Persona) ETag() string { return endpoint.VersionTag(p.version) }

// Service is the module. Make one with [New].
type Service struct {
	db    *store.DB
	texts endpoint.Texts
	quota records.Quota
}

// New makes the module on a database.
func New(db *store.DB, texts endpoint.Texts) *Service { return &Service{db: db, texts: texts} }

// SetQuota bounds what one user may store. Without it nothing is counted.
func (s *Service) SetQuota(q records.Quota) { s.quota = q }

// Create enters a persona.
func (s *Service) Create(ctx context.Context, in CreateInput) (Persona, error) {
	p := in.persona
	p.ID, p.CreatedBy, p.version = store.NewID(), access.From(ctx).UserID, 1
	p.ModifiedBy, p.CreatedAt = p.CreatedBy, s.db.Now()
	p.ModifiedAt = p.CreatedAt
	after, answer := s.db.Digest(audited(p, nil, nil)), s.db.Answer(ctx, p)
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		if err := s.quota.Charge(ctx, tx, access.Personas, p.CreatedBy, 1, p.weight()); err != nil {
			return err
		}
		if err := insertPersona(ctx, tx, p); err != nil {
			return err
		}
		table.Audit(ctx, tx, "personas.create", p.ID, nil, after)
		tx.Respond(http.StatusCreated, answer)
		return nil
	})
	return p, err
}

// Get gives one persona. It returns apierr.PersonaNotFound and apierr.NoAccess.
func (s *Service) Get(ctx context.Context, in OneInput) (Persona, error) {
	return table.Get(ctx, s.db, in.ID, access.Read)
}

// List gives the personas that the caller may see, inactive ones among them.
func (s *Service) List(ctx context.Context, in ListInput) (list.Page[Persona], error) {
	return personaList.Page(ctx, s.db, in.Query, table.Visible(access.From(ctx)))
}

// Update replaces the data of a persona. Metadata and active stay as they are where they are not given.
func (s *Service) Update(ctx context.Context, in UpdateInput) (Persona, error) {
	var p Persona
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		before, err := records.ForChange(ctx, tx, table, in.ID, access.Update)
		if err != nil {
			return err
		}
		p = in.apply(before)
		return s.change(ctx, tx, "personas.update", before, &p)
	})
	return p, err
}

// Archive makes a persona inactive. One that is inactive already stays as it is.
func (s *Service) Archive(ctx context.Context, in OneInput) (endpoint.Message, error) {
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		before, err := records.ForChange(ctx, tx, table, in.ID, access.Delete)
		if err != nil || !before.Active {
			return err
		}
		p := before
		p.Active = false
		return s.change(ctx, tx, "personas.archive", before, &p)
	})
	return endpoint.Confirm(ctx, s.texts, "personas.archived"), err
}

// change writes the new state of a persona and its audit entry.
func (s *Service) change(ctx context.Context, tx *store.Tx, action string, before Persona, p *Persona) error {
	was, err := proof.Read(ctx, tx, p.ID)
	if err != nil {
		return err
	}
	if err := s.quota.Charge(ctx, tx, access.Personas, before.CreatedBy, 0, p.weight()-before.weight()); err != nil {
		return err
	}
	if p.FirstName != before.FirstName || p.LastName != before.LastName || p.DateOfBirth != before.DateOfBirth {
		if err := keepNames(ctx, tx, before, *p); err != nil {
			return err
		}
	}
	p.ModifiedAt, p.ModifiedBy, p.version = tx.Now(), access.From(ctx).UserID, before.version+1
	if err := updatePersona(ctx, tx, *p); err != nil {
		return err
	}
	return proof.Audit(ctx, tx, action, p.ID, was)
}

// weight is what the persona takes of the quota of its creator.
func (p Persona) weight() int64 { return records.Weight(p.FirstName, p.LastName, string(p.Metadata)) }

// Standings answers permission checks: the creator of a persona reads, updates and deletes it, its users read it.
func (s *Service) Standings(ctx context.Context, userID string, ids []string) (map[string]access.Standing, error) {
	return table.Standings(ctx, s.db, userID, ids)
}
