package auth

import (
	"context"
	"net/http"
	"unicode/utf8"

	"kontor/modules/kit/list"
	"kontor/modules/kit/validate"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
	"kontor/store"
)

// maxScopes is the number of scopes that an API key may have.
const maxScopes = 100

// maxLoginValue is longer than any credential value.
const maxLoginValue = 320

// Endpoints returns the rows of the module.
func (s *Service) Endpoints() []endpoint.Endpoint {
	everybody := []string{access.Advisor, access.Customer, access.Registrant}
	users := []string{access.Advisor, access.Customer}
	rows := []endpoint.Endpoint{
		// Callers of these two have no access token yet.
		{Name: "auth.sign_in", Method: http.MethodPost, Path: "/authenticate", Access: access.Public, Limit: ratelimit.Public,
			Summary: "Sign in.",
			Faults:  []apierr.Kind{apierr.InvalidCredentials, apierr.LockedOut},
			Doc: endpoint.Doc{Headers: []string{endpoint.DeviceHeader, endpoint.TokenHeader}, Answers: []endpoint.Answer{
				{Status: http.StatusOK, Body: Tokens{}},
				{Status: http.StatusAccepted, Says: "The password is right; complete the sign-in with a second factor.", Body: NextStep{}},
			}},
			Handle: endpoint.JSON(http.StatusOK, s.signIn)},
		// Public: the code authenticates. The server hides the address from other machines (server/local.go).
		{Name: "auth.sign_in_by_link", Method: http.MethodPost, Path: "/authenticate/local", Access: access.Public, Limit: ratelimit.Public,
			Summary: "Sign in with the link of kontor open, on the machine of the server.",
			Faults:  []apierr.Kind{apierr.ChallengeExpired, apierr.InvalidCredentials, apierr.NotFound},
			Doc: endpoint.Doc{Headers: []string{endpoint.DeviceHeader, endpoint.TokenHeader}, Answers: []endpoint.Answer{
				{Status: http.StatusOK, Body: Tokens{}},
				{Status: http.StatusAccepted, Says: "The link is right; complete the sign-in with a second factor.", Body: NextStep{}},
			}},
			Handle: endpoint.JSON(http.StatusOK, s.signInByLink)},
		{Name: "auth.refresh", Method: http.MethodPost, Path: "/v1/token/refresh", Access: access.Public, Limit: ratelimit.Public,
			Summary: "Refresh the tokens of a session.",
			Faults:  []apierr.Kind{apierr.InvalidRefresh},
			Handle:  endpoint.JSON(http.StatusOK, s.refresh)},
		{Name: "auth.logout", Method: http.MethodPost, Path: "/v1/logout", PeopleOnly: true, Access: access.Own, Roles: everybody,
			Summary: "Sign out.", WithoutFactor: true, Handle: endpoint.JSON(http.StatusOK, s.logout)},
		{Name: "auth.reauthenticate", Method: http.MethodPost, Path: "/v1/users/{id}/reauthenticate", Subject: access.SelfIn("id"), PeopleOnly: true, Access: access.Own, Roles: everybody,
			Summary: "Authenticate again within a session.", WithoutFactor: true, Doc: endpoint.Doc{Headers: []string{endpoint.DeviceHeader}},
			Faults: []apierr.Kind{apierr.UserNotFound, apierr.LockedOut, apierr.MethodOnTrial},
			Handle: endpoint.JSON(http.StatusOK, s.reauthenticate)},
		{Name: "auth.reauthenticate_options", Method: http.MethodPost, Path: "/v1/users/{id}/reauthenticate/options", Subject: access.SelfIn("id"), PeopleOnly: true, Access: access.Own, Roles: everybody,
			Summary: "List the ways to authenticate again within a session.", WithoutFactor: true, Doc: endpoint.Doc{Headers: []string{endpoint.DeviceHeader}},
			Faults: []apierr.Kind{apierr.UserNotFound},
			Handle: endpoint.JSON(http.StatusOK, s.reauthenticateOptions)},
		// Public: its callers may not be able to sign in. The token of the link authenticates them, for this change only.
		{Name: "auth.undo", Method: http.MethodPost, Path: "/authenticate/undo", Access: access.Public, Limit: ratelimit.Public,
			Summary: "Remove a new way to sign in with the link of the message about it.",
			Faults:  []apierr.Kind{apierr.UndoInvalid},
			Handle:  endpoint.JSON(http.StatusOK, s.undo)},
		{Name: "auth.sessions", Method: http.MethodGet, Path: "/v1/users/{id}/sessions", Roles: users,
			Access: access.On(access.Sessions, access.Read), Summary: "List the sessions of a user.",
			Faults: []apierr.Kind{apierr.UserNotFound}, Doc: endpoint.Doc{Search: sessionList.Search()},
			Handle: endpoint.JSON(http.StatusOK, s.listSessions)},
		{Name: "auth.end_session", Method: http.MethodDelete, Path: "/v1/users/{id}/sessions/{session_id}", Subject: access.UserIn("id"), Roles: users,
			Access: access.On(access.Sessions, access.Delete), Summary: "End a session.",
			Assurance: endpoint.Fresh.When("the session belongs to another user"),
			Faults:    []apierr.Kind{apierr.UserNotFound, apierr.SessionNotFound}, Handle: endpoint.JSON(http.StatusOK, s.deleteSession)},
		{Name: "auth.create_key", Method: http.MethodPost, Path: "/v1/api-keys",
			Subject: access.NoSubject("API keys hold no rights to records"),
			Access:  access.On(access.APIKeys, access.Create), Assurance: endpoint.SecondFactor, Summary: "Create an API key.",
			Handle: endpoint.JSON(http.StatusCreated, s.createKey)},
		{Name: "auth.keys", Method: http.MethodGet, Path: "/v1/api-keys",
			Access: access.On(access.APIKeys, access.Read), Summary: "List API keys.",
			Doc:    endpoint.Doc{Search: keyList.Search()},
			Handle: endpoint.JSON(http.StatusOK, s.listKeys)},
		{Name: "auth.revoke_key", Method: http.MethodDelete, Path: "/v1/api-keys/{id}",
			Subject: access.NoSubject("API keys hold no rights to records"),
			Access:  access.On(access.APIKeys, access.Delete), Assurance: endpoint.SecondFactor, Summary: "Revoke an API key.",
			Faults: []apierr.Kind{apierr.APIKeyNotFound}, Handle: endpoint.JSON(http.StatusOK, s.revokeKey)},
		// Public: the keys are public, and other services verify access tokens with them.
		{Name: "auth.public_keys", Method: http.MethodGet, Path: "/.well-known/jwks.json", Access: access.Public, Limit: ratelimit.Public,
			Summary: "Get the public keys that verify access tokens.",
			Doc: endpoint.Doc{Description: "A JSON Web Key Set (RFC 7517) with Ed25519 keys (RFC 8037). The header of an access token names its key in kid. " +
				"After a rotation, the former key stays in the set until its tokens have expired.",
				Answers: []endpoint.Answer{{Status: http.StatusOK, Media: "application/jwk-set+json", Body: jwkSet{}, Says: "The public keys."}}},
			Handle: endpoint.Raw(nil, s.servePublicKeys)},
		{Name: "auth.public", Method: http.MethodGet, Path: "/v1/public-endpoint", Access: access.APIKey,
			Summary: "Check an API key.", Handle: endpoint.JSON(http.StatusOK, s.public)},
	}
	rows = append(rows, s.factorEndpoints()...)
	for i := range rows {
		rows[i].Tag = "Authentication"
		if rows[i].Limit == ratelimit.Undecided {
			rows[i].Limit = ratelimit.Private
		}
	}
	return rows
}

