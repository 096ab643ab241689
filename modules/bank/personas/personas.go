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
// and former_persona_links. It publishes the view persona_subjects, with the columns of customer_subjects.
package personas

import (
	"context"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"kontor/modules/kit/find"
	"kontor/modules/kit/list"
	"kontor/modules/kit/personal"
	"kontor/modules/kit/records"
	"kontor/modules/kit/recordtype"
	"kontor/modules/kit/types"
	"kontor/modules/kit/validate"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
	"kontor/store"
)

// Persona is the API's representation of a persona.
type Persona struct {
	ID          string         `json:"id"`
	FirstName   string         `json:"first_name"`
	LastName    string         `json:"last_name"`
	DateOfBirth types.Date     `json:"date_of_birth" nullable:"false"`
	DateOfDeath types.Date     `json:"date_of_death"`
	Nationality *string        `json:"nationality" pattern:"^[A-Z]{3}$" doc:"ISO 3166-1 alpha-3, XKX for Kosovo, or a code of ICAO 9303-3 such as XXA for a stateless person."`
	HashID      *string        `json:"hash_id" format:"-" doc:"A name for the identity that the caller chooses."`
	Active      bool           `json:"active"`
	Metadata    jsontext.Value `json:"metadata"`
	CreatedAt   store.Time     `json:"created_at"`
	CreatedBy   string         `json:"created_by"`
	ModifiedAt  store.Time     `json:"modified_at"`
	ModifiedBy  string         `json:"modified_by"`
	ErasedAt    *store.Time    `json:"erased_at,omitzero" doc:"When the personal data was erased; missing from all other personas."`
	Version     int64          `json:"-" column:"version"`
	ByStaff     bool           `json:"-" column:"by_staff"`
	Proven      bool           `json:"-" column:"identity_proven"` // the names and the date of birth: staff wrote them
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
	return &Service{Service: recordtype.NewService(db, personas, recordtype.Hooks[Persona]{Before: keepNames, Audited: proof.Change}), db: db, texts: texts}
}

// Create creates a persona.
func (s *Service) Create(ctx context.Context, in CreateInput) (Persona, error) {
	in.persona.Proven = isStaff(access.From(ctx))
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
	return s.Service.Update(ctx, in.ID, func(before Persona) (Persona, error) {
		after := in.apply(before)
		if after.identityChanged(before) { // staff who correct a part do not prove the names that are left
			renamed := after.FirstName != before.FirstName && after.LastName != before.LastName
			after.Proven = isStaff(access.From(ctx)) && (before.Proven || renamed)
		}
		return after, nil
	})
}

// Archive makes a persona inactive. An inactive persona stays unchanged.
func (s *Service) Archive(ctx context.Context, in OneInput) (endpoint.Message, error) {
	err := s.Service.Archive(ctx, in.ID)
	return endpoint.Confirm(ctx, s.texts, "personas.archived"), err
}

// FillSortKeys computes the sort keys of names that earlier versions have stored. It runs regularly.
func (s *Service) FillSortKeys(ctx context.Context) error {
	return records.FillSortKeys(ctx, s.db, "personas", "first_name", "last_name")
}

