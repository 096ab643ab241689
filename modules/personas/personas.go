// Package personas manages identities of natural persons, the users linked to them, and the relations between personas.
//
// A persona is never deleted: it becomes inactive and stays readable. Users that are linked to a persona may read it. A link
// between two personas is stored once and readable from both. Other modules call [Service.Identities] for rules that depend
// on the identity of a user, such as self-review.
//
// A link to a user is active when staff or the user created it, or when the user has accepted it. Until then it is pending and
// has no effect. Relations that carry trust, such as a legal representative, work alike: they are pending until staff or
// the other side accept them, unless staff created them.
//
// The module owns the tables personas, persona_users, persona_links, persona_names, former_identities, former_persona_users
// and former_persona_links. It publishes no views.
package personas

import (
	"context"

	"github.com/go-json-experiment/json/jsontext"

	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/store"
)

// Persona is the API's representation of a persona.
type Persona struct {
	ID          string         `json:"id"`
	FirstName   string         `json:"first_name"`
	LastName    string         `json:"last_name"`
	DateOfBirth types.Date     `json:"date_of_birth" nullable:"false"`
	DateOfDeath types.Date     `json:"date_of_death"`
	Nationality *string        `json:"nationality" pattern:"^[A-Z]{3}$" doc:"ISO 3166-1 alpha-3."`
	HashID      *string        `json:"hash_id" format:"-" doc:"A name for the identity that the caller chooses."`
	Active      bool           `json:"active"`
	Metadata    jsontext.Value `json:"metadata"`
	CreatedAt   store.Time     `json:"created_at"`
	CreatedBy   string         `json:"created_by"`
	ModifiedAt  store.Time     `json:"modified_at"`
	ModifiedBy  string         `json:"modified_by"`
	ErasedAt    *store.Time    `json:"erased_at,omitzero" doc:"When the personal data was erased; missing from all other personas."`

	version int64
}

// ETag returns the version of the record.
func (p Persona) ETag() string { return endpoint.VersionTag(p.version) }

// Erased reports whether the personal data was erased. The record does not change any more.
func (p Persona) Erased() bool { return p.ErasedAt != nil }

// EachUser names the creator and the last editor.
func (p Persona) EachUser(add func(id string)) {
	add(p.CreatedBy)
	add(p.ModifiedBy)
}

// Service manages personas. Create one with [New].
type Service struct {
	access.Records // answers permission checks from the relations of the table

	db    *store.DB
	texts endpoint.Texts
	quota records.Quota
}

// New returns a service on a database.
func New(db *store.DB, texts endpoint.Texts) *Service {
	return &Service{Records: records.Of(db, table), db: db, texts: texts}
}

// SetQuota limits the storage of each user. Without a quota nothing is counted.
func (s *Service) SetQuota(q records.Quota) { s.quota = q }

// Create creates a persona.
func (s *Service) Create(ctx context.Context, in CreateInput) (Persona, error) {
	p := in.persona
	p.ID, p.CreatedBy, p.version = store.NewID(), access.From(ctx).UserID, 1
	p.ModifiedBy, p.CreatedAt = p.CreatedBy, s.db.Now()
	p.ModifiedAt = p.CreatedAt
	answer := s.db.Answer(ctx, p)
	after := s.db.Digest(audited(p, nil, nil).As(answer))
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		if err := s.quota.Charge(ctx, tx, access.Personas, p.CreatedBy, 1, p.weight()); err != nil {
			return err
		}
		if err := insertPersona(ctx, tx, p); err != nil {
			return err
		}
		table.Audit(ctx, tx, "personas.create", p.ID, nil, after)
		tx.Respond(answer)
		return nil
	})
	return p, err
}

// Get returns a persona. It returns apierr.PersonaNotFound and apierr.NoAccess.
func (s *Service) Get(ctx context.Context, in OneInput) (Persona, error) {
	return table.Get(ctx, s.db, in.ID, access.Read)
}

// List returns the personas that the caller may read, including inactive ones.
func (s *Service) List(ctx context.Context, in ListInput) (list.Page[Persona], error) {
	return personaList.Page(ctx, s.db, in.Query.WithText(in.Text, source), table.Visible(access.From(ctx)))
}

// editor updates and archives personas. Their audit entries cover several tables.
var editor = records.Editor[Persona]{
	Table: table, Write: updatePersona, Audited: auditChange,
	Owner:  func(p Persona) string { return p.CreatedBy },
	Weight: Persona.weight,
	Active: func(p *Persona) *bool { return &p.Active },
	Stamp: func(before, after Persona, now store.Time, editor string) Persona {
		after.ModifiedAt, after.ModifiedBy, after.version = now, editor, before.version+1
		return after
	},
}

// Update replaces the data of a persona.
func (s *Service) Update(ctx context.Context, in UpdateInput) (Persona, error) {
	return editor.Update(ctx, s.db, s.quota, in.ID, "personas.update", func(before Persona) (Persona, error) { return in.apply(before), nil })
}

// Archive makes a persona inactive. An inactive persona stays unchanged.
func (s *Service) Archive(ctx context.Context, in OneInput) (endpoint.Message, error) {
	err := editor.Archive(ctx, s.db, s.quota, in.ID, "personas.archive")
	return endpoint.Confirm(ctx, s.texts, "personas.archived"), err
}

// weight returns how many bytes of its creator's quota the persona uses.
func (p Persona) weight() int64 { return records.Weight(p.FirstName, p.LastName, string(p.Metadata)) }