type signInInput struct {
	UserID   string `json:"user_id" format:"-" example:"anna.keller@example.ch" maxLength:"320" doc:"An e-mail address, a phone number, a user name or the id of the user."`
	Password string `json:"password" format:"password"`
}

// Validate requires both members. The rules for new passwords do not apply: a password that breaks them is wrong, not
// malformed.
func (in *signInInput) Validate(v *apierr.Fields) {
	if in.UserID == "" {
		v.Add("user_id", "invalid.required")
	}
	if utf8.RuneCountInString(in.UserID) > maxLoginValue {
		v.Add("user_id", "invalid.max_length", apierr.Args{"Max": maxLoginValue})
	}
	if in.Password == "" {
		v.Add("password", "invalid.required")
	}
}

func (s *Service) signIn(ctx context.Context, in signInInput) (endpoint.Result, error) {
	tokens, step, err := s.SignIn(ctx, in.UserID, in.Password)
	if step != nil {
		return endpoint.Result{Status: http.StatusAccepted, Body: step}, err
	}
	return endpoint.Result{Body: tokens}, err
}

type refreshInput struct {
	RefreshToken string `json:"refresh_token"`
}

func (in *refreshInput) Validate(v *apierr.Fields) {
	if in.RefreshToken == "" {
		v.Add("refresh_token", "invalid.required")
	}
}

