package specification_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"kontor/store/testenv"
)

// frames are the frames of an open stream.
type frames struct {
	header http.Header
	lines  *bufio.Scanner
}

// connect opens the stream of a caller.
func (b *bank) connect(t *testing.T, as, method string) *frames {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Limit())
	t.Cleanup(cancel)
	request, err := http.NewRequestWithContext(ctx, method, "http://"+b.Address+"/v1/notifications/sse", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+b.callers[as].Token)
	request.Header.Set("Origin", origin)
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	if response.StatusCode != http.StatusOK {
		t.Fatalf("the stream answers %s", response.Status)
	}
	return &frames{response.Header, bufio.NewScanner(response.Body)}
}

// next returns the data of the next frame of an event.
func (f *frames) next(t *testing.T, event string) map[string]any {
	t.Helper()
	for found := false; f.lines.Scan(); {
		data, isData := strings.CutPrefix(f.lines.Text(), "data: ")
		if found && isData {
			var object map[string]any
			if err := json.Unmarshal([]byte(data), &object); err != nil {
				t.Fatalf("%s: %v", data, err)
			}
			return object
		}
		found = found || f.lines.Text() == "event: "+event
	}
	t.Fatalf("the stream ended without %s", event)
	return nil
}

// message opens a stream, notifies anna, and returns the frame.
func message(t *testing.T, b *bank) map[string]any {
	t.Helper()
	f := b.connect(t, "anna", "GET")
	f.next(t, "open")
	b.notified(t, 1, `,"event":"customer_status_changed"`)
	for {
		if frame := f.next(t, "message"); frame["id"] == b.names["row"] {
			return frame
		}
	}
}

// submits has an advisor submit a document of a new customer of anna, whose status changes.
func (b *bank) submits(t *testing.T) {
	t.Helper()
	steps(do("anna", "POST /v1/customers", `{"first_name":"K","last_name":"Y","email":"kyc@example.ch"}`, 201).keep("new", "id"),
		do("advisor", "PUT /v1/customers/{new}/kyc", `{"documents":[{"type":"passport","number":"X1","expiry_date":"2099-05-01","country":"CHE"}]}`, 200))(t, b)
}

var channels = []string{"channels_attempted", "channels_sent", "channels_delivered", "channels_failed"}

func nullChannels(t *testing.T, b *bank) {
	frame := message(t, b)
	for _, name := range channels {
		if value, found := frame[name]; !found || value != nil {
			t.Errorf("%s is %v, want null", name, value)
		}
	}
}

var stream = []statement{
	{"Establishes a server-sent event stream (bearer required). Response headers: Content-Type text/event-stream; Cache-Control no-cache, no-transform;" +
		" Connection keep-alive; X-Accel-Buffering no. Access-Control-Allow-Origin echoes the request Origin header.", func(t *testing.T, b *bank) {
		b.send(t, do("nobody", "GET /v1/notifications/sse", "", 401))
		header := b.connect(t, "anna", "GET").header
		for name, want := range map[string]string{"Content-Type": "text/event-stream", "Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no",
			"Access-Control-Allow-Origin": origin} {
			if got := header.Get(name); got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
	}},
	{"A preflight with an Origin is answered by the global cross-origin layer (bodiless 200 when the origin is allowed, 403 otherwise); a preflight without Origin gets" +
		" 405 because only GET and POST are registered.", func(t *testing.T, b *bank) {
		allowed := b.send(t, do("nobody", "OPTIONS /v1/notifications/sse", "", 200).with("Origin", origin))
		if allowed.Body != "" {
			t.Errorf("the preflight has the body %s", allowed.Body)
		}
		b.send(t, do("nobody", "OPTIONS /v1/notifications/sse", "", 403).with("Origin", "https://evil.example"))
		b.send(t, do("nobody", "OPTIONS /v1/notifications/sse", "", 405))
		b.connect(t, "anna", "POST").next(t, "open")
	}},
	{"The service pushes notifications over the server-sent event stream GET /v1/notifications/sse.", func(t *testing.T, b *bank) { message(t, b) }},
	{"| open | event: open, data object with member `message` (fixed text Connection established) |", func(t *testing.T, b *bank) {
		if got := b.connect(t, "anna", "GET").next(t, "open")["message"]; got != "Connection established" {
			t.Errorf("got %v", got)
		}
	}},
	{"| message | event: message, data = a notification as JSON (fields id, user_id, customer_id, event, title, content, rec_type, link_url, link_text, read, created_at," +
		" sent_at, channels_attempted, channels_sent, channels_delivered, channels_failed) |", func(t *testing.T, b *bank) {
		frame := message(t, b)
		for _, m := range []string{"id uuid", "user_id uuid", "customer_id uuid", "event string", "title string", "content string", "rec_type string", "?link_url string",
			"?link_text string", "read boolean", "created_at date-time", "?sent_at date-time"} {
			hasMember(t, frame, m)
		}
	}},
	{"1. The four channels_* members are null on stream frames (the read routes return []).", nullChannels},
	{"2. A user may hold several concurrent connections", func(t *testing.T, b *bank) {
		one, other := b.connect(t, "anna", "GET"), b.connect(t, "anna", "POST")
		one.next(t, "open")
		other.next(t, "open")
		b.notified(t, 1, "")
		if a, c := one.next(t, "message"), other.next(t, "message"); a["id"] != c["id"] {
			t.Errorf("the connections got %v and %v", a, c)
		}
	}},
	{"2. user_ids is unioned with every connected stream client; it does not replace them.", func(t *testing.T, b *bank) {
		f := b.connect(t, "beat", "GET")
		f.next(t, "open")
		b.notified(t, 1, "")
		if frame := f.next(t, "message"); frame["user_id"] != b.names["beat"] {
			t.Errorf("got %v", frame)
		}
	}},
	{"4. Delivery channels of the notification module: in-app (stream), e-mail, SMS", func(t *testing.T, b *bank) { message(t, b) }},
	{"5. Event kinds seen: message_received (record type chats) and customer-status events.", func(t *testing.T, b *bank) {
		b.send(t, do("advisor", "POST /v1/chats/{chat}/messages", `{"content":"An event"}`, 201))
		row := first(t, b.page(t, "anna", "?search.event=message_received")["data"])
		if row["rec_type"] != "chats" || row["rec_id"] != b.names["chat"] {
			t.Errorf("got %v", row)
		}
		b.submits(t)
		first(t, b.page(t, "anna", "?search.event=customer_status_changed&search.rec_id={new}")["data"])
	}},
}
