package servertest

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"kontor/server/client"
	"kontor/server/openapi/openapitest"
)

// API returns the Go client of the API, which is not signed in. Each answer is compared with the API document, except streams.
func (s *Server) API(options ...client.Option) *client.Client {
	s.t.Helper()
	options = append([]client.Option{client.WithTransport(comparing{s.t, s.web})}, options...)
	c, err := client.New("http://"+s.Address, options...)
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// AdminAPI returns the Go client of the first administrator.
func (s *Server) AdminAPI(options ...client.Option) *client.Client {
	s.t.Helper()
	c := s.API(options...)
	if err := c.SignIn(context.Background(), AdminEmail, AdminPassword); err != nil {
		s.t.Fatal(err)
	}
	return c
}

// UserAPI creates a user with roles and returns their Go client.
func (s *Server) UserAPI(roles ...string) *client.Client {
	s.t.Helper()
	return s.API(client.WithToken(s.User(roles...).Token))
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
