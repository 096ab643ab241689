package oidc

import (
	"cmp"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	goidc "github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
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

// maxParameter is the length of a parameter that the provider sends.
const maxParameter = 4096

// rejection is the end of a sign-in that did not succeed.
type rejection struct {
	kind  apierr.Kind
	note  string // a word for the audit trail
	user  string // id; empty: unknown
	cause error  // for the log
}

// Error returns the code and the note.
func (r *rejection) Error() string { return r.kind.Code + ": " + r.note }

func reject(kind apierr.Kind, note string, cause error) *rejection {
	return &rejection{kind: kind, note: note, cause: cause}
}

// callback takes the browser back from the provider. Every outcome is a redirect to the console.
func (s *Service) callback(ctx context.Context, in callbackInput) (endpoint.Result, error) {
	if s.provider == nil {
		return endpoint.Result{}, apierr.NotFound
	}
	began, rejected := s.checkState(ctx, in)
	if rejected != nil {
		// The cookie stays: another site may have sent the browser here while a sign-in waits.
		return s.failed(ctx, rejected, "", ""), nil
	}
	forget := s.setCookie("", 0)
	st, err := s.askProvider(ctx, in, began)
	if err == nil {
		var result endpoint.Result
		if result, err = s.settle(ctx, st, began); err == nil {
			return result, nil
		}
	}
	if rejected, ok := errors.AsType[*rejection](err); ok {
		return s.failed(ctx, rejected, began.ReturnTo, forget), nil
	}
	return endpoint.Result{}, err
}

// failed reports a rejection to the log and the audit trail and returns to the console.
func (s *Service) failed(ctx context.Context, r *rejection, returnTo, cookie string) endpoint.Result {
	s.report(ctx, r)
	return s.toConsole(returnTo, memberError, r.kind.Code, cookie)
}

func (s *Service) report(ctx context.Context, r *rejection) {
	var cause string
	if r.cause != nil {
		cause = shorten(r.cause)
	}
	s.options.Log.Info("sign-in with the provider rejected", "request_id", endpoint.Of(ctx).RequestID, "reason", r.note, "cause", cause)
	endpoint.Report(ctx, endpoint.Event{Kind: endpoint.FailedSignIn, Action: "auth.oidc_failed", RecType: access.Users.Name, RecID: r.user, Note: r.note})
}

// checkState checks that this browser has begun the sign-in, a short time ago.
func (s *Service) checkState(ctx context.Context, in callbackInput) (begun, *rejection) {
	began, err := s.readBegun(ctx)
	if err != nil {
		return begun{}, reject(apierr.OIDCExpired, "browser", err)
	}
	if !equal(began.State, in.State) {
		return begun{}, reject(apierr.OIDCExpired, "state", nil)
	}
	if now := s.db.Now(); now >= began.At.Add(beginLife) || began.At > now.Add(leeway) {
		return begun{}, reject(apierr.OIDCExpired, "expired", nil)
	}
	return began, nil
}

// askProvider redeems the authorization code and returns what the provider states about the user.
func (s *Service) askProvider(ctx context.Context, in callbackInput, began begun) (statement, error) {
	release, err := s.acquire()
	if err != nil {
		return statement{}, reject(apierr.OIDCUnavailable, "busy", err)
	}
	defer release()
	limited, cancel := context.WithTimeout(ctx, s.options.Timeout) // for the provider alone
	defer cancel()
	d, err := s.provider.get(limited)
	if err != nil {
		return statement{}, reject(apierr.OIDCUnavailable, "provider", err)
	}
	// Before anything else of the answer is used: it may come from another provider (RFC 9207, section 2.4).
	if in.Issuer != s.options.Issuer && (in.Issuer != "" || d.SendsIssuer) {
		return statement{}, reject(apierr.OIDCFailed, "issuer", fmt.Errorf("the answer names another issuer or none: %.100q", in.Issuer))
	}
	if err := s.useState(ctx, began); err != nil {
		return statement{}, err
	}
	if in.Error != "" {
		return statement{}, ofProvider(in.Error)
	}
	if in.Code == "" || len(in.Code) > maxParameter {
		return statement{}, reject(apierr.OIDCFailed, "code", nil)
	}
	token, err := s.provider.exchange(limited, d, in.Code, began.Verifier)
	if err != nil {
		return statement{}, rejectedBy(err, "code")
	}
	st, err := s.verify(limited, d, token, began.Nonce)
	if err != nil {
		return statement{}, rejectedBy(err, "token")
	}
	return st, nil
}

// rejectedBy distinguishes a provider that does not answer from one whose answer is wrong.
func rejectedBy(err error, note string) *rejection {
	if isUnreachable(err) {
		return reject(apierr.OIDCUnavailable, "provider", err)
	}
	return reject(apierr.OIDCFailed, note, err)
}

// ofProvider returns the rejection for an error code of the provider. Its description is ignored: anyone can write one into an
// address.
func ofProvider(code string) *rejection {
	cause := fmt.Errorf("the provider answered %.60q", code)
	switch code {
	case "access_denied", "login_required", "interaction_required", "consent_required", "account_selection_required":
		return reject(apierr.OIDCCancelled, "cancelled", cause)
	case "temporarily_unavailable", "server_error":
		return reject(apierr.OIDCUnavailable, "provider", cause)
	}
	return reject(apierr.OIDCFailed, "provider_error", cause)
}

// useState records that the sign-in has returned. A second return is rejected, also after a restart.
func (s *Service) useState(ctx context.Context, began begun) error {
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		return tx.Run(ctx, insertState, s.hash("state", began.State), began.At.Add(beginLife+leeway))
	})
	if errors.Is(err, store.ErrDuplicate) {
		return reject(apierr.OIDCExpired, "replayed", nil)
	}
	return err
}