// Endpoints returns the endpoints of the module.
func (s *Service) Endpoints() []endpoint.Endpoint {
	create, read := access.On(access.Personas, access.Create), access.On(access.Personas, access.Read)
	update, remove := access.On(access.Personas, access.Update), access.On(access.Personas, access.Delete)
	rows := []endpoint.Endpoint{
		{Name: "personas.create", Method: http.MethodPost, Path: "/v1/personas", Access: create, Tag: "Personal Identity",
			Summary: "Create a persona.", Handle: endpoint.JSON(http.StatusCreated, s.Create)},
		{Name: "personas.list", Method: http.MethodGet, Path: "/v1/personas", Access: read, Tag: "Personal Identity",
			Summary: "List personas.", Doc: endpoint.Doc{Search: personas.List.Search()},
			Handle: endpoint.JSON(http.StatusOK, s.List)},
		{Name: "personas.get", Method: http.MethodGet, Path: "/v1/personas/{persona_id}", Access: read, Tag: "Personal Identity",
			Summary: "Get a persona.", Faults: []apierr.Kind{apierr.PersonaNotFound}, Handle: endpoint.JSON(http.StatusOK, s.Get)},
		{Name: "personas.update", Method: http.MethodPut, Path: "/v1/personas/{persona_id}", Access: update, Tag: "Personal Identity",
			Summary: "Replace the data of a persona. Without metadata or active, these keep their values.",
			Faults:  []apierr.Kind{apierr.PersonaNotFound, apierr.OwnPersona, apierr.PreconditionFailed}, Handle: endpoint.JSON(http.StatusOK, s.Update)},
		{Name: "personas.delete", Method: http.MethodDelete, Path: "/v1/personas/{persona_id}", Access: remove, Tag: "Personal Identity",
			Summary: "Archive a persona: it becomes inactive and stays readable.",
			Faults:  []apierr.Kind{apierr.PersonaNotFound, apierr.PreconditionFailed}, Handle: endpoint.JSON(http.StatusOK, s.Archive)},

		{Name: "personas.users.list", Method: http.MethodGet, Path: "/v1/personas/{persona_id}/users", Access: read, Tag: "User-Persona",
			Summary: "List the users linked to a persona.", Faults: []apierr.Kind{apierr.PersonaNotFound}, Doc: endpoint.Doc{Search: userLinkList.Search()},
			Handle: endpoint.JSON(http.StatusOK, s.Users)},
		{Name: "personas.users.add", Method: http.MethodPost, Path: "/v1/personas/{persona_id}/users", Subject: access.NoSubject("callers give what they hold: reading the persona"), Access: update, Tag: "User-Persona",
			Summary: "Link a user to a persona. The link is pending until the user accepts it, unless staff or the user created it.",
			Faults:  []apierr.Kind{apierr.PersonaNotFound, apierr.UserNotFound, apierr.PersonaUserExists}, Handle: endpoint.JSON(http.StatusCreated, s.AddUser)},
		{Name: "personas.users.remove", Method: http.MethodDelete, Path: "/v1/personas/{persona_id}/users/{user_id}", Subject: access.NoSubject("whoever may update a persona decides who uses it"), Access: update, Tag: "User-Persona",
			Summary: "Remove the link between a user and a persona.",
			Faults:  []apierr.Kind{apierr.PersonaNotFound, apierr.PersonaUserNotFound, apierr.OwnPersona, apierr.PreconditionFailed}, Handle: endpoint.JSON(http.StatusOK, s.RemoveUser)},

		{Name: "personas.users.accept", Method: http.MethodPost, Path: "/v1/personas/{persona_id}/users/{user_id}/accept", Subject: access.NoSubject("users accept for themselves"), Access: read, Tag: "User-Persona",
			Summary: "Accept a pending link between a user and a persona.",
			Faults:  []apierr.Kind{apierr.PersonaNotFound, apierr.PersonaUserNotFound, apierr.PreconditionFailed}, Handle: endpoint.JSON(http.StatusOK, s.AcceptUser)},
		{Name: "personas.users.mine", Method: http.MethodGet, Path: "/v1/profile/personas", Access: read, Tag: "User-Persona",
			Summary: "List the caller's links to personas, including pending ones.", Doc: endpoint.Doc{Search: ownLinkList.Search()},
			Handle: endpoint.JSON(http.StatusOK, s.OwnLinks)},

		{Name: "personas.links.list", Method: http.MethodGet, Path: "/v1/personas/{persona_id}/links", Access: read, Tag: "Persona Links",
			Summary: "List the links between a persona and other personas.", Faults: []apierr.Kind{apierr.PersonaNotFound}, Doc: endpoint.Doc{Search: linkList.Search()},
			Handle: endpoint.JSON(http.StatusOK, s.Links)},
		{Name: "personas.links.add", Method: http.MethodPost, Path: "/v1/personas/{persona_id}/links", Access: update, Tag: "Persona Links",
			Summary: "Link another persona to this one. The relation is that of the linked persona to the persona in the path.",
			Faults:  []apierr.Kind{apierr.PersonaNotFound, apierr.PersonaLinkExists}, Handle: endpoint.JSON(http.StatusCreated, s.Link)},
		{Name: "personas.links.accept", Method: http.MethodPost, Path: "/v1/personas/{persona_id}/links/{link_id}/accept", Access: update, Tag: "Persona Links",
			Summary: "Accept a pending link between two personas, as staff or on the other side.",
			Faults:  []apierr.Kind{apierr.PersonaNotFound, apierr.PersonaLinkNotFound, apierr.PreconditionFailed}, Handle: endpoint.JSON(http.StatusOK, s.AcceptLink)},
		{Name: "personas.links.remove", Method: http.MethodDelete, Path: "/v1/personas/{persona_id}/links/{link_id}", Access: update, Tag: "Persona Links",
			Summary: "Remove a link between two personas, from either side.",
			Faults:  []apierr.Kind{apierr.PersonaNotFound, apierr.PersonaLinkNotFound, apierr.OwnPersona, apierr.PreconditionFailed}, Handle: endpoint.JSON(http.StatusOK, s.Unlink)},
	}
	for i := range rows {
		if rows[i].Method == http.MethodPut || rows[i].Name == "personas.delete" {
			rows[i].Faults = append(rows[i].Faults, apierr.RecordErased)
		}
		if m := rows[i].Method; m == http.MethodPost || m == http.MethodPut { // these may exceed the owner's quota
			rows[i].Faults = append(rows[i].Faults, apierr.QuotaExceeded)
		}
		rows[i].Limit, rows[i].Roles = ratelimit.Private, []string{access.Advisor, access.Customer}
	}
	return rows
}

