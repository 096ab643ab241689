package oidc

import (
	"cmp"
	"context"
	"net/url"
	"strconv"
	"strings"
	"time"

	goidc "github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"kontor/server/apierr"
	"kontor/server/endpoint"
)

const (
	beginPath    = "/authenticate/oidc"
	callbackPath = beginPath + "/callback"
	signInScreen = "/signin"

	// signInAge is the age of an authentication at the provider for which Kontor asks. An older one makes the session stale.
	signInAge = 10 * time.Minute
	// maxReturnTo is the length of a path to return to, which the cookie holds.
	maxReturnTo = 512
)

// isConsolePath reports whether a text is a path of this site with an optional query, and nothing that a browser might take
// for another site: it starts with exactly one slash and consists of harmless characters.
func isConsolePath(text string) bool {
	if !strings.HasPrefix(text, "/") || strings.HasPrefix(text, "//") || len(text) > maxReturnTo {
		return false
	}
	for i := range len(text) {
		c := text[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && !strings.ContainsRune("/-_.~?&=%+:,", rune(c)) {
			return false
		}
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || !strings.HasPrefix(u.Path, "/") || strings.HasPrefix(u.Path, "//") ||
		strings.ContainsAny(u.Path, "\\\x00\r\n\t") {
		return false
	}
	for segment := range strings.SplitSeq(u.Path, "/") {
		if segment == ".." || segment == "." {
			return false
		}
	}
	return !strings.HasPrefix(u.Path, "/v1/") && !strings.HasPrefix(u.Path, "/authenticate")
}

// begin redirects the browser to the provider. It stores nothing: the cookie holds what the callback needs.
func (s *Service) begin(ctx context.Context, in beginInput) (endpoint.Result, error) {
	if s.provider == nil {
		return endpoint.Result{}, apierr.NotFound
	}
	b := begun{State: newSecret(), Nonce: newSecret(), Verifier: oauth2.GenerateVerifier(), ReturnTo: in.ReturnTo, At: s.db.Now(), Again: in.Again}
	release, err := s.acquire()
	if err != nil {
		return s.toConsole(b.ReturnTo, memberError, apierr.OIDCUnavailable.Code, ""), nil
	}
	defer release()
	d, err := s.provider.get(ctx)
	if err != nil {
		return s.toConsole(b.ReturnTo, memberError, apierr.OIDCUnavailable.Code, ""), nil
	}
	sealed, err := s.sealBegun(b)
	if err != nil {
		return endpoint.Result{}, err
	}
	age := signInAge
	options := []oauth2.AuthCodeOption{oauth2.S256ChallengeOption(b.Verifier), goidc.Nonce(b.Nonce)}
	if b.Again {
		age = 0
		options = append(options, oauth2.SetAuthURLParam("prompt", "login"))
	}
	address := d.oauth.AuthCodeURL(b.State, append(options, oauth2.SetAuthURLParam("max_age", strconv.Itoa(int(age/time.Second))))...)
	return endpoint.Result{Location: address, SetCookie: s.setCookie(sealed, beginLife)}, nil
}

// acquire returns the right to wait for the provider, or an error when too many sign-ins wait. A slow provider must not
// occupy all workers.
func (s *Service) acquire() (release func(), err error) {
	select {
	case s.running <- struct{}{}:
		return func() { <-s.running }, nil
	default:
		return nil, apierr.OIDCUnavailable
	}
}

// The members of the fragment with which a browser returns to the console.
const (
	memberCode   = "oidc_code"  // a one-time code for tokens
	memberLink   = "oidc_link"  // a one-time code for linking, after the user has signed in
	memberProof  = "oidc_proof" // a one-time code for a change within the session
	memberError  = "oidc_error" // a code of the catalogue, never a text: others could send users to a text of theirs
	memberReturn = "return_to"
)

// toConsole returns to the sign-in screen, or with a proof to the screen of the change. Servers and logs do not see a fragment. An
// empty cookie stays as it is.
func (s *Service) toConsole(returnTo, member, value, cookie string) endpoint.Result {
	fragment := url.Values{member: {value}}
	if member == memberProof {
		return endpoint.Result{Location: s.options.BaseURL + cmp.Or(returnTo, "/") + "#" + fragment.Encode(), SetCookie: cookie}
	}
	if returnTo != "" {
		fragment.Set(memberReturn, returnTo)
	}
	return endpoint.Result{Location: s.options.BaseURL + signInScreen + "#" + fragment.Encode(), SetCookie: cookie}
}
