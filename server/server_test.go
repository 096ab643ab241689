package server_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"kontor/locales"
	"kontor/server"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
	"kontor/server/servertest"
)

func (storedError) Error() string { return "stored" }

func (thing) ETag() string { return "v1" }

func TestServe_ChecksInTheSpecifiedOrder(t *testing.T) {
	address, _ := start(t, nil)
	for _, c := range []struct {
		name, method, path, body, token string
		status                          int
		code                            string
	}{
		{"no token", "GET", thingPath, "", "", 401, "common.unauthorized"},
		{"bad token before bad path id", "GET", "/v1/things/x", "", "nonsense", 401, "common.unauthorized"},
		{"no grant before bad path id", "GET", "/v1/things/x", "", "user-other", 403, "common.rbac_no_rec_access"},
		{"bad path id", "GET", "/v1/things/x", "", "user-reader", 400, "common.invalid_input"},
		{"success", "GET", thingPath, "", "user-reader", 200, ""},
		{"no right to create before a broken body", "POST", "/v1/things", "{", "user-reader", 403, "common.rbac_no_rec_access"},
		{"broken body", "POST", "/v1/things", "{", "user-creator", 400, "common.invalid_input"},
		{"neither cache nor table", "GET", thingPath, "", "outage", 503, "auth_m.internal_server_error"},
		{"unknown route", "GET", "/v1/nothing", "", "", 404, "common.not_found"},
		{"another letter case", "GET", strings.ToUpper(thingPath), "", "user-reader", 404, "common.not_found"},
		{"a trailing slash", "GET", thingPath + "/", "", "user-reader", 404, "common.not_found"},
		{"two slashes", "GET", "/v1//things/x", "", "user-reader", 404, "common.not_found"},
		{"a panic", "GET", "/panics", "", "", 500, "common.server_error"},
		{"an error without a code", "GET", "/fails", "", "", 500, "common.server_error"},
	} {
		t.Run(c.name, func(t *testing.T) {
			response, body := servertest.Send(t, address, c.method, c.path, c.body, "Authorization", "Bearer "+c.token)
			if response.StatusCode != c.status || c.code != "" && !strings.Contains(body, `"code":"`+c.code+`"`) {
				t.Errorf("got %d %s, want %d %s", response.StatusCode, body, c.status, c.code)
			}
			if strings.Contains(body, "secret") {
				t.Errorf("the cause leaked: %s", body)
			}
		})
	}
}

func TestServe_AnswersInTheLanguageOfTheRequest(t *testing.T) {
	address, _ := start(t, nil)
	for lang, want := range map[string]string{"de-CH": "Unter dieser Adresse", "fr;q=0.9,xx": "Il n’y a rien", "it": "A questo indirizzo", "": "nothing at"} {
		response, body := servertest.Send(t, address, "GET", "/nothing", "", "Accept-Language", lang)
		if !strings.Contains(body, want) {
			t.Errorf("%s: got %s, want it to say %q", lang, body, want)
		}
		if got := response.Header.Get("Content-Language"); !locales.Known(got) || lang != "" && !strings.HasPrefix(lang, got) {
			t.Errorf("%s: got Content-Language %q", lang, got)
		}
	}
}

func TestServe_AnswersPreflightsWithoutABody(t *testing.T) {
	address, _ := start(t, nil)
	for origin, want := range map[string]int{"https://app.example": 200, "https://evil.example": 403, "null": 403, "": 405} {
		headers := []string{"Access-Control-Request-Method", "GET"}
		if origin != "" {
			headers = append(headers, "Origin", origin)
		}
		response, body := servertest.Send(t, address, "OPTIONS", thingPath, "", headers...)
		if response.StatusCode != want || want != 405 && body != "" {
			t.Errorf("origin %q: got %d %q, want %d", origin, response.StatusCode, body, want)
		}
		allowed := response.Header.Get("Access-Control-Allow-Origin")
		if (want == 200) != (allowed == origin && origin != "") {
			t.Errorf("origin %q: got Access-Control-Allow-Origin %q", origin, allowed)
		}
		if want == 405 && response.Header.Get("Allow") != "GET, HEAD" {
			t.Errorf("got Allow %q, want GET, HEAD", response.Header.Get("Allow"))
		}
	}
}