// OneInput is the id of a persona.
type OneInput struct {
	ID string `path:"persona_id"`
}

// ListInput contains the parameters of a list.
type ListInput struct {
	Query list.Params `query:"*"`
	Text  list.Words  `query:"q"`
}

// Validate checks the searched text.
func (in *ListInput) Validate(v *apierr.Fields) { in.Text.Validate(v) }

// CreateInput contains the data of a new persona. Names and date of birth are required.
type CreateInput struct {
	FirstName   string         `json:"first_name" maxLength:"100" doc:"- for a person with one name only, which is the last name."`
	LastName    string         `json:"last_name" maxLength:"100"`
	DateOfBirth string         `json:"date_of_birth" format:"date"`
	DateOfDeath *string        `json:"date_of_death" format:"date"`
	Nationality *string        `json:"nationality" pattern:"^[A-Z]{3}$"`
	HashID      *string        `json:"hash_id" format:"-"`
	Active      *bool          `json:"active"`
	Metadata    jsontext.Value `json:"metadata"`

	persona Persona
}

// Validate checks all data and prepares the persona. It compares dates with the day of the request.
func (in *CreateInput) Validate(ctx context.Context, v *apierr.Fields) {
	in.persona = personas.Parse(v, in, Persona{Active: in.Active == nil || *in.Active})
	in.persona.checkDates(v, types.DateOf(endpoint.Of(ctx).Now.UTC()))
}

func (p Persona) checkDates(v *apierr.Fields, today types.Date) {
	if p.DateOfBirth.After(today) {
		v.Add("date_of_birth", "invalid.date_future")
	}
	switch {
	case p.DateOfDeath.IsZero():
	case p.DateOfDeath.After(today):
		v.Add("date_of_death", "invalid.date_future")
	case !p.DateOfBirth.IsZero() && p.DateOfDeath.Before(p.DateOfBirth):
		v.Add("date_of_death", "personas.death_before_birth")
	}
}