func (s *Service) refresh(ctx context.Context, in refreshInput) (Tokens, error) {
	return s.Refresh(ctx, in.RefreshToken)
}

func (s *Service) logout(ctx context.Context, _ endpoint.None) (endpoint.Message, error) {
	return endpoint.Confirm(ctx, s.options.Texts, "auth.signed_out"), s.Logout(ctx)
}

type sessionsInput struct {
	UserID string      `path:"id"`
	Query  list.Params `query:"*"`
}

func (s *Service) listSessions(ctx context.Context, in sessionsInput) (list.Page[Session], error) {
	return s.Sessions(ctx, in.UserID, in.Query)
}

type sessionInput struct {
	UserID    string `path:"id"`
	SessionID string `path:"session_id"`
}

func (s *Service) deleteSession(ctx context.Context, in sessionInput) (endpoint.Message, error) {
	return endpoint.Confirm(ctx, s.options.Texts, "auth.session_ended"), s.EndSession(ctx, in.UserID, in.SessionID)
}

type createKeyInput struct {
	Name    string      `json:"name" maxLength:"100" example:"Registration form"`
	Scopes  []string    `json:"scopes" required:"false" maxItems:"100" example:"users.register" doc:"Names of the endpoints that the key may call. Without scopes, or with *, it may call all that accept a key."`
	Expires *store.Time `json:"expires_at" doc:"When the key expires; without it, never."`
}

func (in *createKeyInput) Validate(v *apierr.Fields) {
	in.Name = validate.Required(v, "name", in.Name, maxKeyName)
	if len(in.Scopes) > maxScopes {
		v.Add("scopes", "invalid.max_items", apierr.Args{"Max": maxScopes})
	}
}

func (s *Service) createKey(ctx context.Context, in createKeyInput) (NewAPIKey, error) {
	return s.CreateKey(ctx, in.Name, KeyLimits{Scopes: in.Scopes, Expires: in.Expires})
}

type keysInput struct {
	Query list.Params `query:"*"`
}

func (s *Service) listKeys(ctx context.Context, in keysInput) (list.Page[APIKey], error) {
	return s.Keys(ctx, in.Query)
}

type keyInput struct {
	ID string `path:"id"`
}

func (s *Service) revokeKey(ctx context.Context, in keyInput) (endpoint.Message, error) {
	return endpoint.Confirm(ctx, s.options.Texts, "auth.key_revoked"), s.RevokeKey(ctx, in.ID)
}

func (s *Service) public(ctx context.Context, _ endpoint.None) (endpoint.Message, error) {
	return endpoint.Confirm(ctx, s.options.Texts, "auth.key_valid"), nil
}
