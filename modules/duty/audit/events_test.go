package audit_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"kontor/modules/duty/audit"
	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/server/servertest"
	"kontor/server/settings"
	"kontor/store"
	"kontor/store/storetest"
)

// trail returns the entries that a search finds, newest first.
func trail(t *testing.T, s *servertest.Server, query string) []audit.Entry {
	t.Helper()
	return find(t, s, "limit=100&"+query).Data
}

// one returns the only entry that a search finds.
func one(t *testing.T, s *servertest.Server, query string) audit.Entry {
	t.Helper()
	found := trail(t, s, query)
	if len(found) != 1 {
		t.Fatalf("%s finds %d entries, want 1: %+v", query, len(found), found)
	}
	if e := found[0]; e.Kind != "change" && e.Detail == nil {
		t.Fatalf("%+v has no detail", e)
	}
	return found[0]
}

func TestEvents_CountFailedSignInsByValueAndNetwork(t *testing.T) {
	s := servertest.Start(t)
	s.Admin() // signs in before the failures count against it
	sent := s.Anonymous().With("X-Request-ID", "4f2a9c1e-77b0-4d3a-9c55-0e8d1b6f2a31")
	for range 3 {
		sent.Do("POST", "/authenticate", map[string]string{"user_id": servertest.AdminEmail, "password": "wrong"}).Expect(t, 401)
	}
	sent.Do("POST", "/authenticate", map[string]string{"user_id": "nobody@example.ch", "password": "hunter2hunter2"}).Expect(t, 401)
	found := trail(t, s, "search.kind=sign_in")
	if len(found) != 2 {
		t.Fatalf("got %+v", found)
	}
	known, unknown := found[0], found[1]
	if known.Detail.Count == 1 {
		known, unknown = unknown, known
	}
	if known.Detail.Count != 3 || known.RecID != s.Admin().UserID || known.RecType != "users" || known.Action != "auth.sign_in_failed" ||
		known.Actor != store.NilID || known.Network != "127.0.0.0/24" || known.RequestID != "4f2a9c1e-77b0-4d3a-9c55-0e8d1b6f2a31" || known.Detail.Endpoint != "POST /authenticate" {
		t.Errorf("known user: got %+v, %+v", known, known.Detail)
	}
	if unknown.Detail.Count != 1 || unknown.RecID != "" || len(unknown.Detail.Subject) != 16 || unknown.Detail.Subject == known.Detail.Subject {
		t.Errorf("unknown user: got %+v, %+v", unknown, unknown.Detail)
	}
	all, _, _ := strings.Cut(s.Admin().Do("GET", "/v1/audit?limit=100", nil).Expect(t, 200).Body, `"people":`)
	for _, secret := range []string{"nobody@example.ch", "hunter2hunter2", servertest.AdminEmail} {
		if strings.Contains(all, secret) {
			t.Errorf("the trail contains %q", secret)
		}
	}
}

