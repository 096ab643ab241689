// Package client calls the API of a Kontor service from Go. It needs the standard library only.
//
//	kontor, err := client.New("https://bank.example")
//	err = kontor.SignIn(ctx, "anna@example.ch", password)
//	customer, err := kontor.Customers.Create(ctx, client.CustomerCreateInput{LastName: "Keller", …})
//
// All operations of the API are methods in groups, named like the operations: customers.create is Customers.Create. They are
// generated from the API document, as are the types; the command "make clients" does that.
//
//   - Sign-in: [Client.SignIn], and [SecondFactorRequired] for users with a second factor. [WithToken] takes the token of a
//     service account, [WithAPIKey] an API key. Each operation gets only the credential that it asks for.
//   - The access token is refreshed before it expires, or when the service rejects it, by one request at a time. A
//     refresh token is valid once: keep the newest tokens with [OnTokens] if the program may restart.
//   - Errors of the service are [*Error]. errors.Is compares codes: errors.Is(err, client.ErrPayerNotFound).
//   - Requests that the service has certainly not carried out are repeated a few times, after its Retry-After. After a network error, only
//     requests without effects and those with an Idempotency-Key are repeated; operations that accept a key get one.
//   - Lists: List returns a page, All returns the rows of all pages. [Is] makes the value of a search.
//   - Event streams reconnect, and continue after the last frame.
//   - Redirects are not followed, and answers are read up to a limit.
//
// A Client may be used by several goroutines.
package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Client calls one service as one caller. [New] makes one.
type Client struct {
	API

	base    *url.URL
	http    *http.Client
	config  config
	session *session
}

// config is what options set.
type config struct {
	transport http.RoundTripper
	token     string // fixed, such as that of a service account
	apiKey    string
	tokens    TokenSet
	onTokens  func(TokenSet)
	device    string
	language  string
	agent     string
	timeout   time.Duration
	retries   int
	firstWait time.Duration
	maxWait   time.Duration
	maxAnswer int64
	idle      time.Duration
}

// Option changes a new Client.
type Option func(*config)

// WithToken sends a fixed bearer token, such as that of a service account. There is no sign-in then, and no refresh.
func WithToken(token string) Option { return func(c *config) { c.token = token } }

// WithAPIKey sends an API key to the operations that require one.
func WithAPIKey(key string) Option { return func(c *config) { c.apiKey = key } }

// WithTokens continues a session with tokens that [OnTokens] has reported.
func WithTokens(tokens TokenSet) Option { return func(c *config) { c.tokens = tokens } }

// OnTokens registers a function that gets the tokens after each sign-in, refresh and sign-out. The new tokens are used after it
// has returned. It must not call the client.
func OnTokens(changed func(TokenSet)) Option { return func(c *config) { c.onTokens = changed } }

// WithDevice sends an id of this device with sign-ins, at most 128 characters.
func WithDevice(id string) Option { return func(c *config) { c.device = id } }

// WithLanguage selects the language of texts: en, de, fr or it.
func WithLanguage(tag string) Option { return func(c *config) { c.language = tag } }

// WithUserAgent names the program in the header User-Agent.
func WithUserAgent(name string) Option { return func(c *config) { c.agent = name } }

// WithTransport sends requests through a transport instead of [http.DefaultTransport].
func WithTransport(t http.RoundTripper) Option { return func(c *config) { c.transport = t } }

// WithTimeout bounds each attempt, including the answer; 30 seconds by default. An attempt that takes longer is not repeated. For an
// event stream it bounds the wait for the head of the answer.
func WithTimeout(d time.Duration) Option { return func(c *config) { c.timeout = d } }

// WithRetries sets how often a request may be repeated: twice by default, 0 for never.
func WithRetries(n int) Option { return func(c *config) { c.retries = n } }

// WithBackoff sets the pause before the first repetition, which doubles each time, and the longest pause: 500 ms and 30 s by
// default. A request whose Retry-After is longer than that is not repeated. Event streams always wait at most the longest pause.
func WithBackoff(first, longest time.Duration) Option {
	return func(c *config) { c.firstWait, c.maxWait = first, longest }
}

// WithMaxAnswer bounds an answer and a frame of a stream, in bytes: 32 MiB by default.
func WithMaxAnswer(bytes int64) Option { return func(c *config) { c.maxAnswer = bytes } }

// WithStreamIdle reconnects a stream that was silent for this time; 90 seconds by default. The service sends a comment every 25 seconds by
// default.
func WithStreamIdle(d time.Duration) Option { return func(c *config) { c.idle = d } }

