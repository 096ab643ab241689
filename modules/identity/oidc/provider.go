package oidc

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	goidc "github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"kontor/store"
)

const (
	configurationLife = time.Hour // after it the configuration is read again
	firstPause        = 2 * time.Second
	longestPause      = time.Minute
)

// algorithms are the accepted signatures of ID tokens. Symmetric ones and none are missing on purpose (RFC 8725, section 3.1).
var algorithms = []string{
	goidc.RS256, goidc.RS384, goidc.RS512, goidc.PS256, goidc.PS384, goidc.PS512, goidc.ES256, goidc.ES384, goidc.ES512, goidc.EdDSA,
}

// configuration is what the provider states about itself (OpenID Connect Discovery 1.0, section 3).
type configuration struct {
	AuthorizationEndpoint string   `json:"authorization_endpoint"`
	TokenEndpoint         string   `json:"token_endpoint"`
	KeysEndpoint          string   `json:"jwks_uri"`
	UserInfoEndpoint      string   `json:"userinfo_endpoint"`
	Algorithms            []string `json:"id_token_signing_alg_values_supported"`
	TokenMethods          []string `json:"token_endpoint_auth_methods_supported"`
	ChallengeMethods      []string `json:"code_challenge_methods_supported"`
	SendsIssuer           bool     `json:"authorization_response_iss_parameter_supported"` // RFC 9207
}

// discovered is a configuration that was checked, with its verifier.
type discovered struct {
	configuration
	provider *goidc.Provider
	verifier *goidc.IDTokenVerifier
	oauth    oauth2.Config
	keys     goidc.KeySet
}

// provider reads the configuration when it is first needed, and again every hour. After failures it pauses.
type provider struct {
	options Options
	now     func() store.Time
	client  *http.Client
	turn    chan struct{} // held while the configuration is read

	mu       sync.Mutex
	current  *discovered
	readAt   store.Time
	pauseTo  store.Time
	failures int
	err      error // of the latest attempt
}

func newProvider(o Options, now func() store.Time) *provider {
	return &provider{options: o, now: now, client: newClient(o.Timeout), turn: make(chan struct{}, 1), err: errors.New("the provider was not asked yet")}
}

// ready returns the error of the latest attempt to read the configuration.
func (p *provider) ready() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// get returns the configuration. While the provider does not answer, it returns the former configuration, if any.
func (p *provider) get(ctx context.Context) (*discovered, error) {
	if d, err, due := p.known(); !due {
		return d, err
	}
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if d, err, due := p.known(); !due { // another request has read it in the meantime
		return d, err
	}
	p.mu.Lock()
	former := p.current
	p.mu.Unlock()
	read, err := p.discover(ctx, former)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err = err; err == nil {
		p.current, p.readAt, p.failures, p.pauseTo = read, p.now(), 0, 0
		return read, nil
	}
	pause := min(firstPause<<min(p.failures, 10), longestPause)
	p.failures++
	p.pauseTo = p.now().Add(pause)
	p.options.Log.Warn("the sign-in provider cannot be used", "issuer", p.options.Issuer, "retry_in", pause, "cause", shorten(err))
	if p.current != nil {
		return p.current, nil
	}
	return nil, err
}

// known returns what is in memory. due reports that the configuration must be read.
func (p *provider) known() (d *discovered, err error, due bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if p.current != nil && now >= p.readAt && now < p.readAt.Add(configurationLife) {
		return p.current, nil, false
	}
	if now < p.pauseTo && p.pauseTo <= now.Add(longestPause) {
		if p.current != nil {
			return p.current, nil, false
		}
		return nil, p.err, false
	}
	return nil, nil, true
}

