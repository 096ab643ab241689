package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"kontor/server"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
	"kontor/server/servertest"
)

// waits is a handler that returns when its context ends.
func waits(ctx context.Context, _ endpoint.None) (thing, error) {
	<-ctx.Done()
	return thing{}, ctx.Err()
}

func TestDeadline_EndsARequestWithATemporaryError(t *testing.T) {
	var log bytes.Buffer
	address, _ := start(t, func(o *server.Options) {
		o.RequestTime = time.Millisecond
		o.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelError}))
		o.Endpoints = append(o.Endpoints, endpoint.Endpoint{Name: "waits", Method: "GET", Path: "/waits", Access: access.Public, Limit: ratelimit.None,
			Tag: "Test", Summary: "Test.", Handle: endpoint.JSON(200, waits)})
	})
	texts := map[string]bool{}
	for _, language := range []string{"en", "de", "fr", "it"} {
		response, body := servertest.Send(t, address, "GET", "/waits", "", "Accept-Language", language)
		var answer struct {
			Code, Class, Message string
			Retryable            bool
		}
		if err := json.Unmarshal([]byte(body), &answer); err != nil {
			t.Fatal(err)
		}
		if response.StatusCode != 503 || response.Header.Get("Retry-After") == "" || answer.Code != apierr.DeadlineExceeded.Code ||
			answer.Class != "temporary" || !answer.Retryable || response.Header.Get("Content-Language") != language {
			t.Errorf("%s: got %d %s", language, response.StatusCode, body)
		}
		texts[answer.Message] = true
	}
	if len(texts) != 4 {
		t.Errorf("the texts are %v", texts)
	}
	if log.Len() > 0 {
		t.Errorf("the log has %s", &log)
	}
}

// firstDeadline notes the deadline of a request before its body is received.
type firstDeadline struct {
	tokens
	at *atomic.Pointer[time.Time]
}

func (a firstDeadline) Bearer(c *fiber.Ctx) (*access.Caller, error) {
	at, _ := c.UserContext().Deadline()
	a.at.Store(&at)
	return a.tokens.Bearer(c)
}

// TestDeadline_RestartsAfterUploads checks that receiving an upload does not consume the time of its service. A service that
// bounds its own time has no deadline. Other requests have one deadline for all steps.
func TestDeadline_RestartsAfterUploads(t *testing.T) {
	var before atomic.Pointer[time.Time]
	serve := func(ctx context.Context, _ nameInput) (string, error) {
		if at, ok := ctx.Deadline(); !ok {
			return "none", nil
		} else if at.After(*before.Load()) {
			return "later", nil
		}
		return "the same", nil
	}
	address, _ := start(t, func(o *server.Options) {
		o.Auth = firstDeadline{at: &before}
		for path, row := range map[string]endpoint.Endpoint{"/small": {}, "/upload": {MaxBody: 3 << 20}, "/own": {OwnTime: true}} {
			row.Name, row.Method, row.Path, row.Tag, row.Summary = path, "POST", path, "Test", "Test."
			row.Access, row.Limit, row.Handle = access.SignedIn, ratelimit.None, endpoint.JSON(200, serve)
			o.Endpoints = append(o.Endpoints, row)
		}
		policy := &access.Current{}
		policy.Store(access.NewPolicy(access.PolicyData{Endpoints: map[string][]string{"user-a": {"POST /small", "POST /upload", "POST /own"}}}))
		o.Policy = policy
	})
	for path, want := range map[string]string{"/small": `"the same"`, "/upload": `"later"`, "/own": `"none"`} {
		if _, body := servertest.Send(t, address, "POST", path, `{"name":"x"}`, "Authorization", "Bearer user-a"); strings.TrimSpace(body) != want {
			t.Errorf("%s: the deadline is %s, want %s", path, body, want)
		}
	}
}

type testKey struct{}

func TestDeadline_NamesTheCallerToTheDatabase(t *testing.T) {
	who := func(ctx context.Context, _ endpoint.None) (string, error) {
		name, _ := ctx.Value(testKey{}).(string)
		return name, nil
	}
	address, _ := start(t, func(o *server.Options) {
		o.CallerKey = testKey{}
		for path, rule := range map[string]access.Rule{"/by-user": access.SignedIn, "/by-key": access.APIKey, "/by-network": access.Public} {
			o.Endpoints = append(o.Endpoints, endpoint.Endpoint{Name: path, Method: "GET", Path: path, Access: rule, Limit: ratelimit.None,
				Tag: "Test", Summary: "Test.", Handle: endpoint.JSON(http.StatusOK, who)})
		}
		policy := &access.Current{}
		policy.Store(access.NewPolicy(access.PolicyData{Endpoints: map[string][]string{"user-a": {"GET /by-user"}}}))
		o.Policy = policy
	})
	for path, want := range map[string]string{"/by-user": "user-a", "/by-key": "good-key", "/by-network": "127.0.0.1"} {
		headers := map[string][]string{"/by-user": {"Authorization", "Bearer user-a"}, "/by-key": {"X-API-Key", "good-key"}}[path]
		if _, body := servertest.Send(t, address, "GET", path, "", headers...); strings.TrimSpace(body) != `"`+want+`"` {
			t.Errorf("%s: the database works for %s, want %s", path, body, want)
		}
	}
}
