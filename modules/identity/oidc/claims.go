package oidc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	goidc "github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/oauth2"

	"kontor/modules/kit/types"
	"kontor/store"
)

const (
	leeway      = time.Minute      // between the clocks of the provider and of Kontor
	maxTokenAge = 10 * time.Minute // an ID token comes from the provider at once
	maxToken    = 32 << 10
	maxSubject  = 255 // OpenID Connect Core 1.0, section 2
	maxMethods  = 10
	maxMethod   = 20
	maxRoles    = 1000
	maxRole     = 256
)

// statement is what the provider states about a user. It is also the content of one-time codes.
type statement struct {
	Issuer   string     `json:"issuer"`
	Subject  string     `json:"subject"`
	Email    string     `json:"email"` // empty unless the provider has verified it
	Name     string     `json:"name"`
	Language string     `json:"language"`
	Methods  []string   `json:"methods"`  // authentication methods (RFC 8176)
	Class    string     `json:"class"`    // the provider's own name of the assurance; it is recorded, not interpreted
	At       store.Time `json:"at"`       // of the authentication at the provider; 0: unknown
	Roles    []string   `json:"-"`        // values of the roles claim
	Identity string     `json:"identity"` // id of the identity; empty for a link
}

// members are the claims of a token or of the user info, by name. The decoder rejects repeated names.
type members map[string]jsontext.Value

var errClaims = errors.New("the claims are not acceptable")

func wrongClaim(name string) error { return fmt.Errorf("%w: %s", errClaims, name) }

// readClaim decodes a claim. ok is false for a missing or null one.
func readClaim[T any](m members, name string) (value T, ok bool, err error) {
	raw, given := m[name]
	if !given || string(raw) == "null" {
		return value, false, nil
	}
	if err := json.Unmarshal(raw, &value); err != nil {
		return value, false, wrongClaim(name)
	}
	return value, true, nil
}

// readTime decodes a NumericDate (RFC 7519, section 2).
func readTime(claims members, name string) (at store.Time, given bool, err error) {
	seconds, given, err := readClaim[float64](claims, name)
	const latest = 253402300799 // the end of the year 9999
	if err != nil || given && (seconds < 0 || seconds > latest) {
		return 0, false, wrongClaim(name)
	}
	return store.Time(int64(seconds) * 1000), given, nil
}

// fill reads the claims about the user. Claims of a wrong type are an error: the provider is not configured as assumed.
func (s *Service) fill(st *statement, claims members) (err error) {
	email, _, err := readClaim[string](claims, "email")
	if err != nil {
		return err
	}
	verified, err := readVerified(claims)
	if err != nil {
		return err
	}
	if parsed, err := types.ParseEmail(email); err == nil && verified {
		st.Email = parsed.String()
	}
	if st.Name, _, err = readClaim[string](claims, "name"); err != nil {
		return err
	}
	if st.Language, _, err = readClaim[string](claims, "locale"); err != nil {
		return err
	}
	if st.Class, _, err = readClaim[string](claims, "acr"); err != nil {
		return err
	}
	if st.Methods, err = readMethods(claims); err != nil {
		return err
	}
	st.Roles, err = s.readRoles(claims)
	return err
}

// readVerified decodes email_verified. Some providers send a text.
func readVerified(claims members) (bool, error) {
	if text, _, err := readClaim[string](claims, "email_verified"); err == nil {
		return text == "true", nil
	}
	verified, _, err := readClaim[bool](claims, "email_verified")
	return verified, err
}

