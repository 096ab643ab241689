package servertest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"

	"kontor/locales"
	"kontor/server"
	"kontor/server/endpoint"
	"kontor/server/openapi/openapitest"
	"kontor/store"
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
	var answer []byte
	if response.Header.Get("Content-Type") != "text/event-stream" { // it has no end
		if answer, err = io.ReadAll(response.Body); err != nil {
			return Response{}, err
		}
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

// Send sends one request to an address and reads the whole response, without validating it against the API document. Headers
// are given in pairs.
func Send(t testing.TB, address, method, path, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(context.Background(), method, "http://"+address+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(answer)
}

// Texts returns the texts of the locale files.
func Texts(t testing.TB) *locales.Bundle {
	t.Helper()
	texts, err := locales.Load()
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

// Exec runs one statement in a transaction of its own.
func Exec(t testing.TB, db *store.DB, statement string, args ...any) {
	t.Helper()
	InTx(t, db, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, statement, args...)
		return err
	})
}

// InTx runs f in a transaction and stops the test if that fails.
func InTx(t testing.TB, db *store.DB, f func(ctx context.Context, tx *store.Tx) error) {
	t.Helper()
	ctx := context.Background()
	if err := db.InTx(ctx, func(tx *store.Tx) error { return f(ctx, tx) }); err != nil {
		t.Fatal(err)
	}
}

// Named sets the display name of the client's user and returns the client.
func (c *Client) Named(t testing.TB, name string) *Client {
	t.Helper()
	c.Do("PATCH", "/v1/users/"+c.UserID, map[string]any{"display_name": name}).Expect(t, http.StatusOK)
	return c
}

// People returns the member people of the body, by user id.
func (r Response) People(t testing.TB) map[string]endpoint.Person {
	t.Helper()
	var answer struct {
		People map[string]endpoint.Person `json:"people"`
	}
	r.Into(t, &answer)
	return answer.People
}

// Body is a JSON object to send.
type Body map[string]any

// With returns a copy with further members, in pairs of name and value.
func (b Body) With(pairs ...any) Body {
	next := maps.Clone(b)
	for i := 0; i < len(pairs); i += 2 {
		next[pairs[i].(string)] = pairs[i+1]
	}
	return next
}

// Scenario is one request, with texts that the response must and must not contain.
type Scenario struct {
	Name     string
	As       *Client // nil: anonymous
	Method   string
	Path     string
	Body     any
	Status   int
	Contains []string
	Excludes []string
}

// Run sends the requests in order, each in a subtest.
func Run(t *testing.T, s *Server, scenarios []Scenario) {
	t.Helper()
	for _, c := range scenarios {
		t.Run(c.Name, func(t *testing.T) {
			client := c.As
			if client == nil {
				client = s.Anonymous()
			}
			answer := client.Do(c.Method, c.Path, c.Body)
			if answer.Status != c.Status {
				t.Errorf("%s %s: got %d %s, want %d", c.Method, c.Path, answer.Status, answer.Body, c.Status)
			}
			for _, text := range c.Contains {
				if !strings.Contains(answer.Body, text) {
					t.Errorf("%s %s: %s lacks %s", c.Method, c.Path, answer.Body, text)
				}
			}
			for _, text := range c.Excludes {
				if strings.Contains(answer.Body, text) {
					t.Errorf("%s %s: %s has %s", c.Method, c.Path, answer.Body, text)
				}
			}
		})
	}
}