// UpdateInput contains the new data of a persona, which replace the old data. Missing optional members are removed, except
// metadata and active, which keep their values.
type UpdateInput struct {
	ID          string                            `path:"persona_id"`
	FirstName   string                            `json:"first_name" maxLength:"100"`
	LastName    string                            `json:"last_name" maxLength:"100"`
	DateOfBirth string                            `json:"date_of_birth" format:"date"`
	DateOfDeath *string                           `json:"date_of_death" format:"date"`
	Nationality *string                           `json:"nationality" pattern:"^[A-Z]{3}$"`
	HashID      *string                           `json:"hash_id" format:"-"`
	Active      *bool                             `json:"active"`
	Metadata    endpoint.Optional[jsontext.Value] `json:"metadata"`
}

// Validate checks all data.
func (in *UpdateInput) Validate(ctx context.Context, v *apierr.Fields) {
	personas.Parse(v, in, Persona{}).checkDates(v, types.DateOf(endpoint.Of(ctx).Now.UTC()))
}

// apply returns the persona with the new data, which Validate has checked.
func (in UpdateInput) apply(before Persona) Persona {
	p := personas.Parse(&apierr.Fields{}, &in, before)
	if in.Active != nil {
		p.Active = *in.Active
	}
	return p
}

// Lengths in characters.
const (
	maxName   = 100
	maxHashID = 256
)

// linked is the relation of a user to the personas linked to them. Pending links have no effect.
var linked = records.Relation{
	Name: access.RelationLinked, Allows: access.Read, Tables: []string{"persona_users.persona_id"},
	SQL:   "id IN (SELECT persona_id FROM persona_users WHERE user_id = $1 AND accepted_at IS NOT NULL)",
	Users: "SELECT user_id FROM persona_users WHERE persona_id = $1 AND accepted_at IS NOT NULL",
}

// firstName is the rule for the first name.
func firstName(v *apierr.Fields, name, text string) string {
	return types.FirstName(validate.Required(v, name, text, maxName))
}

// personas declares the record type.
var personas = recordtype.New(recordtype.Declaration[Persona]{
	Type: access.Personas, From: "personas", Missing: apierr.PersonaNotFound, Relations: []records.Relation{records.Creator(access.Personas, "personas"), linked},
	Holds:   "names, dates, nationality and metadata of a natural person",
	Section: personal.About{Name: "persona", Kind: personal.Persona}, Subject: "id",
	ListHead: true,
	Columns: []recordtype.Column{
		{Name: "first_name", Personal: "''", Parse: firstName, Words: recordtype.Title, Folded: true, Sorted: true, Weighs: true,
			Field: &list.Field{Type: list.Text}},
		{Name: "last_name", Personal: "''", Parse: recordtype.RequiredLine(maxName), Words: recordtype.Title, Folded: true, Sorted: true, Weighs: true,
			Field: &list.Field{Type: list.Text, Index: list.ThenID}},
		// A date of birth is required; this one stands for none.
		{Name: "date_of_birth", Personal: "'1900-01-01'", Parse: recordtype.Required(recordtype.Parsed(types.ParseDate)), Field: &list.Field{Type: list.Date}},
		{Name: "date_of_death", Personal: "NULL", Parse: recordtype.Given(types.ParseDate), Field: &list.Field{Type: list.Date, Null: true}},
		{Name: "nationality", Personal: "NULL", Parse: recordtype.Given(types.ParseCountry), Field: &list.Field{Type: list.Text, Null: true}},
		{Name: "hash_id", Personal: "NULL", Parse: recordtype.Line(maxHashID), Field: &list.Field{Type: list.Text, Key: "hash_id", Fold: exactly, Null: true}},
		{Name: "active", Personal: "FALSE", Field: &list.Field{Type: list.Bool, Index: list.ThenCreated}},
		{Name: "metadata", Personal: "'{}'", Parse: recordtype.JSON, Weighs: true},
		{Name: "identity_proven", Public: "whether staff wrote the names"},
	},
	Hit: func(p Persona) find.Hit {
		return find.Hit{Title: types.FullName(p.FirstName, p.LastName), Subtitle: p.DateOfBirth.String()}
	},
	Record: func(p Persona) store.Record { return audited(p, nil, nil) },
})

// exactly returns a searched hash unchanged, because hashes are case-sensitive.
func exactly(text string) string { return text }