func TestIdempotency_RepeatsTheAnswerOfAKey(t *testing.T) {
	address, _ := start(t, nil)
	headers := []string{"Authorization", "Bearer user-creator", "Idempotency-Key", "k1"}
	if response, body := servertest.Send(t, address, "POST", "/v1/things", `{"name":"a"}`, headers...); response.StatusCode != 201 || !strings.Contains(body, "second") {
		t.Fatalf("first: got %d %s", response.StatusCode, body)
	}
	response, body := servertest.Send(t, address, "POST", "/v1/things", `{"name":"a"}`, headers...)
	if response.StatusCode != 201 || body != `{"id":"first"}` || response.Header.Get("Idempotency-Replayed") != "true" || response.Header.Get("ETag") != `"v1"` {
		t.Errorf("again: got %d %s, want the stored answer", response.StatusCode, body)
	}
	if response, body := servertest.Send(t, address, "POST", "/v1/things", `{"name":"b"}`, headers...); response.StatusCode != 422 {
		t.Errorf("another body: got %d %s, want 422", response.StatusCode, body)
	}
}

func TestServe_AnswersConditionalRequests(t *testing.T) {
	address, _ := start(t, nil)
	reader := []string{"Authorization", "Bearer user-reader"}
	response, _ := servertest.Send(t, address, "GET", thingPath, "", reader...)
	if response.Header.Get("ETag") != `"v1"` || response.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("got ETag %s, Cache-Control %s", response.Header.Get("ETag"), response.Header.Get("Cache-Control"))
	}
	for tag, want := range map[string]int{`"v1"`: 304, `W/"v1"`: 304, `"v0", "v1"`: 304, `*`: 304, `"v2"`: 200, `v1`: 200} {
		if response, body := servertest.Send(t, address, "GET", thingPath, "", append(reader, "If-None-Match", tag)...); response.StatusCode != want || want == 304 && body != "" {
			t.Errorf("%s: got %d %q, want %d", tag, response.StatusCode, body, want)
		}
	}
	head, body := servertest.Send(t, address, "HEAD", thingPath, "", reader...)
	if head.StatusCode != 200 || body != "" || head.Header.Get("ETag") != `"v1"` {
		t.Errorf("HEAD: got %d %q", head.StatusCode, body)
	}
}

func TestIdentify_KeepsValidRequestIDs(t *testing.T) {
	address, _ := start(t, nil)
	for id, kept := range map[string]bool{"abc-1.2_3:4": true, strings.Repeat("a", 128): true, strings.Repeat("a", 129): false, "a b": false, "<x>": false} {
		response, _ := servertest.Send(t, address, "GET", "/healthz", "", "X-Request-ID", id)
		if got := response.Header.Get("X-Request-ID"); (got == id) != kept || got == "" {
			t.Errorf("%.20q: got %q, kept should be %t", id, got, kept)
		}
	}
}

func TestIdentify_MakesUniqueRequestIDs(t *testing.T) {
	address, _ := start(t, nil)
	seen := map[string]bool{}
	for range 50 {
		began := time.Now().Truncate(time.Second)
		response, _ := servertest.Send(t, address, "GET", "/healthz", "")
		id, err := uuid.Parse(response.Header.Get("X-Request-ID"))
		if err != nil || id.Version() != 7 || id.Variant() != uuid.RFC4122 || seen[id.String()] {
			t.Fatalf("got %q, %v", response.Header.Get("X-Request-ID"), err)
		}
		seen[id.String()] = true
		seconds, _ := id.Time().UnixTime()
		if at := time.Unix(seconds, 0); at.Before(began) || at.After(time.Now()) {
			t.Errorf("%s is of %v", id, at)
		}
	}
}