const (
	cookieName = "kontor-oidc"
	// beginLife is the time for a sign-in at the provider.
	beginLife = 10 * time.Minute
	// secretBytes is the length of states, nonces, codes and the secrets of browsers.
	secretBytes = 32
)

// begun is what the cookie holds while the browser is at the provider.
type begun struct {
	State    string     `json:"s"`
	Nonce    string     `json:"n"`
	Verifier string     `json:"v"` // of PKCE
	ReturnTo string     `json:"r"`
	At       store.Time `json:"a"`
	Again    bool       `json:"p,omitempty"` // for a proof, not for a sign-in
}

var errCookie = errors.New("the browser has no cookie of a sign-in, or more than one")

// newSecret returns a random text.
func newSecret() string {
	b := make([]byte, secretBytes)
	rand.Read(b) // does not fail: it would end the program
	return encode(b)
}

// equal compares secrets in constant time.
func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// secure reports whether browsers reach this installation by TLS.
func (s *Service) secure() bool { return strings.HasPrefix(s.options.BaseURL, "https://") }

// cookieName returns the name of the cookie. With the prefix, browsers reject a cookie that a sibling domain or plain HTTP has set.
func (s *Service) cookieName() string {
	if s.secure() {
		return "__Host-" + cookieName
	}
	return cookieName
}

// setCookie returns the header that stores a value in the browser for a time. An empty value deletes the cookie.
func (s *Service) setCookie(value string, life time.Duration) string {
	c := http.Cookie{ //nolint:gosec // over plain HTTP, browsers would not keep a Secure cookie
		Name: s.cookieName(), Value: value, Path: "/", HttpOnly: true, Secure: s.secure(), SameSite: http.SameSiteLaxMode,
		MaxAge: int(life / time.Second),
	}
	if value == "" {
		c.MaxAge = -1
	}
	return c.String()
}

// cookie returns the value of the cookie of a request.
func (s *Service) cookie(ctx context.Context) (string, error) {
	all, err := http.ParseCookie(endpoint.Of(ctx).Cookie)
	if err != nil {
		return "", errCookie
	}
	value, name := "", s.cookieName()
	for _, c := range all {
		if c.Name != name {
			continue
		}
		if value != "" {
			return "", errCookie // a sibling domain may have set the other
		}
		value = c.Value
	}
	if value == "" {
		return "", errCookie
	}
	return value, nil
}

// sealer returns the cipher of the cookie. Its key depends on the master key: a rotation ends the sign-ins that have begun.
func (s *Service) sealer() (cipher.AEAD, error) {
	block, err := aes.NewCipher(s.db.Keyed("oidc cookie", []byte("key")))
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// sealBegun encrypts what the browser keeps.
func (s *Service) sealBegun(b begun) (string, error) {
	plain, err := json.Marshal(b)
	if err != nil {
		return "", err
	}
	aead, err := s.sealer()
	if err != nil {
		return "", err
	}
	return encode(aead.Seal(nil, nil, plain, []byte(cookieName))), nil //nolint:gosec // the cipher makes a random nonce
}

// readBegun returns what the browser has kept, of a sign-in that was begun by this installation.
func (s *Service) readBegun(ctx context.Context) (b begun, err error) {
	value, err := s.cookie(ctx)
	if err != nil {
		return begun{}, err
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(value)
	if err != nil {
		return begun{}, err
	}
	aead, err := s.sealer()
	if err != nil {
		return begun{}, err
	}
	plain, err := aead.Open(nil, nil, sealed, []byte(cookieName))
	if err != nil {
		return begun{}, err
	}
	return b, json.Unmarshal(plain, &b)
}
