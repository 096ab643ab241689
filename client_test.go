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

// client sends requests over at most one connection at a time, with a header for each pair of Headers.
type client struct {
	http    *http.Client
	url     string
	headers []string
}

func (p *process) client(headers ...string) *client {
	transport := &http.Transport{MaxIdleConnsPerHost: 1}
	p.tb.Cleanup(transport.CloseIdleConnections)
	return &client{http: &http.Client{Transport: transport, Timeout: time.Minute}, url: p.url, headers: headers}
}

// with returns a client that sends further headers over the same connections.
func (c *client) with(headers ...string) *client {
	next := *c
	next.headers = append(append([]string(nil), c.headers...), headers...)
	return &next
}

// try sends a request and returns network errors.
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

// do sends a request and stops the test unless the response has the status.
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

// into decodes the response.
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

// admin returns a client of the administrator.
func (p *process) admin() *client {
	p.tb.Helper()
	return p.signIn(adminEmail, adminPassword)
}

// page is the envelope of a list.
type page struct {
	Data  []json.RawMessage `json:"data"`
	Total int               `json:"total"`
}

// total returns the number of rows of a list that match.
func (c *client) total(tb testing.TB, path string) int {
	tb.Helper()
	var p page
	c.do(tb, "GET", path, "", 200).into(tb, &p)
	return p.Total
}