func TestClientAddress_TrustsConfiguredProxiesOnly(t *testing.T) {
	for name, c := range map[string]struct {
		trusted   []netip.Prefix
		forwarded string
		want      string
	}{
		"nobody is trusted": {nil, "203.0.113.7", "127.0.0.1"},
		"the right-most":    {[]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, "6.6.6.6, 203.0.113.7", "203.0.113.7"},
		"past a proxy":      {[]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("10.0.0.0/8")}, "203.0.113.7, 10.1.1.1", "203.0.113.7"},
		"nonsense":          {[]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, "unknown", "unknown"},
		"nothing":           {[]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, "", "unknown"},
		"nonsense beside":   {[]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, "203.0.113.7, unknown, 127.0.0.1", "unknown"},
		"with a port":       {[]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, "203.0.113.7:4711", "203.0.113.7"},
		"IPv6 with a port":  {[]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, "[2001:db8:1:2::9]:443", "2001:db8:1:2::/64"},
		"IPv6":              {[]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"},
	} {
		t.Run(name, func(t *testing.T) {
			address, _ := start(t, func(o *server.Options) { o.TrustedProxies = c.trusted })
			if _, body := servertest.Send(t, address, "GET", "/public", "", "X-Forwarded-For", c.forwarded); !strings.Contains(body, `"network":"`+c.want+`"`) {
				t.Errorf("got %s, want network %s", body, c.want)
			}
		})
	}
}

