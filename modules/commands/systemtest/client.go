package systemtest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
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

// WaitUntilReady waits until the server says that it is ready. Its own limits for the checks are short: a busy machine may exceed them.
func (p *Process) WaitUntilReady() {
	p.TB.Helper()
	testenv.Wait(p.TB, "the server to be ready", p.Client().Ready)
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

// CustomerPassword is the password of all accounts that the tests register.
const CustomerPassword = "eight quiet ducks cross lakes"

// Account is a registered user with a session.
type Account struct {
	*Client
	ID, Email, Credential, DeviceToken string
}

// Register registers a user and validates the e-mail address. The account has no session yet.
func (p *Process) Register(admin *Client, email string) Account {
	p.TB.Helper()
	var registered struct {
		UserID      string `json:"user_id"`
		AccessToken string `json:"access_token"`
		Credential  struct{ ID string }
	}
	p.Keyed().Do(p.TB, "POST", "/v1/users/initiate-registration", RegistrationOf("email", email, CustomerPassword), 201).Decode(p.TB, &registered)
	a := Account{ID: registered.UserID, Email: email, Credential: registered.Credential.ID}
	p.Client("Authorization", "Bearer "+registered.AccessToken).Do(p.TB, "PUT", "/v1/users/"+a.ID+"/credentials/"+a.Credential+"/validate",
		Object("otp", SentCode(p.TB, admin, email)), 200)
	return a
}

// Account registers a user, assigns a role and signs in.
func (p *Process) Account(admin *Client, email, role string) Account {
	p.TB.Helper()
	a := p.Register(admin, email)
	admin.Do(p.TB, "PUT", "/v1/users/"+a.ID+"/roles", Object("roles", []string{role}), 200)
	a.Client = p.SignIn(email, CustomerPassword)
	return a
}

// Customer registers a user and signs in from a network.
func (p *Process) Customer(admin *Client, email, network string) Account {
	p.TB.Helper()
	a := p.Register(admin, email)
	var tokens struct {
		AccessToken string `json:"access_token"`
		DeviceToken string `json:"device_token"`
	}
	p.Client().From(network).Do(p.TB, "POST", "/authenticate", Object("user_id", email, "password", CustomerPassword), 200).Decode(p.TB, &tokens)
	a.Client, a.DeviceToken = p.Client("Authorization", "Bearer "+tokens.AccessToken), tokens.DeviceToken
	return a
}

// RegistrationOf returns the body of a registration.
func RegistrationOf(kind, value, password string) string {
	return Object("credential_type", kind, "credential_value", value, "password", password, "terms_accepted", true, "privacy_policy_accepted", true)
}

// CredentialOf returns the body of a request that adds a credential.
func CredentialOf(kind, value string) string {
	return Object("credential_type", kind, "credential_value", value, "password", CustomerPassword)
}

// SentMessages returns the messages that were sent to an address, the newest first.
func SentMessages(tb testing.TB, admin *Client, to string) (texts []string) {
	tb.Helper()
	var sent struct {
		Data []struct{ Subject, Text string }
	}
	admin.Do(tb, "GET", "/v1/notifications/deliveries?limit=100&sort=-created_at&search.to="+url.QueryEscape(to), "", 200).Decode(tb, &sent)
	for _, d := range sent.Data {
		texts = append(texts, d.Subject+"\n"+d.Text)
	}
	return texts
}

// OTPPattern matches a one-time code in a message.
var OTPPattern = regexp.MustCompile(`\b\d{6}\b`)

// SentCode returns the newest one-time code that was sent to an address.
func SentCode(tb testing.TB, admin *Client, to string) string {
	tb.Helper()
	for _, text := range SentMessages(tb, admin, to) {
		if code := OTPPattern.FindString(text); code != "" {
			return code
		}
	}
	tb.Fatalf("no code was sent to %s", to)
	return ""
}

// StreamReader reads the notifications of a user from successive streams.
type StreamReader struct {
	mu  sync.Mutex
	ids []string // ids of the message frames, in order
	log []string // types of the other frames
}

// Seen returns the ids of the message frames.
func (r *StreamReader) Seen() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.ids)
}

// Received reports whether a frame of another type was received.
func (r *StreamReader) Received(event string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Contains(r.log, event)
}

// Follow opens a stream that resumes after the last message, and returns a channel that is closed at its end.
func (r *StreamReader) Follow(tb testing.TB, c *Client) <-chan struct{} {
	tb.Helper()
	ended := r.tryFollow(tb, c)
	if ended == nil {
		tb.Fatal("the user has too many streams")
	}
	return ended
}

// tryFollow is follow that returns nil when the user has too many streams.
func (r *StreamReader) tryFollow(tb testing.TB, c *Client) <-chan struct{} {
	tb.Helper()
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, c.URL+"/v1/notifications/sse", nil)
	if err != nil {
		tb.Fatal(err)
	}
	for i := 0; i+1 < len(c.Headers); i += 2 {
		request.Header.Set(c.Headers[i], c.Headers[i+1])
	}
	if ids := r.Seen(); len(ids) > 0 {
		request.Header.Set("Last-Event-ID", ids[len(ids)-1])
	}
	response, err := (&http.Transport{ResponseHeaderTimeout: testenv.Limit()}).RoundTrip(request)
	if err != nil {
		tb.Fatal(err)
	}
	if response.StatusCode == http.StatusTooManyRequests {
		response.Body.Close()
		return nil
	}
	if response.StatusCode != http.StatusOK {
		tb.Fatalf("stream: got %s", response.Status)
	}
	ended := make(chan struct{})
	opened := make(chan bool, 1)
	go func() {
		defer close(ended)
		defer response.Body.Close()
		r.read(response.Body, opened)
		close(opened)
	}()
	if !testenv.Receive(tb, "the frame open", opened) {
		tb.Fatal("the stream ended before its frame open")
	}
	return ended
}

// FollowSoon is follow for a user whose streams on a killed node still count for a few seconds.
func (r *StreamReader) FollowSoon(tb testing.TB, c *Client) (ended <-chan struct{}) {
	tb.Helper()
	testenv.Wait(tb, "the streams of the killed node to be forgotten", func() bool { ended = r.tryFollow(tb, c); return ended != nil })
	return ended
}

// read reads frames, and ignores an incomplete one at the end.
func (r *StreamReader) read(body io.Reader, opened chan<- bool) {
	lines := bufio.NewScanner(body)
	var id, event string
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch {
		case name == "id":
			id = value
		case name == "event":
			event = value
		case lines.Text() == "":
			r.mu.Lock()
			if event == "message" {
				r.ids = append(r.ids, id)
			} else if event != "" {
				r.log = append(r.log, event)
			}
			r.mu.Unlock()
			if event == "open" {
				opened <- true
			}
			id, event = "", ""
		}
	}
}

// AllNotifications returns the ids of a user's notifications that a filter of the list selects, the oldest first.
func AllNotifications(tb testing.TB, c *Client, user, filter string) []string {
	tb.Helper()
	var ids []string
	for {
		var part Page
		c.Do(tb, "GET", fmt.Sprintf("/v1/notifications?search.user_id=%s&%s&sort=created_at&limit=1000&offset=%d", user, filter, len(ids)), "", 200).Decode(tb, &part)
		for _, row := range part.Data {
			var n struct{ ID string }
			if err := json.Unmarshal(row, &n); err != nil {
				tb.Fatal(err)
			}
			ids = append(ids, n.ID)
		}
		if len(part.Data) == 0 {
			return ids
		}
	}
}
