package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// answer is a response with its complete body.
type answer struct {
	status int
	header http.Header
	body   string
}

// client sends requests with fixed headers, which are pairs of name and value. It keeps at most one idle connection.
type client struct {
	http    *http.Client
	url     string
	headers []string
}

// client returns a client of the server.
func (p *process) client(headers ...string) *client {
	transport := &http.Transport{MaxIdleConnsPerHost: 1}
	p.tb.Cleanup(transport.CloseIdleConnections)
	return &client{http: &http.Client{Transport: transport, Timeout: time.Minute}, url: p.url, headers: headers}
}

// scraper returns a client of the address for Prometheus.
func (p *process) scraper() *client {
	c := p.client()
	c.url = p.scrape
	return c
}

// with returns a client with further headers, which shares the connection.
func (c *client) with(headers ...string) *client {
	next := *c
	next.headers = append(append([]string(nil), c.headers...), headers...)
	return &next
}

// try sends a request. The error is one of the network.
func (c *client) try(method, path, body string) (answer, error) {
	request, err := http.NewRequestWithContext(context.Background(), method, c.url+path, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(c.headers); i += 2 {
		request.Header.Set(c.headers[i], c.headers[i+1])
	}
	response, err := c.http.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	read, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, response.Header, string(read)}, err
}

// do sends a request, and stops the test unless the response has the status.
func (c *client) do(tb testing.TB, method, path, body string, status int) answer {
	tb.Helper()
	a, err := c.try(method, path, body)
	if err != nil {
		tb.Fatal(err)
	}
	if a.status != status {
		tb.Fatalf("%s %s: got %d %s, want %d", method, path, a.status, a.body, status)
	}
	return a
}

// into decodes the body.
func (a answer) into(tb testing.TB, target any) {
	tb.Helper()
	if err := json.Unmarshal([]byte(a.body), target); err != nil {
		tb.Fatalf("%v in %s", err, a.body)
	}
}

// signIn returns a client with a session.
func (p *process) signIn(login, password string) *client {
	p.tb.Helper()
	body, err := json.Marshal(map[string]string{"user_id": login, "password": password})
	if err != nil {
		p.tb.Fatal(err)
	}
	c := p.client()
	var tokens struct {
		AccessToken string `json:"access_token"`
	}
	c.do(p.tb, "POST", "/authenticate", string(body), 200).into(p.tb, &tokens)
	return c.with("Authorization", "Bearer "+tokens.AccessToken)
}

// admin returns a client with a session of the administrator.
func (p *process) admin() *client {
	p.tb.Helper()
	return p.signIn(adminEmail, adminPassword)
}

// page is the envelope of a list.
type page struct {
	Data  []json.RawMessage `json:"data"`
	Total int               `json:"total"`
}

// total returns the total of a list.
func (c *client) total(tb testing.TB, path string) int {
	tb.Helper()
	var p page
	c.do(tb, "GET", path, "", 200).into(tb, &p)
	return p.Total
}

// create creates a record and returns its id.
func (c *client) create(tb testing.TB, path, body string) (id string) {
	tb.Helper()
	var record struct{ ID string }
	c.do(tb, "POST", path, body, 201).into(tb, &record)
	return record.ID
}

// createKey creates an API key and returns its id and the key.
func (c *client) createKey(tb testing.TB, body string) (id, key string) {
	tb.Helper()
	var created struct{ ID, Key string }
	c.do(tb, "POST", "/v1/api-keys", body, 201).into(tb, &created)
	return created.ID, created.Key
}

// userID returns the id of the signed-in user.
func (c *client) userID(tb testing.TB) string {
	tb.Helper()
	var me struct{ ID string }
	c.do(tb, "GET", "/v1/users/me", "", 200).into(tb, &me)
	return me.ID
}

// code returns the error code in the body, or "".
func (a answer) code() string {
	var envelope struct {
		Code string `json:"code"`
	}
	if json.Unmarshal([]byte(a.body), &envelope) != nil {
		return ""
	}
	return envelope.Code
}

// keyed returns a client with the API key.
func (p *process) keyed() *client { return p.client("X-API-Key", apiKey) }

// from returns a client in another network. The test acts as its proxy.
func (c *client) from(address string) *client { return c.with("X-Forwarded-For", address) }

// at returns the client for another process with the same data.
func (c *client) at(p *process) *client {
	next := *c
	next.url = p.url
	return &next
}

// object returns a JSON object of pairs of name and value.
func object(pairs ...any) string {
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