// discover reads and checks the configuration.
func (p *provider) discover(ctx context.Context, former *discovered) (*discovered, error) {
	ctx, cancel := detach(ctx, p.options.Timeout)
	defer cancel()
	read, err := goidc.NewProvider(goidc.ClientContext(ctx, p.client), p.options.Issuer) // it compares the issuers
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	d := &discovered{provider: read}
	if err := read.Claims(&d.configuration); err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	if err := d.check(p.options.Issuer); err != nil {
		return nil, err
	}
	accepted := slices.DeleteFunc(slices.Clone(algorithms), func(a string) bool { return !slices.Contains(d.Algorithms, a) })
	if len(d.Algorithms) == 0 {
		accepted = []string{goidc.RS256} // the default, which every provider must support
	}
	if len(accepted) == 0 {
		return nil, errors.New("the provider signs ID tokens with no accepted algorithm")
	}
	if former != nil && former.KeysEndpoint == d.KeysEndpoint {
		d.keys = former.keys // with its keys, and the time of the latest request for them
	} else {
		client := &http.Client{Transport: &spaced{next: p.client.Transport, now: p.now, every: keysEvery}, Timeout: p.client.Timeout, CheckRedirect: p.client.CheckRedirect}
		d.keys = keySet{goidc.NewRemoteKeySet(goidc.ClientContext(context.WithoutCancel(ctx), client), d.KeysEndpoint)}
	}
	// The times are checked by [Service.checkTimes], with the clock of the store.
	d.verifier = goidc.NewVerifier(p.options.Issuer, d.keys, &goidc.Config{ClientID: p.options.ClientID, SupportedSigningAlgs: accepted, SkipExpiryCheck: true})
	d.oauth = oauth2.Config{
		ClientID: p.options.ClientID, ClientSecret: p.options.ClientSecret, Scopes: p.options.Scopes,
		RedirectURL: p.options.BaseURL + callbackPath,
		Endpoint:    oauth2.Endpoint{AuthURL: d.AuthorizationEndpoint, TokenURL: d.TokenEndpoint, AuthStyle: d.authStyle(p.options.ClientSecret)},
	}
	return d, nil
}

// authStyle returns how the client authenticates at the token endpoint: by HTTP Basic, unless the provider does not support
// it (OpenID Connect Discovery 1.0, section 3). A public client sends its id only.
func (c configuration) authStyle(secret string) oauth2.AuthStyle {
	basic := len(c.TokenMethods) == 0 || slices.Contains(c.TokenMethods, "client_secret_basic")
	if secret == "" || !basic {
		return oauth2.AuthStyleInParams
	}
	return oauth2.AuthStyleInHeader
}

// check rejects addresses without TLS and providers without PKCE. A provider on this machine may use http://.
func (c configuration) check(issuer string) error {
	addresses := map[string]string{"authorization_endpoint": c.AuthorizationEndpoint, "token_endpoint": c.TokenEndpoint, "jwks_uri": c.KeysEndpoint}
	if c.UserInfoEndpoint != "" {
		addresses["userinfo_endpoint"] = c.UserInfoEndpoint
	}
	onThisMachine := strings.HasPrefix(issuer, "http://")
	for name, address := range addresses {
		u, err := url.Parse(address)
		if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" {
			return fmt.Errorf("%s of the provider is not a URL", name)
		}
		if u.Scheme != "https" && !(u.Scheme == "http" && onThisMachine && isLoopback(u.Hostname())) {
			return fmt.Errorf("%s of the provider does not begin with https://", name)
		}
	}
	if len(c.ChallengeMethods) > 0 && !slices.Contains(c.ChallengeMethods, "S256") {
		return errors.New("the provider does not support PKCE with S256")
	}
	return nil
}

func isLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.Unmap().IsLoopback()
}

// exchange redeems an authorization code.
func (p *provider) exchange(ctx context.Context, d *discovered, code, verifier string) (*oauth2.Token, error) {
	return d.oauth.Exchange(goidc.ClientContext(ctx, p.client), code, oauth2.VerifierOption(verifier))
}

// keySet remembers why keys could not be read, because the verifier drops the cause. The context has an *error for it.
type keySet struct{ goidc.KeySet }

