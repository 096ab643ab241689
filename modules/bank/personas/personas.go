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
	"kontor/modules/kit/recordtype"
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
	Version     int64          `json:"-" column:"version"`
}

// ETag returns the version of the record.
func (p Persona) ETag() string { return endpoint.VersionTag(p.Version) }

// Erased reports whether the personal data was erased. The record does not change any more.
func (p Persona) Erased() bool { return p.ErasedAt != nil }

// EachUser names the creator and the last editor.
func (p Persona) EachUser(add func(id string)) {
	add(p.CreatedBy)
	add(p.ModifiedBy)
}

// Service manages personas. Create one with [New].
type Service struct {
	recordtype.Service[Persona]

	db    *store.DB
	texts endpoint.Texts
}

// New returns a service on a database.
func New(db *store.DB, texts endpoint.Texts) *Service {
	return &Service{Service: recordtype.NewService(db, personas, recordtype.Hooks[Persona]{Before: keepNames, Audited: auditChange}), db: db, texts: texts}
}

// Create creates a persona.
func (s *Service) Create(ctx context.Context, in CreateInput) (Persona, error) {
	return s.Service.Create(ctx, in.persona, nil)
}

// Get returns a persona. It returns apierr.PersonaNotFound and apierr.NoAccess.
func (s *Service) Get(ctx context.Context, in OneInput) (Persona, error) {
	return s.Service.Get(ctx, in.ID)
}

// List returns the personas that the caller may read, including inactive ones.
func (s *Service) List(ctx context.Context, in ListInput) (list.Page[Persona], error) {
	return personas.List.Page(ctx, s.db, in.Query.WithText(in.Text, personas.From), personas.Visible(access.From(ctx)))
}

// Update replaces the data of a persona.
func (s *Service) Update(ctx context.Context, in UpdateInput) (Persona, error) {
	return s.Service.Update(ctx, in.ID, func(before Persona) (Persona, error) { return in.apply(before), nil })
}

// Archive makes a persona inactive. An inactive persona stays unchanged.
func (s *Service) Archive(ctx context.Context, in OneInput) (endpoint.Message, error) {
	err := s.Service.Archive(ctx, in.ID)
	return endpoint.Confirm(ctx, s.texts, "personas.archived"), err
}

// FillSortKeys computes the sort keys of names that earlier versions have stored. It runs regularly.
func (s *Service) FillSortKeys(ctx context.Context) error {
	return records.FillSortKeys(ctx, s.db, records.SortKeys{From: "personas", Names: []string{"first_name", "last_name"}})
}
