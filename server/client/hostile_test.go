package client_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"kontor/server/client"
)

// serve runs a hostile service and returns a client with credentials.
func serve(t *testing.T, handler http.HandlerFunc, options ...client.Option) *client.Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	options = append([]client.Option{client.WithToken("secret-token"), client.WithAPIKey("secret-key"), client.WithBackoff(time.Millisecond, time.Millisecond)}, options...)
	return must(client.New(server.URL, options...))(t)
}

func TestHostile_RedirectsAreNotFollowed(t *testing.T) {
	var arrived atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { arrived.Add(1) }))
	defer other.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		kontor := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, status) })
		_, err := kontor.Customers.Get(t.Context(), "1")
		if !errors.Is(err, client.ErrUnexpected) {
			t.Errorf("%d: got %v", status, err)
		}
		if err := must(client.New(other.URL))(t).SignIn(t.Context(), "anna", "password"); err == nil {
			t.Errorf("%d: signed in with an empty answer", status)
		}
		for _, err := range kontor.Notifications.Stream(t.Context()) {
			if !errors.Is(err, client.ErrUnexpected) {
				t.Errorf("%d: the stream: got %v", status, err)
			}
		}
	}
	if n := arrived.Load(); n != 5 { // the sign-ins
		t.Errorf("%d requests arrived at the other address", n)
	}
}

func TestHostile_AnswersAreBounded(t *testing.T) {
	endless := func(w http.ResponseWriter, start string) {
		w.Header().Set("Content-Type", "application/json")
		_, err := io.WriteString(w, start)
		for err == nil {
			_, err = io.WriteString(w, strings.Repeat("x", 64<<10))
		}
	}
	limit := client.WithMaxAnswer(1 << 20)
	kontor := serve(t, func(w http.ResponseWriter, _ *http.Request) { endless(w, `{"id":"`) }, limit)
	if _, err := kontor.Customers.Get(t.Context(), "1"); !errors.Is(err, client.ErrTooLarge) {
		t.Errorf("got %v", err)
	}
	kontor = serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		endless(w, `{"message":"`)
	}, limit)
	var failure *client.Error
	if _, err := kontor.Customers.Get(t.Context(), "1"); !errors.As(err, &failure) || failure.Status != 500 || len(err.Error()) > 1000 {
		t.Errorf("an endless error: got %.200v", err)
	}
	kontor = serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, err := io.WriteString(w, "data: ")
		for err == nil {
			_, err = io.WriteString(w, strings.Repeat("x", 64<<10))
		}
	}, limit)
	for _, err := range kontor.Notifications.Stream(t.Context()) {
		if !errors.Is(err, client.ErrTooLarge) {
			t.Errorf("an endless frame: got %v", err)
		}
	}
}

func TestHostile_OtherAnswersAreErrors(t *testing.T) {
	for name, c := range map[string]struct {
		status      int
		media, body string
	}{
		"a page of a proxy": {200, "text/html", "<html>"}, "no media type": {200, "", `{"id":"1"}`}, "a broken media type": {200, ";;", `{}`},
		"broken JSON": {200, "application/json", `{"id":`}, "null": {200, "application/json", `null`}, "another type": {200, "application/json", `[]`},
		"wrong members": {200, "application/json", `{"id":7}`}, "nothing": {200, "application/json", ``}, "two values": {200, "application/json", `{}{}`},
		"a broken date": {200, "application/json", `{"date_of_birth":"2026-13-45"}`},
	} {
		kontor := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = []string{c.media}
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.body)
		})
		if got, err := kontor.Customers.Get(t.Context(), "1"); !errors.Is(err, client.ErrUnexpected) {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
	}
	for name, body := range map[string]string{"HTML": "<html>secrets", "an empty object": `{}`, "a list": `[1]`, "an odd code": `{"message":"x","code":7}`, "nothing": ""} {
		kontor := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, body)
		})
		var failure *client.Error
		if _, err := kontor.Customers.Get(t.Context(), "1"); !errors.As(err, &failure) || failure.Status != 403 || failure.Code != "" || strings.Contains(err.Error(), "secrets") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// A page that promises more rows but has none, or a link to itself, must not make an endless loop.
func TestHostile_ListsEnd(t *testing.T) {
	kontor := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.HasPrefix(r.URL.Path, "/v1/chats") {
			w.Header().Set("Link", `<https://evil.example/v1/chats?before=same>; rel="next"`)
			_, _ = io.WriteString(w, `[{"id":"1"}]`)
			return
		}
		_, _ = io.WriteString(w, `{"data":[],"has_more":true}`)
	})
	for _, err := range kontor.Customers.All(t.Context(), client.CustomersListParams{}) {
		if !errors.Is(err, client.ErrUnexpected) {
			t.Errorf("got %v", err)
		}
	}
	rows := 0
	for _, err := range kontor.Chats.All(t.Context(), client.ChatsListParams{}) {
		if err != nil && !errors.Is(err, client.ErrUnexpected) {
			t.Errorf("got %v", err)
		}
		rows++
	}
	if rows > 3 {
		t.Errorf("%d rows", rows)
	}
}

// silent is the body of an answer that never ends.
type silent struct{ ctx context.Context }

func (s silent) Read([]byte) (int, error) {
	<-s.ctx.Done()
	return 0, s.ctx.Err()
}

func (silent) Close() error { return nil }

func TestHostile_SlowAnswersTimeOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, requests := time.Now(), 0
		slow := func(r *http.Request) (*http.Response, error) {
			requests++
			response := respond(r, 200, "")
			response.Body = silent{r.Context()}
			return response, nil
		}
		kontor := offline(t, slow, client.WithToken("token"), client.WithTimeout(20*time.Second))
		if _, err := kontor.Customers.Get(t.Context(), "1"); !errors.Is(err, client.ErrTimeout) || time.Since(began) != 20*time.Second || requests != 1 {
			t.Errorf("got %v after %v and %d requests", err, time.Since(began), requests)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := kontor.Customers.Get(ctx, "1"); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, client.ErrTimeout) {
			t.Errorf("with a deadline of the caller: got %v", err)
		}
	})
}

// A connection that died without a word is replaced.
func TestHostile_SilentStreamsReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var resumed []string
		kontor := offline(t, func(r *http.Request) (*http.Response, error) {
			resumed = append(resumed, r.Header.Get("Last-Event-ID"))
			response := respond(r, 200, "", "Content-Type", "text/event-stream")
			head := "id: 7\r\nevent: message\r\ndata: {\"id\":\"7\"}\r\n\r\n: comment\n\nevent: news\ndata: 1\n\ndata: cut off"
			response.Body = struct {
				io.Reader
				io.Closer
			}{io.MultiReader(strings.NewReader(head), silent{r.Context()}), silent{}}
			return response, nil
		}, client.WithToken("token"), client.WithBackoff(time.Second, time.Minute))
		began, frames := time.Now(), 0
		for frame, err := range kontor.Notifications.Stream(t.Context(), client.After("5")) {
			if err != nil {
				t.Fatal(err)
			}
			if frame.Event == "message" && (frame.ID != "7" || frame.Message == nil || frame.Message.ID != "7") || frame.Event == "news" && frame.Message != nil {
				t.Errorf("got %+v", frame)
			}
			if frames++; frames == 5 {
				break
			}
		}
		if strings.Join(resumed, " ") != "5 7 7" || time.Since(began) < 180*time.Second || time.Since(began) > 200*time.Second {
			t.Errorf("resumed after %q in %v", resumed, time.Since(began))
		}
	})
}
