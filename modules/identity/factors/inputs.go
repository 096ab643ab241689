package factors

import (
	"github.com/go-json-experiment/json/jsontext"

	"kontor/modules/kit/factor"
	"kontor/modules/kit/list"
	"kontor/modules/kit/signin"
	"kontor/modules/kit/validate"
	"kontor/server/apierr"
)

type listInput struct {
	UserID string      `path:"id"`
	Query  list.Params `query:"*"`
}

type enrolInput struct {
	UserID string `path:"id"`
	Type   string `json:"type" enum:"passkey,totp,recovery_codes" example:"totp" required:"true"`
	Name   string `json:"name" maxLength:"100" example:"Phone" doc:"How the user recognises the factor; by default a name for the type."`
	signin.Proof
}

// Validate checks the type and the name.
func (in *enrolInput) Validate(v *apierr.Fields) {
	validate.OneOf(v, "type", in.Type, factor.Passkey, factor.TOTP, RecoveryCodes)
	in.Name = validate.Line(v, "name", in.Name, maxName)
	in.Proof.Check(v)
}

type removeInput struct {
	UserID   string `path:"id"`
	FactorID string `path:"factor_id"`
	signin.Proof
}

// Validate checks the form of the proof.
func (in *removeInput) Validate(v *apierr.Fields) { in.Proof.Check(v) }

type renameInput struct {
	UserID   string `path:"id"`
	FactorID string `path:"factor_id"`
	Name     string `json:"name" maxLength:"100" example:"Phone" required:"true"`
}

// Validate requires a name.
func (in *renameInput) Validate(v *apierr.Fields) {
	in.Name = validate.Required(v, "name", in.Name, maxName)
}

type confirmInput struct {
	UserID   string         `path:"id"`
	FactorID string         `path:"factor_id"`
	Code     string         `json:"code" maxLength:"16" example:"287082" doc:"The code that an authenticator app shows."`
	Passkey  jsontext.Value `json:"passkey" type:"object" required:"false" example:"-" doc:"The answer of navigator.credentials.create, as PublicKeyCredential.toJSON returns it."`
	Token    string         `json:"token" maxLength:"256" example:"-" doc:"The token of the options, with a passkey."`
}

// Validate rejects a passkey that is no object. Which members are required depends on the factor.
func (in *confirmInput) Validate(v *apierr.Fields) {
	if kind := in.Passkey.Kind(); kind != 0 && kind != 'n' && kind != '{' {
		v.Add("passkey", "invalid.type")
	}
}

// check requires the members of the type of the factor.
func (in confirmInput) check(kind string) error {
	var v apierr.Fields
	required := func(field string, given bool) {
		if !given {
			v.Add(field, "invalid.required")
		}
	}
	if kind == factor.TOTP {
		required("code", in.Code != "")
	} else {
		required("passkey", in.Passkey.Kind() == '{')
		required("token", in.Token != "")
	}
	return v.Err()
}
