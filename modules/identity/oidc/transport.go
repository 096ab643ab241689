package oidc

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"

	"kontor/store"
)

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
