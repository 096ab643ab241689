package server_test

import (
	"bufio"
	"strings"
	"testing"

	"kontor/server"
	"kontor/server/servertest"
)

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
