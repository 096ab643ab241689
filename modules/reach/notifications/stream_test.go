package notifications_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"kontor/modules/kit/event"
	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/server/settings"
	"kontor/store"
	"kontor/store/testenv"
)

func heartbeat(d time.Duration) servertest.Option {
	return func(s *settings.Settings) { s.Notifications.SSE.Heartbeat = d }
}

// systemEvent returns an event whose notifications are replayed until they reach a stream.
func systemEvent(recipients ...string) event.Event {
	id := store.NewID()
	return event.Event{Kind: event.CustomerStatusChanged, CustomerID: id, Type: access.Customers, RecordID: id,
		Recipients: recipients, Args: map[string]any{"Name": "Vreni Muster", "From": "pending", "To": "in_review"}}
}

func TestStream_HasTheHeadersOfTheAPI(t *testing.T) {
	s := servertest.Start(t, func(o *settings.Settings) { o.CORS.AllowedOrigins = []string{"https://app.example"} })
	anna := s.User(access.Customer)
	for _, method := range []string{"GET", "POST"} {
		l := open(t, s.Address, method, anna.Token, "Origin", "https://app.example", "X-Request-ID", "r1")
		if l.Response.StatusCode != 200 {
			t.Fatalf("%s: got %s", method, l.Response.Status)
		}
		for name, want := range map[string]string{"Content-Type": "text/event-stream", "Cache-Control": "no-cache, no-transform",
			"Connection": "keep-alive", "X-Accel-Buffering": "no", "Access-Control-Allow-Origin": "https://app.example", "X-Request-Id": "r1"} {
			if got := l.Response.Header.Values(name); len(got) != 1 || got[0] != want {
				t.Errorf("%s %s: got %q, want %q", method, name, got, want)
			}
		}
		if got := l.expect("open"); got.Data != `{"message":"Connection established"}` || got.ID != "" {
			t.Errorf("got %+v", got)
		}
		expectNothing(t, s, anna.UserID, l)
	}
	if l := open(t, s.Address, "GET", anna.Token); l.Response.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Error("an origin is allowed without one in the request")
	}
	for _, origin := range []string{"https://evil.example", "https://app.example.evil.example", "null", "http://app.example", "https://app.example:444"} {
		if l := open(t, s.Address, "GET", anna.Token, "Origin", origin); l.Response.StatusCode != 200 || l.Response.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: got %s and %q", origin, l.Response.Status, l.Response.Header.Get("Access-Control-Allow-Origin"))
		}
	}
	head := anna.Do("HEAD", path+"/sse", nil).Expect(t, 200)
	if head.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("HEAD: got %v", head.Header)
	}
}

func TestStream_AnswersPreflightsLikeAllEndpoints(t *testing.T) {
	s := servertest.Start(t, func(o *settings.Settings) { o.CORS.AllowedOrigins = []string{"https://app.example"} })
	nobody := s.Anonymous()
	if answer := nobody.With("Origin", "https://app.example").Do("OPTIONS", path+"/sse", nil); answer.Status != 200 || answer.Body != "" {
		t.Errorf("allowed: got %d %q", answer.Status, answer.Body)
	}
	if answer := nobody.With("Origin", "https://evil.example").Do("OPTIONS", path+"/sse", nil); answer.Status != 403 {
		t.Errorf("not allowed: got %d", answer.Status)
	}
	if answer := nobody.Do("OPTIONS", path+"/sse", nil); answer.Status != 405 || answer.Header.Get("Allow") != "GET, HEAD, POST" {
		t.Errorf("without an origin: got %d, Allow %q", answer.Status, answer.Header.Get("Allow"))
	}
	nobody.Do("GET", path+"/sse", nil).Expect(t, 401)
}

func TestStream_CarriesNotificationsInTheLanguageOfEachConnection(t *testing.T) {
	s := servertest.Start(t)
	anna, beat := s.User(access.Customer), s.User(access.Customer)
	german, french := open(t, s.Address, "GET", anna.Token, "Accept-Language", "de"), open(t, s.Address, "POST", anna.Token, "Accept-Language", "fr")
	other := open(t, s.Address, "GET", beat.Token)
	for _, l := range []*streamClient{german, french, other} {
		l.expect("open")
	}
	n := customerEvent(anna.UserID)
	id := notified(t, s, n)[0]
	f := german.expect("message")
	want := fmt.Sprintf(`{"id":%q,"user_id":%q,"customer_id":%q,"event":"customer_created","title":"Kunde Vreni Muster erfasst",`+
		`"content":"Der Kunde Vreni Muster wurde erfasst.","rec_type":"customers","link_url":"/customers/%s","link_text":"Kunde öffnen","read":false,`+
		`"created_at":"2026-01-31T08:15:30.123Z","sent_at":"2026-01-31T08:15:30.123Z",`+
		`"channels_attempted":null,"channels_sent":null,"channels_delivered":null,"channels_failed":null}`, id, anna.UserID, n.CustomerID, n.RecordID)
	if f.Data != want || f.ID != id {
		t.Errorf("got  %+v\nwant %s", f, want)
	}
	if f := french.expect("message"); f.member(t, "title") != "Client Vreni Muster saisi" || f.ID != id {
		t.Errorf("got %+v", f)
	}
	expectNothing(t, s, beat.UserID, other)
	expectNothing(t, s, anna.UserID, german)
	eventually(t, func() bool { return list(t, anna, "").Data[0]["sent_at"] != nil })
}

// eventually waits until a condition holds.
func eventually(t testing.TB, so func() bool) {
	t.Helper()
	testenv.Wait(t, "the condition to hold", so)
}

func TestStream_SendsHeartbeats(t *testing.T) {
	s := servertest.Start(t, heartbeat(50*time.Millisecond))
	l := open(t, s.Address, "GET", s.User(access.Customer).Token)
	l.expect("open")
	for range 3 {
		if f, ok := l.next(); !ok || f.Comment != "keepalive" || f.Event != "" {
			t.Fatalf("got %+v, want a keepalive", f)
		}
	}
}

func TestStream_AnswersWithTheErrorEnvelopeIfTheDatabaseFails(t *testing.T) {
	s := servertest.Start(t)
	known, unknown := s.User(access.Customer), s.User(access.Customer)
	known.Do("GET", path, nil).Expect(t, 200)
	for _, table := range []string{"sessions", "notifications"} {
		if err := s.DB.InTx(t.Context(), func(tx *store.Tx) error {
			_, err := tx.Exec(t.Context(), "ALTER TABLE "+table+" RENAME TO away_"+table)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		client := map[string]*servertest.Client{"sessions": unknown, "notifications": known}[table]
		refused := client.Do("GET", path+"/sse", nil).Expect(t, 503)
		if !strings.Contains(refused.Body, `"code":"auth_m.internal_server_error"`) || !strings.Contains(refused.Body, `"retryable":true`) ||
			refused.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: got %s", table, refused.Body)
		}
	}
}