type keyErrorKey struct{}

// VerifySignature verifies a token.
func (k keySet) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	payload, err := k.KeySet.VerifySignature(ctx, token)
	if cause, ok := ctx.Value(keyErrorKey{}).(*error); ok && isUnreachable(err) {
		*cause = err
	}
	return payload, err
}

// verifyToken verifies signature, algorithm, issuer and audience of an ID token.
func (d *discovered) verifyToken(ctx context.Context, raw string) (*goidc.IDToken, error) {
	var cause error
	checked, err := d.verifier.Verify(context.WithValue(ctx, keyErrorKey{}, &cause), raw)
	if cause != nil {
		err = cause
	}
	return checked, err
}

const (
	// maxAnswer is the largest answer of the provider in bytes. Configurations, key sets and tokens are far smaller.
	maxAnswer = 256 << 10
	// keysEvery is the shortest time between two requests for the keys of the provider. A token with an unknown key causes one.
	keysEvery = 10 * time.Second
)

var (
	errTooLarge    = fmt.Errorf("the provider sent more than %d bytes", maxAnswer)
	errRedirected  = errors.New("the provider redirected a request of the server")
	errKeysLimited = fmt.Errorf("the keys of the provider were requested less than %s ago", keysEvery)
)

// newClient returns the client for all requests to the provider. It verifies certificates, follows no redirect, and reads a
// bounded, uncompressed answer in a bounded time.
func newClient(timeout time.Duration) *http.Client {
	dialer := &net.Dialer{Timeout: timeout}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, TLSHandshakeTimeout: timeout, ForceAttemptHTTP2: true,
		ResponseHeaderTimeout: timeout, MaxResponseHeaderBytes: 64 << 10, IdleConnTimeout: 30 * time.Second, MaxIdleConnsPerHost: 2,
		DisableCompression: true, // a compressed answer could be larger than it seems
	}
	return &http.Client{
		Transport: bounded{transport}, Timeout: timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return errRedirected },
	}
}

// bounded limits the size of answers.
type bounded struct{ next http.RoundTripper }

// RoundTrip sends a request.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := b.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if response.ContentLength > maxAnswer {
		response.Body.Close()
		return nil, errTooLarge
	}
	response.Body = &boundedBody{response.Body, maxAnswer}
	return response, nil
}

type boundedBody struct {
	io.ReadCloser
	left int
}

// Read returns errTooLarge after the limit.
func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= n; b.left < 0 {
		return 0, errTooLarge
	}
	return n, err
}

// spaced rejects requests that follow another too soon.
type spaced struct {
	next  http.RoundTripper
	now   func() store.Time
	every time.Duration

	mu   sync.Mutex
	last store.Time
}

// RoundTrip sends a request, or returns errKeysLimited.
func (s *spaced) RoundTrip(r *http.Request) (*http.Response, error) {
	now := s.now()
	s.mu.Lock()
	early := s.last != 0 && now >= s.last && now < s.last.Add(s.every)
	if !early {
		s.last = now
	}
	s.mu.Unlock()
	if early {
		return nil, errKeysLimited
	}
	return s.next.RoundTrip(r)
}

// detach returns a context that is not cancelled with ctx, for a result that other requests use too.
func detach(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), timeout)
}

// isUnreachable reports whether an error says that the provider did not answer, or answered with an error of its own.
func isUnreachable(err error) bool {
	if answered, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		return answered.Response != nil && answered.Response.StatusCode >= http.StatusInternalServerError
	}
	if errors.Is(err, errRedirected) || errors.Is(err, errTooLarge) {
		return false
	}
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, errKeysLimited)
}

// maxCause is the length of a cause in the log. Errors of the libraries contain what the provider sent.
const maxCause = 300

// shorten returns the text of an error for the log.
func shorten(err error) string {
	text := err.Error()
	if len(text) > maxCause {
		text = strings.ToValidUTF8(text[:maxCause], "") + "…"
	}
	return text
}
