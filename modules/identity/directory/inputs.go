package directory

import (
	"errors"
	"strings"
	"unicode/utf8"

	"kontor/modules/kit/list"
	"kontor/modules/kit/signin"
	"kontor/modules/kit/types"
	"kontor/server/apierr"
	"kontor/store"
)

type userPath struct {
	UserID string `path:"id"`
}

type credentialPath struct {
	UserID       string `path:"id"`
	CredentialID string `path:"credential_id"`
}

type listInput struct {
	Role  string      `query:"role" example:"Advisor" doc:"Only users who hold the role with this name or id."`
	Query list.Params `query:"*"`
	Text  list.Words  `query:"q"`
}

// Validate checks the searched text.
func (in *listInput) Validate(v *apierr.Fields) { in.Text.Validate(v) }

type registerInput struct {
	Type     string `json:"credential_type" enum:"email,phone,username" required:"true"`
	Value    string `json:"credential_value" required:"true"`
	Password string `json:"password" format:"password" minLength:"12" maxLength:"128" required:"true"`
	Terms    bool   `json:"terms_accepted" required:"true" doc:"Must be true."`
	Privacy  bool   `json:"privacy_policy_accepted" required:"true" doc:"Must be true."`

	DisplayName string `json:"display_name" maxLength:"100" example:"Anna Keller" doc:"How others see the user. It must not resemble the name of a staff member."`

	problems *apierr.Fields
}

// Collect keeps the problems of the request: the service adds those of the password policy.
func (in *registerInput) Collect(problems *apierr.Fields) { in.problems = problems }

// check checks everything except the password. The service calls it together with the password policy, so that one response
// reports all problems.
func (in *registerInput) check(v *apierr.Fields) identifier {
	id := checkIdentifier(v, "credential_type", "credential_value", in.Type, in.Value)
	if !in.Terms {
		v.Add("terms_accepted", "invalid.accepted")
	}
	if !in.Privacy {
		v.Add("privacy_policy_accepted", "invalid.accepted")
	}
	in.DisplayName = checkDisplayName(v, in.DisplayName)
	return id
}

type addCredentialInput struct {
	UserID string `path:"id"`
	Type   string `json:"credential_type" enum:"email,phone,username"`
	Value  string `json:"credential_value" required:"true"`
	signin.Proof

	id identifier
}

// Validate checks type and value, and the form of the proof.
func (in *addCredentialInput) Validate(v *apierr.Fields) {
	in.Proof.Check(v)
	in.id = checkIdentifier(v, "credential_type", "credential_value", in.Type, in.Value)
}

// checkIdentifier parses type and value of a credential and adds what is wrong with them to v.
func checkIdentifier(v *apierr.Fields, typeField, valueField, kind, text string) identifier {
	switch kind {
	case Email, Phone, Username:
	case "":
		v.Add(typeField, "invalid.required")
		required(v, valueField, text)
		return identifier{}
	default:
		v.Add(typeField, "invalid.one_of", apierr.Args{"Values": strings.Join([]string{Email, Phone, Username}, ", ")})
		required(v, valueField, text)
		return identifier{}
	}
	id, err := parseIdentifier(kind, text)
	if rule, ok := errors.AsType[types.Rule](err); ok {
		key, _ := rule.Text()
		v.Add(valueField, key)
	}
	return id
}

type deleteCredentialInput struct {
	CredentialID string `path:"cred_id"`
}

type validateInput struct {
	UserID       string `path:"id"`
	CredentialID string `path:"credential_id"`
	OTP          string `json:"otp" pattern:"^[0-9]{6}$"`
	signin.Proof
}

// Validate requires a code. A malformed code is a wrong code, not malformed input.
func (in *validateInput) Validate(v *apierr.Fields) {
	required(v, "otp", in.OTP)
	in.Proof.Check(v)
}

type resendOutput struct {
	Message   string     `json:"message"`
	ExpiresAt store.Time `json:"expires_at"`
}

type updateInput struct {
	UserID   string  `path:"id"`
	Language *string `json:"language" enum:"en,de,fr,it"`
	Status   *string `json:"status" enum:"active,disabled" doc:"For administrators."`

	DisplayName *string `json:"display_name" maxLength:"100" example:"Anna Keller" doc:"For the user and administrators; an empty text removes it. A user must not choose a name that resembles that of a staff member."`
	displayName string
}

