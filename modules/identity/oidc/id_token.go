package oidc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	goidc "github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-json-experiment/json"
	"golang.org/x/oauth2"

	"kontor/store"
)

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