// New returns a client of the service at an address, such as https://bank.example. It does not connect.
func New(address string, options ...Option) (*Client, error) {
	base, err := url.Parse(address)
	if err != nil || base.Scheme != "https" && base.Scheme != "http" || base.Host == "" || base.User != nil || base.RawQuery != "" || base.Fragment != "" {
		// The message does not repeat the address, which may hold a password.
		return nil, errors.New("the address of the service must be like https://bank.example, without a user, a query or a fragment")
	}
	base.Path = strings.TrimRight(base.Path, "/")
	c := &Client{base: base, config: config{
		transport: http.DefaultTransport, agent: "kontor-go-client", timeout: 30 * time.Second, retries: 2,
		firstWait: 500 * time.Millisecond, maxWait: 30 * time.Second, maxAnswer: 32 << 20, idle: 90 * time.Second,
	}}
	for _, change := range options {
		change(&c.config)
	}
	c.http = &http.Client{Transport: c.config.transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // A redirect must not take a token or a password to another address.
	}}
	c.session = newSession(c)
	c.bind(c)
	return c, nil
}

const (
	headerKey    = "Idempotency-Key"
	headerResume = "Last-Event-ID"
)

// CallOption changes one call.
type CallOption func(*call) error

// call is what the options of one call set.
type call struct {
	header http.Header
	meta   *Meta
}

// IfMatch changes a record only if it still is the version with this ETag. Otherwise the error is [ErrCommonPreconditionFailed].
// Rows of lists have no ETag: get the record first.
func IfMatch(etag string) CallOption { return conditional("If-Match", etag) }

// IfNoneMatch returns a record only if it is no longer the version with this ETag. Otherwise the error is [ErrNotModified].
func IfNoneMatch(etag string) CallOption { return conditional("If-None-Match", etag) }

func conditional(name, etag string) CallOption {
	return func(c *call) error {
		if etag == "" {
			return fmt.Errorf("%s without an ETag would have no effect", name)
		}
		c.header.Set(name, etag)
		return nil
	}
}

// IdempotencyKey sets the key with which a creation can be repeated within 24 hours, also by another process. Without this option, each
// call has a random key, for its own repetitions.
func IdempotencyKey(key string) CallOption {
	return func(c *call) error {
		if key == "" {
			return errors.New("the idempotency key is empty")
		}
		c.header.Set(headerKey, key)
		return nil
	}
}

// newKey returns a random idempotency key.
func newKey() string { return rand.Text() }

// After continues an event stream after the frame with this id.
func After(id string) CallOption { return header(headerResume, id) }

// InLanguage selects the language of texts for one call.
func InLanguage(tag string) CallOption { return header("Accept-Language", tag) }

// RequestID sets the id of the request, which also appears in the log of the service and, if it is random, in the audit trail.
func RequestID(id string) CallOption { return header("X-Request-ID", id) }

func header(name, value string) CallOption {
	return func(c *call) error {
		if value != "" {
			c.header.Set(name, value)
		}
		return nil
	}
}

// Meta is what the headers of an answer say.
type Meta struct {
	Status    int
	RequestID string
	ETag      string
	Replayed  bool // the answer is that of an earlier request with the same idempotency key
	Language  string

	RateLimit     int           // requests allowed in a minute; 0 if there is no limit
	RateRemaining int           // requests still allowed at once
	RateReset     time.Duration // until the full number is allowed again

	next string // the address of the next page
}

// Into stores what the headers of the answer say in meta.
func Into(meta *Meta) CallOption {
	return func(c *call) error {
		c.meta = meta
		return nil
	}
}

func newMeta(a *answer) Meta {
	number := func(name string) int {
		n, _ := strconv.Atoi(a.header.Get(name)) // 0 for a missing header
		return n
	}
	return Meta{
		Status: a.status, RequestID: a.header.Get("X-Request-ID"), ETag: a.header.Get("ETag"), Replayed: a.header.Get("Idempotency-Replayed") == "true",
		Language: a.header.Get("Content-Language"), RateLimit: number("RateLimit-Limit"), RateRemaining: number("RateLimit-Remaining"),
		RateReset: time.Duration(number("RateLimit-Reset")) * time.Second, next: nextPage(a.header),
	}
}

// nextPage returns the target of the Link header to the next page (RFC 8288).
func nextPage(h http.Header) string {
	for _, link := range h.Values("Link") {
		for part := range strings.SplitSeq(link, ",") {
			target, params, _ := strings.Cut(strings.TrimSpace(part), ";")
			if strings.Contains(params, `rel="next"`) && strings.HasPrefix(target, "<") {
				return strings.Trim(target, "<>")
			}
		}
	}
	return ""
}

// cursor returns the parameter "before" of an address. Only the parameter is used: an answer cannot send the client elsewhere.
func cursor(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Query().Get("before")
}