// readMethods decodes amr. Values that RFC 8176 could not contain are left out.
func readMethods(claims members) ([]string, error) {
	all, _, err := readClaim[[]string](claims, "amr")
	if err != nil {
		return nil, err
	}
	var methods []string
	for _, m := range all {
		harmless := m != "" && len(m) <= maxMethod && !strings.ContainsFunc(m, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
		if harmless && !slices.Contains(methods, m) && len(methods) < maxMethods {
			methods = append(methods, m)
		}
	}
	return methods, nil
}

// findClaim returns a claim by its name, or by a path with dots such as realm_access.roles.
func findClaim(claims members, name string) (jsontext.Value, bool) {
	if value, ok := claims[name]; ok {
		return value, true
	}
	first, rest, nested := strings.Cut(name, ".")
	if !nested {
		return nil, false
	}
	var inner members
	if value, ok := claims[first]; !ok || json.Unmarshal(value, &inner) != nil {
		return nil, false
	}
	return findClaim(inner, rest)
}

// readRoles decodes the roles claim: a text or an array of texts. A missing one counts as no roles.
func (s *Service) readRoles(claims members) ([]string, error) {
	raw, given := findClaim(claims, s.options.RolesClaim)
	if !given || s.options.RolesClaim == "" || string(raw) == "null" {
		return nil, nil
	}
	var all []string
	if err := json.Unmarshal(raw, &all); err != nil {
		var one string
		if err := json.Unmarshal(raw, &one); err != nil {
			return nil, wrongClaim("the roles")
		}
		all = []string{one}
	}
	if len(all) > maxRoles || slices.ContainsFunc(all, func(r string) bool { return len(r) > maxRole }) {
		return nil, wrongClaim("the roles")
	}
	return all, nil
}

// verify checks the ID token of a token response (OpenID Connect Core 1.0, section 3.1.3.7) and returns what it states.
func (s *Service) verify(ctx context.Context, d *discovered, token *oauth2.Token, nonce string) (statement, error) {
	raw, _ := token.Extra("id_token").(string)
	if raw == "" || len(raw) > maxToken {
		return statement{}, errors.New("the provider sent no ID token, or one that is too long")
	}
	checked, err := d.verifyToken(ctx, raw)
	if err != nil {
		return statement{}, err
	}
	var claims members
	if err := checked.Claims(&rawMembers{&claims}); err != nil {
		return statement{}, fmt.Errorf("%w: %w", errClaims, err)
	}
	if checked.Nonce == "" || !equal(checked.Nonce, nonce) {
		return statement{}, wrongClaim("nonce")
	}
	if err := s.checkParty(claims, checked.Audience); err != nil {
		return statement{}, err
	}
	at, err := checkTimes(claims, s.db.Now())
	if err != nil {
		return statement{}, err
	}
	if checked.AccessTokenHash != "" {
		if err := checked.VerifyAccessToken(token.AccessToken); err != nil {
			return statement{}, wrongClaim("at_hash")
		}
	}
	if !isSubject(checked.Subject) {
		return statement{}, wrongClaim("sub")
	}
	if err := s.addUserInfo(ctx, d, token, checked.Subject, claims); err != nil {
		return statement{}, err
	}
	st := statement{Issuer: s.options.Issuer, Subject: checked.Subject, At: at}
	return st, s.fill(&st, claims)
}

// rawMembers decodes claims with the decoder of this project.
type rawMembers struct{ into *members }

// UnmarshalJSON decodes the claims.
func (r *rawMembers) UnmarshalJSON(data []byte) error { return json.Unmarshal(data, r.into) }

// checkParty checks the authorized party. It is required when the token has other audiences, too.
func (s *Service) checkParty(claims members, audience []string) error {
	party, given, err := readClaim[string](claims, "azp")
	if err != nil || given && party != s.options.ClientID || !given && len(audience) != 1 {
		return wrongClaim("azp")
	}
	return nil
}

// checkTimes compares the times of a token with the clock of the store. It returns the time of the authentication; 0: unknown.
func checkTimes(claims members, now store.Time) (at store.Time, err error) {
	expires, given, err := readTime(claims, "exp")
	if err != nil || !given || now >= expires.Add(leeway) {
		return 0, wrongClaim("exp")
	}
	issued, given, err := readTime(claims, "iat")
	if err != nil || !given || issued > now.Add(leeway) || now >= issued.Add(maxTokenAge+leeway) {
		return 0, wrongClaim("iat")
	}
	if from, given, err := readTime(claims, "nbf"); err != nil || given && from > now.Add(leeway) {
		return 0, wrongClaim("nbf")
	}
	at, _, err = readTime(claims, "auth_time")
	if err != nil || at > now.Add(leeway) {
		return 0, wrongClaim("auth_time")
	}
	return min(at, now), nil
}

func isSubject(text string) bool {
	return text != "" && len(text) <= maxSubject && !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' })
}

// addUserInfo adds claims that the ID token lacks from the user info endpoint: some providers state addresses and groups only
// there (OpenID Connect Core 1.0, section 5.4).
func (s *Service) addUserInfo(ctx context.Context, d *discovered, token *oauth2.Token, subject string, claims members) error {
	_, email := claims["email"]
	_, roles := findClaim(claims, s.options.RolesClaim)
	if d.UserInfoEndpoint == "" || email && (roles || s.options.RolesClaim == "") {
		return nil
	}
	info, err := d.provider.UserInfo(goidc.ClientContext(ctx, s.provider.client), oauth2.StaticTokenSource(token))
	if err != nil {
		return fmt.Errorf("read the user info: %w", err)
	}
	if info.Subject != subject {
		return wrongClaim("sub of the user info")
	}
	var more members
	if err := info.Claims(&rawMembers{&more}); err != nil {
		return fmt.Errorf("%w: user info: %w", errClaims, err)
	}
	if !email {
		delete(claims, "email_verified") // it must come from the same place as the address
	}
	for name, value := range more {
		if _, known := claims[name]; !known && !isProtocol(name) {
			claims[name] = value
		}
	}
	return nil
}

// isProtocol reports whether a claim belongs to the ID token. The user info does not state such claims.
func isProtocol(name string) bool {
	return slices.Contains([]string{"iss", "aud", "azp", "exp", "iat", "nbf", "nonce", "at_hash", "amr", "acr", "auth_time"}, name)
}
