package server_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"kontor/server"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
)

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