// SecondFactorRequired is the error of a sign-in whose user has a second factor. One of its methods completes the sign-in, from the same
// device, within a few minutes and at most five attempts.
type SecondFactorRequired struct {
	NextStep
	client *Client
}

func (e *SecondFactorRequired) Error() string {
	return fmt.Sprintf("the sign-in needs a second factor: %v", e.Methods)
}

// Code completes the sign-in with the code of an authenticator app.
func (e *SecondFactorRequired) Code(ctx context.Context, code string) error {
	return e.complete(ctx, SignInFactorInput{Code: code})
}

// RecoveryCode completes the sign-in with one of the user's recovery codes.
func (e *SecondFactorRequired) RecoveryCode(ctx context.Context, code string) error {
	return e.complete(ctx, SignInFactorInput{RecoveryCode: code})
}

// PasskeyAnswer completes the sign-in with what an authenticator has returned for the options in Passkey.
func (e *SecondFactorRequired) PasskeyAnswer(ctx context.Context, answer map[string]any) error {
	return e.complete(ctx, SignInFactorInput{Passkey: answer})
}

func (e *SecondFactorRequired) complete(ctx context.Context, in SignInFactorInput) error {
	in.Token = e.Token
	tokens, err := e.client.Auth.SignInFactor(ctx, in)
	if err != nil {
		return err
	}
	return e.client.Use(ctx, *tokens)
}

// SignIn opens a session with a password. user is an e-mail address, a phone number, a user name or an id. The error is
// [*SecondFactorRequired] if the user has a second factor.
func (c *Client) SignIn(ctx context.Context, user, password string) error {
	tokens, next, err := c.Auth.SignIn(ctx, SignInInput{UserID: user, Password: password})
	switch {
	case err != nil:
		return err
	case next != nil:
		return &SecondFactorRequired{*next, c}
	}
	return c.Use(ctx, *tokens)
}

// Use continues with tokens of another way to sign in, such as OIDC.Exchange.
func (c *Client) Use(ctx context.Context, tokens Tokens) error {
	if c.session.fixed != "" {
		return errors.New("the client has a fixed token")
	}
	if err := c.session.wait(ctx); err != nil {
		return err
	}
	c.session.adopt(tokens)
	return nil
}

// Tokens returns the present tokens, which are secret. A refresh replaces them.
func (c *Client) Tokens() TokenSet { return c.session.tokens() }

// SignOut ends the session. Without one it does nothing.
func (c *Client) SignOut(ctx context.Context) error {
	if err := c.session.wait(ctx); err != nil {
		return err
	}
	if c.session.tokens().AccessToken == "" {
		return nil
	}
	_, err := c.Auth.Logout(ctx)
	if err == nil || errors.Is(err, ErrCommonUnauthorized) || errors.Is(err, ErrAuthInvalidRefreshToken) {
		c.session.forget()
		return nil
	}
	return err
}

// TokenSet is what a program keeps to continue a session after a restart. It is secret.
type TokenSet struct {
	AccessToken  string    `json:"access_token,omitzero"`
	RefreshToken string    `json:"refresh_token,omitzero"` // valid once; repeated for 20 seconds
	ExpiresAt    time.Time `json:"expires_at,omitzero"`    // of the access token, by the clock of this machine
	UserID       string    `json:"user_id,omitzero"`
	// DeviceToken is sent with the next sign-in, so that failed attempts of others do not lock this device out. It outlives the session.
	DeviceToken string `json:"device_token,omitzero"`
}

// refreshEarly is how long before its end an access token is refreshed, at most a tenth of its life.
const refreshEarly = 30 * time.Second

// session keeps the tokens of a client. At most one refresh is under way at any time.
type session struct {
	client *Client
	fixed  string

	mutex   sync.Mutex
	current TokenSet
	renewAt time.Time
	flight  *flight // the refresh under way, or nil
}

// flight is a refresh under way. Its error may be read when done is closed.
type flight struct {
	done chan struct{}
	err  error
}

func newSession(c *Client) *session {
	s := &session{client: c, fixed: c.config.token, current: c.config.tokens}
	s.renewAt = s.current.ExpiresAt.Add(-refreshEarly)
	return s
}

// tokens returns the present tokens.
func (s *session) tokens() TokenSet {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.current
}

// token returns a bearer token that is valid as far as the client can tell. It refreshes an expired one.
func (s *session) token(ctx context.Context) (string, error) {
	if s.fixed != "" {
		return s.fixed, nil
	}
	s.mutex.Lock()
	now := s.current
	expired := now.RefreshToken != "" && !time.Now().Before(s.renewAt)
	s.mutex.Unlock()
	if expired {
		fresh, err := s.replace(ctx, now.AccessToken)
		if err != nil && ctx.Err() == nil && !errors.Is(err, ErrNotSignedIn) && time.Now().Before(now.ExpiresAt) {
			return now.AccessToken, nil // It is still valid, and the next call tries again.
		}
		return fresh, err
	}
	return present(now)
}