// Validate checks the members that are present.
func (in *updateInput) Validate(v *apierr.Fields) {
	if in.DisplayName != nil {
		in.displayName = checkDisplayName(v, *in.DisplayName)
	}
	if in.Language != nil {
		if _, err := types.ParseLanguage(*in.Language); err != nil {
			v.Add("language", "invalid.language")
		}
	}
	if in.Status != nil {
		switch *in.Status {
		case Pending, Active, Disabled:
		default:
			v.Add("status", "invalid.one_of", apierr.Args{"Values": Active + ", " + Disabled})
		}
	}
}

// beyondLanguage reports whether the input changes more than the language of the caller.
func (in *updateInput) beyondLanguage(callerID string) bool {
	return in.UserID != callerID || in.Status != nil || in.DisplayName != nil
}

type passwordInput struct {
	UserID      string `path:"id"`
	OldPassword string `json:"old_password" format:"password" required:"false" doc:"Required from users who change their own password."`
	Password    string `json:"password" format:"password" minLength:"12" maxLength:"128" required:"true"`
	RemoveNew   *bool  `json:"remove_new" doc:"Whether to remove every way to sign in that was added in the last 24 hours or is not confirmed. By default only with the password of another user."`
}

type rolesInput struct {
	UserID string    `path:"id"`
	Roles  *[]string `json:"roles" maxItems:"50" example:"Customer" doc:"Names or ids of all roles that the user shall have."`
	// nil keeps the terms of roles that the user has
	Terms *[]termInput `json:"terms" required:"false" nullable:"false" maxItems:"50" doc:"When the user shall hold roles. Roles without an entry begin at once and do not end. Without terms, roles that the user has keep theirs, and roles that begin later stay."`
}

// Validate requires a list, which may be empty.
func (in *rolesInput) Validate(v *apierr.Fields) {
	if in.Roles == nil {
		v.Add("roles", "invalid.required")
	}
}

// maxLogin is longer than any credential.
const maxLogin = 320

type recoveryInput struct {
	Value string `json:"credential_value"`

	keys loginKeys
}

// Validate accepts malformed values: they get the response of unknown credentials.
func (in *recoveryInput) Validate(v *apierr.Fields) { in.keys = checkLogin(v, in.Value) }

type completeRegistrationInput struct {
	Value    string `json:"credential_value" required:"true"`
	OTP      string `json:"otp" required:"true"`
	Password string `json:"password" format:"password" required:"true" doc:"The password that was chosen at the registration."`

	keys loginKeys
}

// Validate requires all members. Malformed values and codes are wrong, not malformed input.
func (in *completeRegistrationInput) Validate(v *apierr.Fields) {
	required(v, "otp", in.OTP)
	if in.Password == "" {
		v.Add("password", "invalid.required")
	}
	in.keys = checkLogin(v, in.Value)
}

type completeRecoveryInput struct {
	Value    string `json:"credential_value" required:"true" minLength:"1" maxLength:"320"`
	OTP      string `json:"otp" required:"true" minLength:"1"`
	Password string `json:"password" format:"password" minLength:"12" maxLength:"128" required:"true"`

	RemoveNew *bool `json:"remove_new" doc:"Whether to remove every way to sign in that was added in the last 24 hours or is not confirmed: an attacker may have added it. True by default."`

	problems *apierr.Fields
}

// Collect keeps the problems of the request: the service adds those of the password policy.
func (in *completeRecoveryInput) Collect(problems *apierr.Fields) { in.problems = problems }

// check requires a credential and a code. The service calls it together with the password policy.
func (in *completeRecoveryInput) check(v *apierr.Fields) loginKeys {
	required(v, "otp", in.OTP)
	return checkLogin(v, in.Value)
}

func checkLogin(v *apierr.Fields, text string) loginKeys {
	required(v, "credential_value", text)
	if utf8.RuneCountInString(text) > maxLogin {
		v.Add("credential_value", "invalid.max_length", apierr.Args{"Max": maxLogin})
		return loginKeys{}
	}
	return keysOf(text)
}

func required(v *apierr.Fields, field, text string) {
	if types.Blank(text) {
		v.Add(field, "invalid.required")
	}
}
