// Package clienttest gives tests the Go client of a test server. It is not part of servertest, so that the files of the client
// can be generated with servertest while they do not compile, for example after a merge.
package clienttest

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"kontor/server/client"
	"kontor/server/openapi/openapitest"
	"kontor/server/servertest"
	"kontor/store/testenv"
)

// New returns a client that is not signed in. Each answer is compared with the API document, except streams.
func New(t testing.TB, s *servertest.Server, options ...client.Option) *client.Client {
	t.Helper()
	options = append([]client.Option{client.WithTransport(comparing{t, s}), client.WithTimeout(testenv.Limit())}, options...)
	c, err := client.New("http://"+s.Address, options...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Admin returns the client of the first administrator, with a session of its own.
func Admin(t testing.TB, s *servertest.Server, options ...client.Option) *client.Client {
	t.Helper()
	c := New(t, s, options...)
	if err := c.SignIn(context.Background(), servertest.AdminEmail, servertest.AdminPassword); err != nil {
		t.Fatal(err)
	}
	return c
}

// User creates a user with roles, and returns their client and their id.
func User(t testing.TB, s *servertest.Server, roles ...string) (c *client.Client, userID string) {
	t.Helper()
	user := s.User(roles...)
	return New(t, s, client.WithToken(user.Token)), user.UserID
}

// comparing compares answers with the API document.
type comparing struct {
	t      testing.TB
	served openapitest.Served
}

// RoundTrip sends a request and reads the whole answer, unless it is a stream.
func (c comparing) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil || strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		return response, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	openapitest.Validate(c.t, c.served, r, response, body)
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, nil
}
