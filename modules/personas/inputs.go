package personas

import (
	"context"

	"github.com/go-json-experiment/json/jsontext"

	"kontor/modules/kit/list"
	"kontor/modules/kit/types"
	"kontor/modules/kit/validate"
	"kontor/server/apierr"
	"kontor/server/endpoint"
)

// Lengths in characters.
const (
	maxName   = 100
	maxHashID = 256
)

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
	FirstName   string         `json:"first_name" maxLength:"100"`
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
	in.persona = in.check(v, types.DateOf(endpoint.Of(ctx).Now.UTC()))
}

func (in *CreateInput) check(v *apierr.Fields, today types.Date) Persona {
	p := Persona{
		FirstName: validate.Required(v, "first_name", in.FirstName, maxName),
		LastName:  validate.Required(v, "last_name", in.LastName, maxName),
		Active:    in.Active == nil || *in.Active,
		Metadata:  jsontext.Value(validate.Metadata(v, "metadata", in.Metadata)),
	}
	if in.DateOfBirth == "" {
		v.Add("date_of_birth", "invalid.required")
	}
	p.DateOfBirth = validate.Parsed(v, "date_of_birth", in.DateOfBirth, types.ParseDate)
	p.DateOfDeath = parseOptional(v, "date_of_death", in.DateOfDeath, types.ParseDate)
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
	if nationality := parseOptional(v, "nationality", in.Nationality, types.ParseCountry).String(); nationality != "" {
		p.Nationality = &nationality
	}
	if in.HashID != nil {
		if hash := validate.Line(v, "hash_id", *in.HashID, maxHashID); hash != "" {
			p.HashID = &hash
		}
	}
	return p
}

// parseOptional parses a member that may be missing or null. It rejects the empty text.
func parseOptional[T any](v *apierr.Fields, field string, text *string, parse func(string) (T, error)) T {
	var zero T
	if text == nil {
		return zero
	}
	parsed, err := parse(*text)
	if err != nil {
		validate.Note(v, field, err)
		return zero
	}
	return parsed
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

	persona Persona
}

// Validate checks all data.
func (in *UpdateInput) Validate(ctx context.Context, v *apierr.Fields) {
	data := CreateInput{FirstName: in.FirstName, LastName: in.LastName, DateOfBirth: in.DateOfBirth, DateOfDeath: in.DateOfDeath,
		Nationality: in.Nationality, HashID: in.HashID, Active: in.Active, Metadata: in.Metadata.Value}
	data.Validate(ctx, v)
	in.persona = data.persona
}

// apply returns the persona with the new data.
func (in UpdateInput) apply(before Persona) Persona {
	p := in.persona
	p.ID, p.CreatedAt, p.CreatedBy = before.ID, before.CreatedAt, before.CreatedBy
	if in.Active == nil {
		p.Active = before.Active
	}
	if !in.Metadata.Given {
		p.Metadata = before.Metadata
	}
	return p
}
