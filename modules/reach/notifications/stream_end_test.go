package notifications_test

import (
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/server/settings"
)

func TestStream_EndsWithSessionRightAndToken(t *testing.T) {
	s := servertest.Start(t, heartbeat(50*time.Millisecond), func(o *settings.Settings) { o.Auth.AccessToken = 10 * time.Minute })
	until := func(l *streamClient) {
		t.Helper()
		for f, ok := l.event(); ok; f, ok = l.event() {
			if f.Event == "close" {
				t.Errorf("got %+v, want it only at shutdown", f)
			}
		}
	}
	leaving := s.User(access.Customer)
	l := open(t, s.Address, "GET", leaving.Token)
	l.expect("open")
	leaving.Do("POST", "/v1/logout", nil).Expect(t, 200)
	until(l)

	demoted := s.User(access.Customer)
	l = open(t, s.Address, "GET", demoted.Token)
	l.expect("open")
	s.Admin().Do("PUT", "/v1/users/"+demoted.UserID+"/roles", map[string]any{"roles": []string{"Registrant"}}).Expect(t, 200)
	until(l)

	l = open(t, s.Address, "GET", s.User(access.Customer).Token)
	l.expect("open")
	s.Clock.Advance(10*time.Minute + time.Second)
	until(l)
}

// An open stream is no use of its session: without requests, the session becomes idle and the stream ends.
func TestStream_EndsWithAnIdleSession(t *testing.T) {
	s := servertest.Start(t, func(o *settings.Settings) { o.Auth.SessionIdle = 10 * time.Minute })
	idle, busy := s.User(access.Customer), s.User(access.Customer)
	ending, staying := open(t, s.Address, "GET", idle.Token), open(t, s.Address, "GET", busy.Token)
	ending.expect("open")
	staying.expect("open")
	s.Clock.Advance(9 * time.Minute)
	busy.Do("GET", "/v1/users/me", nil).Expect(t, 200)
	s.Clock.Advance(2 * time.Minute)
	if err := s.Auth.SweepSessions(t.Context()); err != nil {
		t.Fatal(err)
	}
	ending.expectEnd()
	id := notified(t, s, systemEvent(busy.UserID))[0]
	if f := staying.expect("message"); f.ID != id {
		t.Errorf("the other stream got %+v", f)
	}
	idle.Do("GET", "/v1/users/me", nil).Expect(t, 401)
}

func TestStream_IsRejectedBeyondTheLimitOfAUser(t *testing.T) {
	s := servertest.Start(t, func(o *settings.Settings) { o.Notifications.SSE.ConnectionsPerUser = 3 })
	anna, beat := s.User(access.Customer), s.User(access.Customer)
	var lines []*streamClient
	for range 3 {
		l := open(t, s.Address, "GET", anna.Token)
		l.expect("open")
		lines = append(lines, l)
	}
	refused := anna.Do("GET", path+"/sse", nil).Expect(t, http.StatusTooManyRequests)
	if !strings.Contains(refused.Body, `"notifications.too_many_connections"`) || refused.Header.Get("Retry-After") == "" {
		t.Errorf("got %s, Retry-After %q", refused.Body, refused.Header.Get("Retry-After"))
	}
	open(t, s.Address, "GET", beat.Token).expect("open")
	_ = lines[0].conn.Close()
	eventually(t, func() bool {
		l := open(t, s.Address, "GET", anna.Token)
		defer l.conn.Close()
		return l.Response.StatusCode == 200
	})
}

func TestStream_SendsCloseAtShutdown(t *testing.T) {
	s := servertest.Start(t)
	anna := s.User(access.Customer)
	l := open(t, s.Address, "GET", anna.Token)
	l.expect("open")
	s.Notifications.Drain()
	if f := l.expect("close"); f.member(t, "reason") != "server_shutdown" {
		t.Errorf("got %+v", f)
	}
	l.expectEnd()
	refused := anna.Do("GET", path+"/sse", nil).Expect(t, 503)
	if refused.Body != "server shutting down" || !strings.HasPrefix(refused.Header.Get("Content-Type"), "text/plain") {
		t.Errorf("got %q, %s", refused.Body, refused.Header.Get("Content-Type"))
	}
}

func TestStream_DropsAClientThatNeverReadsAndServesOthers(t *testing.T) {
	s := servertest.Start(t, func(o *settings.Settings) { o.Notifications.SSE.ConnectionsPerUser = 200 })
	anna := s.User(access.Customer)
	deaf := open(t, s.Address, "GET", anna.Token)
	var lines []*streamClient
	for range 100 {
		l := open(t, s.Address, "GET", anna.Token)
		l.expect("open")
		lines = append(lines, l)
	}
	big := customerEvent(anna.UserID)
	big.Kind, big.Content = "written", strings.Repeat("x", 32<<10)
	const notices = 90 // some 3 MB for each
	for range notices {
		notify(t, s.DB, s.Notifications, big)
		for _, l := range lines {
			l.expect("message")
		}
	}
	eventually(t, func() bool {
		return strings.Contains(metricsOf(t, s), `kontor_streams_ended_total{reason="slow"} 1`)
	})
	_, _ = io.Copy(io.Discard, deaf.reader) // ends: the server has let go
}

func metricsOf(t testing.TB, s *servertest.Server) string {
	return s.Admin().Do("GET", "/metrics", nil).Expect(t, 200).Body
}

func TestStream_ReleasesTheResourcesOfDeadClients(t *testing.T) {
	s := servertest.Start(t, func(o *settings.Settings) { o.Notifications.SSE.ConnectionsPerUser = 1000 })
	anna := s.User(access.Customer)
	open(t, s.Address, "GET", anna.Token).expect("open")
	before, files := runtime.NumGoroutine(), openFiles()
	var lines []*streamClient
	for range 300 {
		l := open(t, s.Address, "GET", anna.Token)
		l.expect("open")
		lines = append(lines, l)
	}
	for i, l := range lines {
		if i%2 == 0 {
			_ = l.conn.(*net.TCPConn).SetLinger(0) // a reset instead of an end
		}
		_ = l.conn.Close()
	}
	eventually(t, func() bool { return strings.Contains(metricsOf(t, s), "kontor_streams_open 1\n") })
	eventually(t, func() bool { return runtime.NumGoroutine() <= before+10 && openFiles() <= files+10 })
}

// openFiles returns the number of open descriptors of this process; zero if the system does not report it.
func openFiles() int {
	entries, _ := os.ReadDir("/proc/self/fd")
	return len(entries)
}