// replace returns a token other than the given one, which the service has rejected. It starts a refresh or joins the one under way. It
// returns the given token if there is nothing to refresh with.
func (s *session) replace(ctx context.Context, rejected string) (string, error) {
	s.mutex.Lock()
	switch {
	case s.fixed != "":
		s.mutex.Unlock()
		return s.fixed, nil
	case s.current.AccessToken != rejected || s.flight == nil && s.current.RefreshToken == "":
		defer s.mutex.Unlock()
		return present(s.current)
	case s.flight == nil:
		s.flight = &flight{done: make(chan struct{})}
		// The refresh outlives the call that needs it: a cancelled call must not lose the new tokens, because the old ones are used up.
		go s.refresh(context.WithoutCancel(ctx), s.flight, s.current)
	}
	joined := s.flight
	s.mutex.Unlock()
	select {
	case <-joined.done:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	if joined.err != nil {
		return "", joined.err
	}
	return present(s.tokens())
}

// present returns the access token, if there is one.
func present(tokens TokenSet) (string, error) {
	if tokens.AccessToken == "" {
		return "", ErrNotSignedIn
	}
	return tokens.AccessToken, nil
}

// How long one attempt of a refresh may take, and the pauses before further ones. All end within the 20 seconds in which the service
// repeats a lost answer.
const refreshTimeout = 5 * time.Second

var refreshPauses = [...]time.Duration{250 * time.Millisecond, time.Second}

// exchange sends the refresh token, again if the answer is lost.
func (s *session) exchange(ctx context.Context, token string) (*Tokens, error) {
	attempt := func() (*Tokens, error) {
		ctx, cancel := context.WithTimeout(ctx, refreshTimeout)
		defer cancel()
		return s.client.Auth.Refresh(ctx, RefreshInput{RefreshToken: token})
	}
	for _, pause := range refreshPauses {
		fresh, err := attempt()
		if err == nil || !isLost(err) {
			return fresh, err
		}
		if err := sleep(ctx, pause); err != nil {
			return nil, err
		}
	}
	return attempt()
}

// isLost reports whether the service may have answered a request although no answer has arrived.
func isLost(err error) bool {
	answer, answered := errors.AsType[*Error](err)
	switch {
	case !answered:
		return true
	case answer.Code == "":
		return answer.Status == http.StatusBadGateway || answer.Status == http.StatusServiceUnavailable || answer.Status == http.StatusGatewayTimeout
	}
	return answer.Code == ErrCommonOutcomeUnknown
}

// refresh exchanges the refresh token and ends the flight.
func (s *session) refresh(ctx context.Context, f *flight, old TokenSet) {
	fresh, err := s.exchange(ctx, old.RefreshToken)
	s.mutex.Lock()
	// A sign-in or sign-out meanwhile has the last word.
	unchanged := s.current.RefreshToken == old.RefreshToken
	s.mutex.Unlock()
	switch {
	case err == nil && unchanged:
		s.adopt(*fresh)
	case errors.Is(err, ErrAuthInvalidRefreshToken):
		f.err = fmt.Errorf("%w: the session has ended: %w", ErrNotSignedIn, err)
		if unchanged {
			s.forget()
		}
	case err != nil:
		f.err = fmt.Errorf("refresh the session: %w", err)
	}
	s.mutex.Lock()
	s.flight = nil
	s.mutex.Unlock()
	close(f.done)
}

// adopt uses new tokens from now on.
func (s *session) adopt(t Tokens) {
	life := time.Duration(t.ExpiresIn) * time.Second
	next := TokenSet{AccessToken: t.AccessToken, RefreshToken: t.RefreshToken, ExpiresAt: time.Now().Add(life), UserID: t.UserID, DeviceToken: t.DeviceToken}
	if next.DeviceToken == "" {
		next.DeviceToken = s.tokens().DeviceToken
	}
	s.use(next, next.ExpiresAt.Add(-min(refreshEarly, life/10)))
}

// forget removes the tokens of a session that has ended.
func (s *session) forget() { s.use(TokenSet{DeviceToken: s.tokens().DeviceToken}, time.Time{}) }

// use reports tokens and then replaces the present ones.
func (s *session) use(next TokenSet, renewAt time.Time) {
	if s.client.config.onTokens != nil {
		s.client.config.onTokens(next)
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.current, s.renewAt = next, renewAt
}

// wait waits for the refresh under way.
func (s *session) wait(ctx context.Context) error {
	s.mutex.Lock()
	f := s.flight
	s.mutex.Unlock()
	if f == nil {
		return nil
	}
	select {
	case <-f.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
