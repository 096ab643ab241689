package servertest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"kontor/server"
	"kontor/server/openapi/openapitest"
)

// Client sends requests of one caller. Without a token the requests are anonymous.
type Client struct {
	UserID  string
	Token   string
	Refresh string
	Headers []string // in pairs, for all requests

	t       testing.TB
	web     *server.Server
	address string
}

// NewClient returns an anonymous client of a server, such as one of [Serve].
func NewClient(t testing.TB, web *server.Server, address string) *Client {
	return &Client{t: t, web: web, address: address}
}

// With returns a copy of the client with further headers, in pairs.
func (c *Client) With(headers ...string) *Client {
	next := *c
	next.Headers = append(append([]string(nil), c.Headers...), headers...)
	return &next
}

// Do sends a request and validates the response against the API document. A string or bytes are sent unchanged, other bodies as JSON;
// nil sends no body.
func (c *Client) Do(method, path string, body any) Response {
	c.t.Helper()
	answer, err := c.Try(method, path, body)
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, path, err)
	}
	return answer
}

// Try is Do for goroutines other than the test's. It returns errors instead of stopping the test.
func (c *Client) Try(method, path string, body any) (Response, error) {
	content, err := encode(body)
	if err != nil {
		return Response{}, err
	}
	request, err := http.NewRequestWithContext(context.Background(), method, "http://"+c.address+path, content)
	if err != nil {
		return Response{}, err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if c.Token != "" {
		request.Header.Set("Authorization", "Bearer "+c.Token)
	}
	for i := 0; i+1 < len(c.Headers); i += 2 {
		request.Header.Set(c.Headers[i], c.Headers[i+1])
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		return Response{}, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return Response{}, err
	}
	openapitest.Validate(c.t, c.web, request, response, answer)
	return Response{Status: response.StatusCode, Header: response.Header, Body: string(answer), what: method + " " + path}, nil
}

// Create creates a record and returns its id.
func (c *Client) Create(path string, body any) (id string) {
	c.t.Helper()
	return c.Do("POST", path, body).Expect(c.t, http.StatusCreated).JSON(c.t)["id"].(string)
}

func encode(body any) (io.Reader, error) {
	switch b := body.(type) {
	case nil:
		return nil, nil
	case string:
		return strings.NewReader(b), nil
	case []byte:
		return bytes.NewReader(b), nil
	}
	data, err := json.Marshal(body)
	return bytes.NewReader(data), err
}

// Response is a response with its whole body.
type Response struct {
	Status int
	Header http.Header
	Body   string
	what   string
}

// Expect stops the test unless the response has the status.
func (r Response) Expect(t testing.TB, status int) Response {
	t.Helper()
	if r.Status != status {
		t.Fatalf("%s: got %d %s, want %d", r.what, r.Status, r.Body, status)
	}
	return r
}

// ExpectError stops the test unless the response is an error with the status and the code.
func (r Response) ExpectError(t testing.TB, status int, code string) {
	t.Helper()
	if got, _ := r.Expect(t, status).JSON(t)["code"].(string); got != code {
		t.Fatalf("%s: got code %s, want %s: %s", r.what, got, code, r.Body)
	}
}

// Into decodes the body into target.
func (r Response) Into(t testing.TB, target any) {
	t.Helper()
	if err := json.Unmarshal([]byte(r.Body), target); err != nil {
		t.Fatalf("%s: %v in %s", r.what, err, r.Body)
	}
}

// JSON decodes a body that is a JSON object.
func (r Response) JSON(t testing.TB) map[string]any {
	t.Helper()
	var object map[string]any
	r.Into(t, &object)
	return object
}
