package notifications_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"kontor/server/servertest"
	"kontor/store/testenv"
)

// frame is one frame of a stream. A comment has only its text.
type frame struct {
	ID, Event, Data, Comment string
}

// member returns a member of a frame's data.
func (f frame) member(t testing.TB, name string) any {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal([]byte(f.Data), &object); err != nil {
		t.Fatalf("data %q: %v", f.Data, err)
	}
	return object[name]
}

// streamClient is the client of an open stream.
type streamClient struct {
	t        testing.TB
	conn     net.Conn
	reader   *bufio.Reader
	Response *http.Response
}

// open requests a stream and reads the head of the answer.
func open(t testing.TB, address, method, token string, headers ...string) *streamClient {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	var b strings.Builder
	fmt.Fprintf(&b, "%s /v1/notifications/sse HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n", method, address, token)
	for i := 0; i+1 < len(headers); i += 2 {
		fmt.Fprintf(&b, "%s: %s\r\n", headers[i], headers[i+1])
	}
	b.WriteString("\r\n")
	if _, err := io.WriteString(conn, b.String()); err != nil {
		t.Fatal(err)
	}
	l := &streamClient{t: t, conn: conn, reader: bufio.NewReader(conn)}
	l.wait(testenv.Limit())
	if l.Response, err = http.ReadResponse(l.reader, nil); err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *streamClient) wait(d time.Duration) {
	if err := l.conn.SetReadDeadline(time.Now().Add(d)); err != nil {
		l.t.Fatal(err)
	}
}

// next reads a frame; ok is false at the end of the stream.
func (l *streamClient) next() (f frame, ok bool) {
	l.t.Helper()
	l.wait(testenv.Limit())
	return l.read()
}

func (l *streamClient) read() (f frame, ok bool) {
	l.t.Helper()
	f, err := readFrame(l.reader)
	if errors.Is(err, io.EOF) || err != nil && strings.Contains(err.Error(), "reset by peer") {
		return frame{}, false
	}
	if err != nil {
		l.t.Fatalf("read a frame: %v", err)
	}
	return f, true
}

// event reads a frame that is no heartbeat; ok is false at the end of the stream. Heartbeats come while a test takes long. They do not
// extend the time for the frame.
func (l *streamClient) event() (f frame, ok bool) {
	l.t.Helper()
	l.wait(testenv.Limit())
	for f, ok = l.read(); ok && f.Comment != ""; f, ok = l.read() {
	}
	return f, ok
}

// expect reads the next event, and fails unless it is the wanted one.
func (l *streamClient) expect(event string) frame {
	l.t.Helper()
	f, ok := l.event()
	if !ok || f.Event != event {
		l.t.Fatalf("got %+v (open: %t), want event %s", f, ok, event)
	}
	return f
}

// expectEnd reads the stream to its end, and fails if an event comes before.
func (l *streamClient) expectEnd() {
	l.t.Helper()
	for f, ok := l.event(); ok; f, ok = l.event() {
		l.t.Errorf("got %+v, want the end of the stream", f)
	}
}

// expectNothing fails if frames are on their way to streams of a user: it reports another event, whose frame must be the next. It returns
// the id of the notification.
func expectNothing(t testing.TB, s *servertest.Server, userID string, streams ...*streamClient) (id string) {
	t.Helper()
	id = notified(t, s, customerEvent(userID))[0]
	for _, l := range streams {
		if f := l.expect("message"); f.ID != id {
			t.Fatalf("got %+v, want no frame before that of %s", f, id)
		}
	}
	return id
}

func readFrame(r *bufio.Reader) (frame, error) {
	var f frame
	for {
		text, err := r.ReadString('\n')
		if err != nil {
			return f, err
		}
		text = strings.TrimSuffix(text, "\n")
		name, value, _ := strings.Cut(text, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case text == "":
			return f, nil
		case name == "":
			f.Comment = value
		case name == "id":
			f.ID = value
		case name == "event":
			f.Event = value
		case name == "data":
			f.Data += value
		}
	}
}
