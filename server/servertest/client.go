package servertest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"kontor/server/openapi/openapitest"
)

// Client makes requests as somebody. Without a token it is nobody.
type Client struct {
	UserID  string
	Token   string
	Refresh string
	Headers []string // in pairs, for all requests

	server *Server
}

// With gives the same client with further headers, in pairs.
func (c *Client) With(headers ...string) *Client {
	next := *c
	next.Headers = append(append([]string(nil), c.Headers...), headers...)
	return &next
}

// Do makes a request and holds its answer against the API document. A body that is text is sent as it is, any other as JSON; nil sends none.
func (c *Client) Do(method, path string, body any) Response {
	c.server.t.Helper()
	request, err := http.NewRequestWithContext(context.Background(), method, "http://"+c.server.Address+path, encode(c.server.t, body))
	if err != nil {
		c.server.t.Fatal(err)
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
		c.server.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		c.server.t.Fatalf("%s %s: %v", method, path, err)
	}
	openapitest.Hold(c.server.t, c.server.web, request, response, answer)
	return Response{Status: response.StatusCode, Header: response.Header, Body: string(answer), what: method + " " + path}
}

// Create makes a record and gives its id.
func (c *Client) Create(path string, body any) (id string) {
	c.server.t.Helper()
	return c.Do("POST", path, body).Expect(c.server.t, http.StatusCreated).JSON(c.server.t)["id"].(string)
}

func encode(t testing.TB, body any) io.Reader {
	switch b := body.(type) {
	case nil:
		return nil
	case string:
		return strings.NewReader(b)
	case []byte:
		return bytes.NewReader(b)
	}
	data, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.NewReader(data)
}

// Response is an answer that was read to its end.
type Response struct {
	Status int
	Header http.Header
	Body   string
	what   string
}

// Expect stops the test unless the answer has the status.
func (r Response) Expect(t testing.TB, status int) Response {
	t.Helper()
	if r.Status != status {
		t.Fatalf("%s: got %d %s, want %d", r.what, r.Status, r.Body, status)
	}
	return r
}

// Into decodes the answer.
func (r Response) Into(t testing.TB, target any) {
	t.Helper()
	if err := json.Unmarshal([]byte(r.Body), target); err != nil {
		t.Fatalf("%s: %v in %s", r.what, err, r.Body)
	}
}

// JSON decodes an answer that is an object.
func (r Response) JSON(t testing.TB) map[string]any {
	t.Helper()
	var object map[string]any
	r.Into(t, &object)
	return object
}