func TestEvents_NameActorRecordAndOrigin(t *testing.T) {
	s := servertest.Start(t, func(o *settings.Settings) { o.Auth.CoolingOff.FreeAttempts = 2 })
	admin, advisor, customer := s.Admin(), s.User(access.Advisor), s.User(access.Customer)
	other := s.User(access.Customer)
	record := admin.Create("/v1/customers", map[string]any{"first_name": "Vreni", "last_name": "Muster", "email": "v@example.ch"})
	admin.Do("PUT", "/v1/customers/"+record+"/kyc", map[string]any{"documents": []map[string]any{
		{"type": "passport", "number": "X1234567", "country": "CHE", "expiry_date": "2030-01-01"}}}).Expect(t, 200)
	chat := customer.Create("/v1/chats", map[string]any{"participants": []string{other.UserID}})
	var oldest string
	if err := s.DB.QueryRow(t.Context(), `SELECT id FROM sessions WHERE user_id = $1`, other.UserID).Scan(&oldest); err != nil {
		t.Fatal(err)
	}
	search := func(parts ...string) string {
		q := url.Values{}
		for i := 0; i < len(parts); i += 2 {
			q.Set("search."+parts[i], parts[i+1])
		}
		return q.Encode()
	}
	for _, c := range []struct {
		name    string
		do      func()
		query   string
		want    audit.Entry
		note    string
		session bool // whether the entry has a session
	}{
		{name: "an advisor reads document numbers", do: func() { advisor.Do("GET", "/v1/customers/"+record+"/kyc", nil).Expect(t, 200) },
			query: search("action", "customers.kyc_read", "actor", advisor.UserID),
			want:  audit.Entry{Kind: "read", RecType: "customers", RecID: record, Actor: advisor.UserID}, note: "document_numbers", session: true},
		{name: "a record is denied", do: func() { customer.Do("GET", "/v1/customers/"+record+"/kyc", nil).Expect(t, 403) },
			query: search("kind", "denial", "actor", customer.UserID),
			want:  audit.Entry{Kind: "denial", Action: "access.denied", RecType: "customers", RecID: record, Actor: customer.UserID}, session: true},
		{name: "an endpoint is denied", do: func() { other.Do("GET", "/v1/audit", nil).Expect(t, 403) },
			query: search("kind", "denial", "actor", other.UserID),
			want:  audit.Entry{Kind: "denial", Action: "access.denied", RecType: "audit", Actor: other.UserID}, session: true},
		{name: "an administrator reads a chat of others", do: func() { admin.Do("GET", "/v1/chats/"+chat+"/messages", nil).Expect(t, 200) },
			query: search("kind", "read", "rec_type", "chats"),
			want:  audit.Entry{Kind: "read", Action: "chats.read_of_others", RecType: "chats", RecID: chat, Actor: admin.UserID}, session: true},
		{name: "participants read their chat without an entry", do: func() {
			customer.Do("GET", "/v1/chats/"+chat+"/messages", nil).Expect(t, 200)
			customer.Do("GET", "/v1/chats/"+chat, nil).Expect(t, 200)
		}, query: search("kind", "read", "rec_type", "chats"),
			want: audit.Entry{Kind: "read", Action: "chats.read_of_others", RecType: "chats", RecID: chat, Actor: admin.UserID}, session: true},
		{name: "the outbox is read", do: func() { admin.Do("GET", "/v1/notifications/deliveries", nil).Expect(t, 200) },
			query: search("action", "notifications.outbox_read"), want: audit.Entry{Kind: "read", RecType: "deliveries", Actor: admin.UserID}, session: true},
		{name: "a recovery starts", do: func() {
			s.Keyed().Do("POST", "/v1/users/initiate-recovery", map[string]string{"credential_value": "v@example.ch"}).Expect(t, 200)
		}, query: search("kind", "recovery"), want: audit.Entry{Kind: "recovery", Action: "users.recovery_started"}},
		{name: "an API key is rejected", do: func() {
			s.Anonymous().With("X-API-Key", "a-key-that-nobody-has-made").Do("GET", "/v1/public-endpoint", nil).Expect(t, 401)
		}, query: search("action", "api_keys.refused"), want: audit.Entry{Kind: "sign_in", Actor: store.NilID}},
		{name: "a refresh token is rejected", do: func() {
			s.Anonymous().Do("POST", "/v1/token/refresh", map[string]string{"refresh_token": "nonsense"}).Expect(t, 401)
		}, query: search("action", "auth.refresh_refused"), want: audit.Entry{Kind: "sign_in", Actor: store.NilID}},
		{name: "a session beyond the limit ends", do: func() {
			for range 20 {
				s.SignIn(other.UserID, "a long enough password 42")
			}
		}, query: search("kind", "session"), want: audit.Entry{Kind: "session", Action: "auth.session_limit", RecType: "sessions", RecID: oldest}},
		{name: "sign-in is locked out", do: func() {
			for _, status := range []int{401, 401, 429} {
				s.Anonymous().Do("POST", "/authenticate", map[string]string{"user_id": "x@example.ch", "password": "wrong"}).Expect(t, status)
			}
		}, query: search("kind", "throttle"), want: audit.Entry{Kind: "throttle", Action: "auth.cooling_off", RecType: "users", Actor: store.NilID}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.do()
			got := one(t, s, c.query)
			if got.Kind != c.want.Kind || c.want.Action != "" && got.Action != c.want.Action || got.RecType != c.want.RecType || got.RecID != c.want.RecID ||
				c.want.Actor != "" && got.Actor != c.want.Actor {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
			if (got.SessionID != "") != c.session || got.Network != "127.0.0.0/24" || got.RequestID == "" || got.Detail.Note != c.note {
				t.Errorf("got %+v, %+v", got, got.Detail)
			}
		})
	}
	if n, err := s.DB.VerifyAudit(t.Context()); err != nil || n == 0 {
		t.Errorf("%d entries, %v", n, err)
	}
}

