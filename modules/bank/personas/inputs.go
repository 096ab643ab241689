package personas

import (
	"context"

	"github.com/go-json-experiment/json/jsontext"

	"kontor/modules/kit/list"
	"kontor/modules/kit/types"
	"kontor/server/apierr"
	"kontor/server/endpoint"
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
