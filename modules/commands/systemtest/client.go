package systemtest

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"kontor/store/testenv"
)

// Answer is a response with its complete body.
type Answer struct {
	Status int
	Header http.Header
	Body   string
}

// Client sends requests with fixed headers, which are pairs of name and value. It keeps at most one idle connection.
type Client struct {
	HTTP    *http.Client
	URL     string
	Headers []string
}

// Client returns a client of the server.
func (p *Process) Client(headers ...string) *Client {
	transport := &http.Transport{MaxIdleConnsPerHost: 1}
	p.TB.Cleanup(transport.CloseIdleConnections)
	return &Client{HTTP: &http.Client{Transport: transport, Timeout: testenv.Limit()}, URL: p.URL, Headers: headers}
}

// Scraper returns a client of the address for Prometheus.
func (p *Process) Scraper() *Client {
	c := p.Client()
	c.URL = p.scrape
	return c
}

// With returns a client with further headers, which shares the connection.
func (c *Client) With(headers ...string) *Client {
	next := *c
	next.Headers = append(append([]string(nil), c.Headers...), headers...)
	return &next
}

// Try sends a request. The error is one of the network.
func (c *Client) Try(method, path, body string) (Answer, error) {
	request, err := http.NewRequestWithContext(context.Background(), method, c.URL+path, strings.NewReader(body))
	if err != nil {
		return Answer{}, err
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(c.Headers); i += 2 {
		request.Header.Set(c.Headers[i], c.Headers[i+1])
	}
	response, err := c.HTTP.Do(request)
	if err != nil {
		return Answer{}, err
	}
	defer response.Body.Close()
	read, err := io.ReadAll(response.Body)
	return Answer{response.StatusCode, response.Header, string(read)}, err
}

// Do sends a request, and stops the test unless the response has the status.
func (c *Client) Do(tb testing.TB, method, path, body string, status int) Answer {
	tb.Helper()
	a, err := c.Try(method, path, body)
	if err != nil {
		tb.Fatal(err)
	}
	if a.Status != status {
		tb.Fatalf("%s %s: got %d %s, want %d", method, path, a.Status, a.Body, status)
	}
	return a
}

// Decode decodes the body.
func (a Answer) Decode(tb testing.TB, target any) {
	tb.Helper()
	if err := json.Unmarshal([]byte(a.Body), target); err != nil {
		tb.Fatalf("%v in %s", err, a.Body)
	}
}

// SignIn returns a client with a session.
func (p *Process) SignIn(login, password string) *Client {
	p.TB.Helper()
	body, err := json.Marshal(map[string]string{"user_id": login, "password": password})
	if err != nil {
		p.TB.Fatal(err)
	}
	c := p.Client()
	var tokens struct {
		AccessToken string `json:"access_token"`
	}
	c.Do(p.TB, "POST", "/authenticate", string(body), 200).Decode(p.TB, &tokens)
	return c.With("Authorization", "Bearer "+tokens.AccessToken)
}

// Admin returns a client with a session of the administrator.
func (p *Process) Admin() *Client {
	p.TB.Helper()
	return p.SignIn(AdminEmail, AdminPassword)
}

// Page is the envelope of a list.
type Page struct {
	Data  []json.RawMessage `json:"data"`
	Total int               `json:"total"`
}

// Total returns the total of a list.
func (c *Client) Total(tb testing.TB, path string) int {
	tb.Helper()
	var p Page
	c.Do(tb, "GET", path, "", 200).Decode(tb, &p)
	return p.Total
}

// Create creates a record and returns its id.
func (c *Client) Create(tb testing.TB, path, body string) (id string) {
	tb.Helper()
	var record struct{ ID string }
	c.Do(tb, "POST", path, body, 201).Decode(tb, &record)
	return record.ID
}

// CreateKey creates an API key and returns its id and the key.
func (c *Client) CreateKey(tb testing.TB, body string) (id, key string) {
	tb.Helper()
	var created struct{ ID, Key string }
	c.Do(tb, "POST", "/v1/api-keys", body, 201).Decode(tb, &created)
	return created.ID, created.Key
}

// UserID returns the id of the signed-in user.
func (c *Client) UserID(tb testing.TB) string {
	tb.Helper()
	var me struct{ ID string }
	c.Do(tb, "GET", "/v1/users/me", "", 200).Decode(tb, &me)
	return me.ID
}

// Code returns the error code in the body, or "".
func (a Answer) Code() string {
	var envelope struct {
		Code string `json:"code"`
	}
	if json.Unmarshal([]byte(a.Body), &envelope) != nil {
		return ""
	}
	return envelope.Code
}

// Keyed returns a client with the API key.
func (p *Process) Keyed() *Client { return p.Client("X-API-Key", APIKey) }

// From returns a client in another network. The test acts as its proxy.
func (c *Client) From(address string) *Client { return c.With("X-Forwarded-For", address) }

// At returns the client for another process with the same data.
func (c *Client) At(p *Process) *Client {
	next := *c
	next.URL = p.URL
	return &next
}

// Object returns a JSON object of pairs of name and value.
func Object(pairs ...any) string {
	members := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		members[pairs[i].(string)] = pairs[i+1]
	}
	encoded, err := json.Marshal(members)
	if err != nil {
		panic(err) // an error in the test
	}
	return string(encoded)
}

// Ready reports whether the node says that it is ready.
func (c *Client) Ready() bool {
	got, err := c.Try("GET", "/readyz", "")
	return err == nil && got.Status == 200
}

// Using returns a client with the headers of c that uses the connection and the node of another client.
func (c *Client) Using(at *Client) *Client {
	next := *at
	next.Headers = c.Headers
	return &next
}

// IDOf returns the id of a record.
func IDOf(t *testing.T, row string) string {
	t.Helper()
	var record struct {
		ID string `json:"id"`
	}
	Answer{Body: row}.Decode(t, &record)
	return record.ID
}