// A flood of failures from many networks causes few entries, and the counts include every failure.
func TestEvents_CountAFloodInFewEntries(t *testing.T) {
	db := open(t)
	service := newService(t, db)
	const flood, days = 30_000, 2
	for range days {
		for i := range flood {
			service.Observe(endpoint.Event{Kind: endpoint.FailedSignIn, Action: "auth.sign_in_failed", Subject: fmt.Sprint(i),
				Network: fmt.Sprint(i), At: db.Clock().Now()})
			if i%500 == 0 {
				if err := service.WriteEvents(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if err := service.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	entries, counted := counts(t, db)
	if counted != flood*days {
		t.Errorf("the trail counts %d failures, want %d", counted, flood*days)
	}
	if entries > 65 {
		t.Errorf("the flood caused %d entries", entries)
	}
}

// Anonymous callers can cause a limited number of entries a day, over all windows.
func TestEvents_LimitTheEntriesOfADay(t *testing.T) {
	db, clock := openWithClock(t)
	service := newService(t, db)
	observed := int64(0)
	for minute := range 24 * 60 {
		for _, kind := range []endpoint.EventKind{endpoint.FailedSignIn, endpoint.Denial, endpoint.Throttling, endpoint.Recovery} {
			for i := range 70 {
				service.Observe(endpoint.Event{Kind: kind, Action: "a", Subject: fmt.Sprint(minute, i), At: clock.Now()})
				observed++
			}
		}
		clock.Advance(time.Minute)
		if err := service.WriteEvents(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	entries, counted := counts(t, db)
	if counted != observed {
		t.Errorf("the trail counts %d events, want %d", counted, observed)
	}
	if entries > 20_000+2_000+4*24*60 {
		t.Errorf("a day caused %d entries", entries)
	}
}

// Reads beyond the limit are counted, and the count has an entry.
func TestEvents_CountDroppedReads(t *testing.T) {
	db := open(t)
	service := newService(t, db)
	const reads = 5000
	for i := range reads {
		service.Observe(endpoint.Event{Kind: endpoint.Reading, Action: "customers.kyc_read", RequestID: fmt.Sprint(i), At: db.Clock().Now()})
	}
	if err := service.WriteEvents(t.Context()); err != nil {
		t.Fatal(err)
	}
	if entries, counted := counts(t, db); counted != reads || entries != 4097 {
		t.Errorf("%d entries count %d reads, want 4097 and %d", entries, counted, reads)
	}
	var dropped int
	if err := db.QueryRow(t.Context(), `SELECT COUNT(*) FROM audit_entries WHERE action = 'audit.events_dropped' AND kind = 'read'`).Scan(&dropped); err != nil || dropped != 1 {
		t.Errorf("%d entries count dropped reads, %v", dropped, err)
	}
}

// Events that cannot be written stay in memory and are written later.
func TestWriteEvents_KeepsEventsAfterAnError(t *testing.T) {
	if storetest.SQLiteOnly(t, "a table cannot be renamed while entries are written to it") {
		return
	}
	db := open(t)
	service := newService(t, db)
	setBroken := func(broken bool) {
		t.Helper()
		statement := `ALTER TABLE audit_entries RENAME TO audit_away`
		if !broken {
			statement = `ALTER TABLE audit_away RENAME TO audit_entries`
		}
		if err := db.InTx(t.Context(), func(tx *store.Tx) error {
			_, err := tx.Exec(t.Context(), statement)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	setBroken(true)
	for i := range 5000 {
		service.Observe(endpoint.Event{Kind: endpoint.Reading, Action: "a", RequestID: fmt.Sprint(i), At: db.Clock().Now()})
	}
	for range 3 {
		if err := service.WriteEvents(t.Context()); err == nil {
			t.Fatal("the events were written")
		}
	}
	setBroken(false)
	if err := service.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, counted := counts(t, db); counted != 5000 {
		t.Errorf("the trail counts %d events, want 5000", counted)
	}
}