func TestServe_AnswersBrokenHTTPWithoutQuotingIt(t *testing.T) {
	address, _ := start(t, nil)
	for name, c := range map[string]struct{ request, status string }{
		"two lengths":       {"POST /v1/things HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}", "400"},
		"no version":        {"GET /secret-token\r\n\r\n", "400"},
		"huge header":       {"GET / HTTP/1.1\r\nHost: a\r\nX-Secret: " + strings.Repeat("s", 40_000) + "\r\n\r\n", "431"},
		"declared too much": {"POST /v1/big HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 999999999\r\n\r\n", "413"},
		"unknown version":   {"GET /public HTTP/9.9\r\nHost: a\r\n\r\n", "400"},
		"unknown method":    {"BREW /v1/things HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "405"},
		"method elsewhere":  {"BREW /nothing HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "404"},
	} {
		t.Run(name, func(t *testing.T) {
			connection, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			defer connection.Close()
			fmt.Fprint(connection, c.request)
			response, err := http.ReadResponse(bufio.NewReader(connection), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			body, _ := io.ReadAll(response.Body)
			if got := response.Status[:3]; got != c.status {
				t.Errorf("got %s %s, want %s", response.Status, body, c.status)
			}
			if !json.Valid(body) || strings.Contains(strings.ToLower(string(body)), "secret") {
				t.Errorf("got %s, want our envelope without the request", body)
			}
			if response.Header.Get("Server") != "" {
				t.Error("there is a server banner")
			}
		})
	}
}

func TestNew_RejectsAnIncompleteTable(t *testing.T) {
	texts, _ := locales.Load()
	_, err := server.New(server.Options{Endpoints: []endpoint.Endpoint{{Name: "x"}}, Texts: texts, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.Contains(err.Error(), "access is not declared") {
		t.Errorf("got %v, want it to name what is missing", err)
	}
}

func TestServe_RejectsRepeatedHeaders(t *testing.T) {
	address, _ := start(t, func(o *server.Options) { o.RateLimits = false })
	const (
		host   = "Host: a\r\n"
		reader = "Authorization: Bearer user-reader\r\n"
		maker  = host + "Authorization: Bearer user-creator\r\n"
		typed  = "Content-Type: application/json\r\n"
		body   = "Content-Length: 12\r\n\r\n{\"name\":\"a\"}"
	)
	for name, c := range map[string]struct {
		request string
		status  int
	}{
		"one token":               {"GET " + thingPath + " HTTP/1.1\r\n" + host + reader + "\r\n", 200},
		"two tokens, good first":  {"GET " + thingPath + " HTTP/1.1\r\n" + host + reader + "authorization: Bearer x\r\n\r\n", 400},
		"two tokens, good second": {"GET " + thingPath + " HTTP/1.1\r\n" + host + "authorization: Bearer x\r\n" + reader + "\r\n", 400},
		"the same token twice":    {"GET " + thingPath + " HTTP/1.1\r\n" + host + reader + reader + "\r\n", 400},
		"two keys":                {"POST /v1/keyed HTTP/1.1\r\n" + host + "X-API-Key: good-key\r\nX-API-Key: bad\r\n\r\n", 400},
		"two idempotency keys":    {"POST /v1/things HTTP/1.1\r\n" + maker + typed + "Idempotency-Key: a\r\nIdempotency-Key: b\r\n" + body, 400},
		"two media types":         {"POST /v1/things HTTP/1.1\r\n" + maker + "content-type: text/plain\r\n" + typed + body, 415},
		"two codings":             {"POST /v1/things HTTP/1.1\r\n" + maker + typed + "Content-Encoding: identity\r\nContent-Encoding: gzip\r\n" + body, 415},
		"one of each":             {"POST /v1/things HTTP/1.1\r\n" + maker + typed + body, 201},
		"tags of two lines":       {"GET " + thingPath + " HTTP/1.1\r\n" + host + reader + "If-None-Match: \"x\"\r\nIf-None-Match: \"v1\"\r\n\r\n", 304},
	} {
		t.Run(name, func(t *testing.T) {
			response, answer := read(t, bufio.NewReader(dial(t, address, c.request)))
			if response.StatusCode != c.status {
				t.Errorf("got %d %s, want %d", response.StatusCode, answer, c.status)
			}
		})
	}
}

func TestServe_JoinsLinesOfListHeaders(t *testing.T) {
	address, _ := start(t, func(o *server.Options) { o.RateLimits = false })
	response, _ := read(t, bufio.NewReader(dial(t, address,
		"GET /v1/nothing HTTP/1.1\r\nHost: a\r\nAccept-Language: es\r\nAccept-Language: fr;q=0.5, it\r\n\r\n")))
	if got := response.Header.Get("Content-Language"); got != "it" {
		t.Errorf("got %s, want it", got)
	}
}

// TestCheckFraming_RejectsAmbiguousBodies sends requests whose body ends at different places for a proxy and the server.
func TestCheckFraming_RejectsAmbiguousBodies(t *testing.T) {
	address, _ := start(t, func(o *server.Options) { o.RateLimits = false })
	const chunks = "\r\nc\r\n{\"name\":\"a\"}\r\n0\r\n\r\n"
	for name, c := range map[string]struct {
		framing string
		status  int
	}{
		"length and chunks":            {"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n" + chunks, 400},
		"chunks and length":            {"transfer-encoding: chunked\r\ncontent-length: 4\r\n" + chunks, 400},
		"a coding that does not exist": {"Transfer-Encoding: identity\r\nContent-Length: 12\r\n\r\n{\"name\":\"a\"}", 400},
		"chunks":                       {"Transfer-Encoding: chunked\r\n" + chunks, 201},
		"a name that only looks so":    {"X-Content-Length: 4\r\nTransfer-Encoding: chunked\r\n" + chunks, 201},
		"a value that only looks so":   {"X: Transfer-Encoding:\r\nContent-Length: 12\r\n\r\n{\"name\":\"a\"}", 201},
	} {
		t.Run(name, func(t *testing.T) {
			from := bufio.NewReader(dial(t, address, "POST /v1/things HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"+
				"Authorization: Bearer user-creator\r\n"+c.framing+"GET "+thingPath+" HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"))
			response, answer := read(t, from)
			if response.StatusCode != c.status {
				t.Fatalf("got %d %s, want %d", response.StatusCode, answer, c.status)
			}
			if c.status == 400 {
				if rest, err := from.ReadString(0); rest != "" || err == nil || !response.Close || !strings.Contains(answer, "common.malformed_request") {
					t.Errorf("the connection went on after %s: %q %v", answer, rest, err)
				}
			}
		})
	}
}

func TestServe_ClosesTheConnectionForAllSpellings(t *testing.T) {
	address, _ := start(t, nil)
	for _, options := range []string{"close", "Close", "keep-alive, CLOSE", "keep-alive\r\nConnection: close"} {
		from := bufio.NewReader(dial(t, address, "GET /v1/nothing HTTP/1.1\r\nHost: a\r\nConnection: "+options+"\r\n\r\n"))
		if response, _ := read(t, from); !response.Close {
			t.Errorf("%q: the connection stays open", options)
		}
	}
}

// RFC 6750, section 3.1: who sent nothing learns how, who sent a bad token that it is bad.
func TestServe_SendsStandardChallenges(t *testing.T) {
	address, _ := start(t, func(o *server.Options) { o.RateLimits = false })
	for header, want := range map[string]string{
		"":                `Bearer realm="kontor"`,
		"Basic YTpi":      `Bearer realm="kontor"`,
		"Bearer no-token": `Bearer realm="kontor", error="invalid_token"`,
	} {
		response, body := servertest.Send(t, address, "GET", thingPath, "", "Authorization", header)
		if got := response.Header.Get("WWW-Authenticate"); response.StatusCode != 401 || got != want {
			t.Errorf("%q: got %d %s %q, want %q", header, response.StatusCode, body, got, want)
		}
	}
}

func TestLog_ContainsFailuresOfTheServiceOnly(t *testing.T) {
	answers := map[string]error{"/turned-away": apierr.Unavailable.RetryAfter(1), "/not-searched": apierr.QueryInvalidSearchField.Detail("field", "x"),
		"/bare": apierr.DatabaseError, "/failed": apierr.Unavailable.Wrap(errors.New("no disk"))}
	var log bytes.Buffer
	address, _ := start(t, func(o *server.Options) {
		o.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelError}))
		for path, err := range answers {
			o.Endpoints = append(o.Endpoints, endpoint.Endpoint{Name: path, Method: "GET", Path: path, Access: access.Public, Limit: ratelimit.None, Tag: "Test", Summary: "Test.",
				Handle: endpoint.JSON(200, func(context.Context, endpoint.None) (thing, error) { return thing{}, err })})
		}
	})
	for path := range answers {
		response, err := http.Get("http://" + strings.TrimPrefix(address, "http://") + path)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode < 500 || response.StatusCode == 503 && response.Header.Get("Retry-After") == "" {
			t.Errorf("%s: got %d, Retry-After %q", path, response.StatusCode, response.Header.Get("Retry-After"))
		}
	}
	if lines := strings.Count(log.String(), "level=ERROR"); lines != 1 || !strings.Contains(log.String(), "no disk") {
		t.Errorf("the log has %d errors: %s", lines, &log)
	}
}

// A method may be any text. The log contains standard methods only.
func TestLog_ContainsNoUnknownMethod(t *testing.T) {
	var log bytes.Buffer
	address, _ := start(t, func(o *server.Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	for _, lines := range []string{"", "Content-Length: 99999999\r\n", "Expect: 100-continue\r\nContent-Length: 2000000\r\n"} {
		connection := dial(t, address, "SECRET /v1/things HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"+lines+"\r\n")
		if response, body := read(t, bufio.NewReader(connection)); response.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("got %d %s", response.StatusCode, body)
		}
	}
	if strings.Contains(log.String(), "SECRET") || strings.Count(log.String(), "method=TRACE") != 3 {
		t.Errorf("the log is %s", &log)
	}
}
