package settings

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxClientID     = 255
	maxClaim        = 100
	maxProviderName = 40
	maxRoleMap      = 200
)

// OIDC configures the sign-in of staff with the operator's OpenID Connect provider; without Issuer it is off.
type OIDC struct {
	Issuer       string
	ClientID     string
	ClientSecret Secret // empty: a public client
	Name         string // on the button; empty: the host of the issuer
	Scopes       []string
	RolesClaim   string
	RoleMap      []MappedRole
	CreateUsers  bool
}

// MappedRole states that users with a value of the roles claim hold a role.
type MappedRole struct {
	Claim string // value of the claim
	Role  string // name of the role
}

// check checks the rules that involve several settings of the group.
func (o OIDC) check() error {
	switch {
	case o.Issuer == "" && (o.ClientID != "" || o.ClientSecret != "" || len(o.RoleMap) > 0 || o.CreateUsers):
		return errors.New("auth.oidc.issuer must be set together with the other settings of auth.oidc")
	case o.Issuer != "" && o.ClientID == "":
		return errors.New("auth.oidc.client_id must be set together with auth.oidc.issuer")
	case len(o.RoleMap) > 0 && o.RolesClaim == "":
		return errors.New("auth.oidc.roles_claim must be set together with auth.oidc.role_map")
	case o.CreateUsers && len(o.RoleMap) == 0:
		return errors.New("auth.oidc.role_map must be set together with auth.oidc.create_users: a user without a role could not do anything")
	}
	return nil
}

// issuerURL is the URL of an issuer. It keeps a final slash, because issuers are compared character by character.
var issuerURL = text("URL", func(raw string) (string, error) {
	u, ok := parseURL(raw, "http", "https")
	if !ok || u.User != nil || strings.ContainsAny(raw, "?#") {
		return "", errors.New("must be a URL that begins with https://, without user, query and fragment")
	}
	if u.Scheme == "http" && !local(u) {
		return "", errors.New("must begin with https://: only a provider on this machine may be reached by http://")
	}
	return raw, nil
})

// visible accepts texts of visible ASCII characters.
func visible(name string, longest int) kind[string] {
	return text(name, func(raw string) (string, error) {
		if raw == "" || len(raw) > longest || strings.ContainsFunc(raw, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return "", fmt.Errorf("must have at most %d visible ASCII characters and no spaces", longest)
		}
		return raw, nil
	})
}

var providerName = text("name", func(raw string) (string, error) {
	if !utf8.ValidString(raw) || utf8.RuneCountInString(raw) > maxProviderName || strings.TrimSpace(raw) != raw ||
		strings.ContainsFunc(raw, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return "", fmt.Errorf("must have at most %d printable characters and no outer spaces", maxProviderName)
	}
	return raw, nil
})

// scopes parses scopes of OAuth 2.0 (RFC 6749, section 3.3). The scope openid is required.
var scopes = func() kind[[]string] {
	k := list("scopes", func(raw string) (string, error) {
		if strings.ContainsFunc(raw, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }) {
			return "", errors.New("must be scopes, such as openid, separated by commas; " + strconv.Quote(shorten(raw)) + " is not a scope")
		}
		return raw, nil
	}, func(s string) string { return s })
	parse := k.parse
	k.parse = func(raw string) ([]string, error) {
		all, err := parse(raw)
		if err == nil && !slices.Contains(all, "openid") {
			err = errors.New("must contain openid")
		}
		return all, err
	}
	return k
}()

// roleMap parses pairs of a value of the claim and a role, separated by commas. Values and roles may contain spaces, but no
// commas; the last equals sign separates the two, because values may be names of a directory, such as cn=admins.
var roleMap = kind[[]MappedRole]{
	name: "pairs",
	list: true,
	parse: func(raw string) ([]MappedRole, error) {
		var all []MappedRole
		for pair := range strings.SplitSeq(raw, ",") {
			if pair = strings.TrimSpace(pair); pair == "" {
				continue
			}
			at := strings.LastIndexByte(pair, '=')
			if at < 0 || strings.TrimSpace(pair[:at]) == "" || strings.TrimSpace(pair[at+1:]) == "" ||
				!utf8.ValidString(pair) || strings.ContainsFunc(pair, unicode.IsControl) {
				return nil, errors.New("must be pairs such as bank-admins=Administrator, separated by commas; " + strconv.Quote(shorten(pair)) + " is none")
			}
			all = append(all, MappedRole{Claim: strings.TrimSpace(pair[:at]), Role: strings.TrimSpace(pair[at+1:])})
		}
		if len(all) > maxRoleMap {
			return nil, fmt.Errorf("must have at most %d pairs", maxRoleMap)
		}
		return all, nil
	},
	show: func(all []MappedRole) string { return strings.Join(pairs(all), ",") },
	json: func(all []MappedRole) any { return pairs(all) },
}

func pairs(all []MappedRole) []string {
	texts := make([]string, len(all))
	for i, m := range all {
		texts[i] = m.Claim + "=" + m.Role
	}
	return texts
}
