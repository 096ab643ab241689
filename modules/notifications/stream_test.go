package notifications_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"kontor/modules/notice"
	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/server/settings"
	"kontor/store"
)

func heartbeat(d time.Duration) servertest.Option {
	return func(s *settings.Settings) { s.Notifications.SSE.Heartbeat = d }
}

// systemNotice is one that is told again when it never reached a stream.
func systemNotice(recipients ...string) notice.Notice {
	id := store.NewID()
	return notice.Notice{Event: notice.CustomerStatusChanged, CustomerID: id, Type: access.Customers, RecordID: id,
		Recipients: recipients, Args: map[string]any{"Name": "Vreni Muster", "From": "pending", "To": "in_review"}}
}

func TestStream_HasTheHeadThatIsPromised(t *testing.T) {
	s := servertest.Start(t)
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
		l.quiet()
	}
	if l := open(t, s.Address, "GET", anna.Token); l.Response.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Error("an origin is allowed without one in the request")
	}
	head := anna.Do("HEAD", path+"/sse", nil).Expect(t, 200)
	if head.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("HEAD: got %v", head.Header)
	}
}

func TestStream_AnswersPreflightsLikeAllRoutes(t *testing.T) {
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
	for _, l := range []*line{german, french, other} {
		l.expect("open")
	}
	n := customerNotice(anna.UserID)
	id := told(t, s, n)[0]
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
	other.quiet()
	german.quiet()
	eventually(t, func() bool { return list(t, anna, "").Data[0]["sent_at"] != nil })
}

// eventually waits until something is so.
func eventually(t testing.TB, so func() bool) {
	t.Helper()
	end := time.Now().Add(10 * time.Second)
	for !so() {
		if time.Now().After(end) {
			t.Fatal("it did not come about")
		}
		pause := time.NewTimer(5 * time.Millisecond)
		<-pause.C
	}
}

func TestStream_ReplaysWhatTheSystemHadToSayOldestFirst(t *testing.T) {
	s := servertest.Start(t)
	anna := s.User(access.Customer)
	var missed []string
	for range 3 {
		told(t, s, customerNotice(anna.UserID)) // not of the system: the list has it
		missed = append(missed, told(t, s, systemNotice(anna.UserID))[0])
	}
	l := open(t, s.Address, "GET", anna.Token)
	l.expect("open")
	for _, id := range missed {
		if f := l.expect("message"); f.ID != id {
			t.Fatalf("got %+v, want %s", f, id)
		}
	}
	l.quiet()
	eventually(t, func() bool { return count(t, s.DB, "notifications WHERE sent_at IS NULL AND system = TRUE") == 0 })
	again := open(t, s.Address, "GET", anna.Token)
	again.expect("open")
	again.quiet()
}

func TestStream_ReplaysAtMostAHundred(t *testing.T) {
	s := servertest.Start(t)
	anna := s.User(access.Customer)
	for range 103 {
		notify(t, s.DB, s.Notifications, systemNotice(anna.UserID))
	}
	l := open(t, s.Address, "GET", anna.Token)
	l.expect("open")
	for range 100 {
		l.expect("message")
	}
	l.quiet()
}

func TestStream_ResumesBehindTheLastEvent(t *testing.T) {
	s := servertest.Start(t)
	anna := s.User(access.Customer)
	var ids []string
	for i := range 250 {
		n := customerNotice(anna.UserID)
		if i%2 == 0 {
			n = systemNotice(anna.UserID)
		}
		ids = append(ids, told(t, s, n)[0])
	}
	l := open(t, s.Address, "GET", anna.Token, "Last-Event-ID", ids[9])
	l.expect("open")
	for i, id := range ids[10:] {
		if f := l.expect("message"); f.ID != id {
			t.Fatalf("frame %d: got %s, want %s", i, f.ID, id)
		}
	}
	l.quiet()
	next := told(t, s, customerNotice(anna.UserID))[0]
	if f := l.expect("message"); f.ID != next {
		t.Errorf("live: got %s, want %s", f.ID, next)
	}
}

func TestStream_TellsToReloadForAnEventThatIsNoneOfTheUser(t *testing.T) {
	s := servertest.Start(t)
	anna, beat := s.User(access.Customer), s.User(access.Customer)
	foreign := told(t, s, systemNotice(beat.UserID))[0]
	told(t, s, systemNotice(anna.UserID))
	for _, id := range []string{foreign, store.NewID(), "nonsense", strings.Repeat("x", 5000)} {
		l := open(t, s.Address, "GET", anna.Token, "Last-Event-ID", id)
		l.expect("open")
		if f := l.expect("reset"); f.member(t, "reason") == "" {
			t.Errorf("got %+v, want a reason", f)
		}
		l.quiet()
		_ = l.conn.Close()
	}
}

func TestStream_LosesAndDoublesNothingWhileNoticesAreWritten(t *testing.T) {
	s := servertest.Start(t, func(o *settings.Settings) { o.Notifications.SSE.ConnectionsPerUser = 100 })
	anna := s.User(access.Customer)
	first := told(t, s, customerNotice(anna.UserID))[0]
	const notices = 300
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range notices {
			notify(t, s.DB, s.Notifications, customerNotice(anna.UserID))
		}
	}()
	var lines []*line
	for range 12 {
		lines = append(lines, open(t, s.Address, "GET", anna.Token, "Last-Event-ID", first))
	}
	<-done
	ids := allIDs(t, s.DB, anna.UserID)[1:]
	for i, l := range lines {
		l.expect("open")
		for n, id := range ids {
			if f := l.expect("message"); f.ID != id {
				t.Fatalf("stream %d, frame %d: got %s, want %s", i, n, f.ID, id)
			}
		}
		l.quiet()
	}
}

