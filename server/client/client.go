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
	"errors"
	"net/http"
	"net/url"
	"strings"
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