// allIDs are the copies of a user in their order.
func allIDs(t testing.TB, db *store.DB, user string) []string {
	t.Helper()
	rows, err := db.Query(t.Context(), `SELECT id FROM notifications WHERE user_id = $1 ORDER BY created_at, id`, user)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var ids []string
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return ids
}

func TestStream_SendsSignsOfLife(t *testing.T) {
	s := servertest.Start(t, heartbeat(50*time.Millisecond))
	l := open(t, s.Address, "GET", s.User(access.Customer).Token)
	l.expect("open")
	for range 3 {
		if f, ok := l.next(); !ok || f.Comment != "keepalive" || f.Event != "" {
			t.Fatalf("got %+v, want a keepalive", f)
		}
	}
}

func TestStream_EndsWithSessionRightAndToken(t *testing.T) {
	s := servertest.Start(t, heartbeat(50*time.Millisecond), func(o *settings.Settings) { o.Auth.AccessToken = 10 * time.Minute })
	until := func(l *line) {
		t.Helper()
		for {
			if f, ok := l.next(); !ok {
				return
			} else if f.Event == "close" {
				t.Errorf("got %+v, which is for a server that goes down", f)
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

func TestStream_IsRefusedBeyondTheLimitOfAUser(t *testing.T) {
	s := servertest.Start(t, func(o *settings.Settings) { o.Notifications.SSE.ConnectionsPerUser = 3 })
	anna, beat := s.User(access.Customer), s.User(access.Customer)
	var lines []*line
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

func TestStream_SaysGoodByeWhenTheServerGoesDown(t *testing.T) {
	s := servertest.Start(t)
	anna := s.User(access.Customer)
	l := open(t, s.Address, "GET", anna.Token)
	l.expect("open")
	s.Notifications.Drain()
	if f := l.expect("close"); f.member(t, "reason") != "server_shutdown" {
		t.Errorf("got %+v", f)
	}
	if f, ok := l.next(); ok {
		t.Errorf("got %+v behind the good-bye", f)
	}
	refused := anna.Do("GET", path+"/sse", nil).Expect(t, 503)
	if refused.Body != "server shutting down" || !strings.HasPrefix(refused.Header.Get("Content-Type"), "text/plain") {
		t.Errorf("got %q, %s", refused.Body, refused.Header.Get("Content-Type"))
	}
}

func TestStream_DropsAClientThatNeverReadsAndKeepsTheOthers(t *testing.T) {
	s := servertest.Start(t, func(o *settings.Settings) { o.Notifications.SSE.ConnectionsPerUser = 200 })
	anna := s.User(access.Customer)
	deaf := open(t, s.Address, "GET", anna.Token)
	var lines []*line
	for range 100 {
		l := open(t, s.Address, "GET", anna.Token)
		l.expect("open")
		lines = append(lines, l)
	}
	big := customerNotice(anna.UserID)
	big.Event, big.Content = "written", strings.Repeat("x", 32<<10)
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
	return s.Anonymous().Do("GET", "/metrics", nil).Expect(t, 200).Body
}

func TestTrigger_TellsEveryoneWhoIsConnected(t *testing.T) {
	s := servertest.Start(t)
	anna, beat, carla := s.User(access.Customer), s.User(access.Customer), s.User(access.Customer)
	first, second := open(t, s.Address, "GET", anna.Token), open(t, s.Address, "GET", beat.Token)
	first.expect("open")
	second.expect("open")
	made := s.Keyed().Do("POST", path+"/trigger", map[string]any{"event": "test", "title_key": "a \n title", "user_ids": []string{carla.UserID, anna.UserID}}).
		Expect(t, 200).JSON(t)
	if made["recipients"] != 3.0 {
		t.Errorf("got %v, want the two who are connected and Carla", made)
	}
	for _, l := range []*line{first, second} {
		if f := l.expect("message"); f.member(t, "title") != "a \n title" || f.member(t, "event") != "test" {
			t.Errorf("got %+v", f)
		}
	}
	if p := list(t, carla, ""); p.Total != 1 {
		t.Errorf("Carla has %d", p.Total)
	}
}

func TestStream_AnswersWithTheEnvelopeWhileNothingCanBeRead(t *testing.T) {
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

func TestStream_FreesWhatDeadClientsHeld(t *testing.T) {
	s := servertest.Start(t, func(o *settings.Settings) { o.Notifications.SSE.ConnectionsPerUser = 1000 })
	anna := s.User(access.Customer)
	open(t, s.Address, "GET", anna.Token).expect("open")
	before, files := runtime.NumGoroutine(), openFiles()
	var lines []*line
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

// openFiles counts the descriptors of this process; zero where the system does not tell.
func openFiles() int {
	entries, _ := os.ReadDir("/proc/self/fd")
	return len(entries)
}
