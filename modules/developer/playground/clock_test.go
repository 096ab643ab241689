package playground_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kontor/modules/developer/playground"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/servertest"
	"kontor/server/settings"
)

// moved is the answer to a move of the clock.
type moved struct {
	Now      time.Time
	From     time.Time
	Complete bool
	Ahead    int64 `json:"ahead_seconds"`
	Jobs     []struct {
		Name         string
		Runs, Failed int64
	}
	Changes, Notices []struct {
		Name  string
		Count int64
	}
}

// count returns how often an action or event happened.
func (m moved) count(name string) int64 {
	for _, c := range slices.Concat(m.Changes, m.Notices) {
		if c.Name == name {
			return c.Count
		}
	}
	return 0
}

func (m moved) runs(job string) int64 {
	for _, j := range m.Jobs {
		if j.Name == job {
			return j.Runs
		}
	}
	return 0
}

// again returns the administrator with a new session, since a moved clock ends the former one.
func again(s *servertest.Server) *servertest.Client {
	return s.SignIn(servertest.AdminEmail, servertest.AdminPassword)
}

func advance(t *testing.T, s *servertest.Server, by string) (m moved) {
	t.Helper()
	again(s).Do(http.MethodPost, clockPath, servertest.Body{"advance": by}).Expect(t, http.StatusOK).Into(t, &m)
	return m
}

// The clock of the tests shows 2026-01-31, 08:15:30.123 in UTC. At the end of each test, the records are compared with the audit trail, as
// "kontor check" does.
func TestAdvance_DoesWhatFourHundredDaysDo(t *testing.T) {
	s := servertest.StartSandbox(t, false)
	advisor, admin := s.User(access.Advisor), s.Admin()
	customer := advisor.Create("/v1/customers", servertest.Body{"first_name": "Ada", "last_name": "Muster", "date_of_birth": "1990-02-28", "nationality": "CHE", "email": "ada@example.ch"})
	passport := servertest.Body{"type": "passport", "number": "X1", "expiry_date": "2026-06-30", "country": "CHE"}
	advisor.Do("PUT", "/v1/customers/"+customer+"/kyc", servertest.Body{"documents": []any{passport}, "verified_at": "2026-01-31T08:00:00Z"}).Expect(t, http.StatusOK)
	advisor.Do("POST", "/v1/customers/"+customer+"/tasks", servertest.Body{"title": "Vertrag", "category": "sign", "due_on": "2026-03-01", "assignees": []any{}}).Expect(t, http.StatusCreated)
	bill, err := os.ReadFile("../../../testdata/qr/files/formats-b57-06.png")
	if err != nil {
		t.Fatal(err)
	}
	advisor.Do("POST", "/v1/invoices/qrcode", servertest.Body{"base64_file": base64.StdEncoding.EncodeToString(bill), "options": servertest.Body{"keep": true}}).Expect(t, http.StatusOK)

	m := advance(t, s, "P400D")
	if want := time.Date(2027, 3, 7, 8, 15, 30, 123e6, time.UTC); !m.Now.Equal(want) || !m.Complete || m.Ahead != 400*24*60*60 {
		t.Errorf("it is %s (complete %v, ahead %d), want %s", m.Now, m.Complete, m.Ahead, want)
	}
	// A task is reminded of from the day before to the seventh day after.
	for name, want := range map[string]int64{"customers.kyc_expire": 1, "task_due": 9, "kyc_document_expiring": 1} {
		if got := m.count(name); got != want {
			t.Errorf("%s happened %d times, want %d", name, got, want)
		}
	}
	for job, least := range map[string]int64{"customers.expiry": 400, "tasks.remind": 400, "invoices.purge": 400, "auth.purge": 400} {
		if got := m.runs(job); got < least || got > least+2 {
			t.Errorf("%s ran %d times, want %d", job, got, least)
		}
	}
	for _, job := range m.Jobs {
		if job.Failed > 0 {
			t.Errorf("%s failed %d times", job.Name, job.Failed)
		}
	}
	for _, c := range []*servertest.Client{advisor, admin} {
		c.Do("GET", "/v1/users/me", nil).ExpectError(t, http.StatusUnauthorized, "common.unauthorized")
		c.Do("POST", "/v1/token/refresh", servertest.Body{"refresh_token": c.Refresh}).ExpectError(t, http.StatusUnauthorized, "auth_m.invalid_refresh_token")
	}
	if got := again(s).Do("GET", "/v1/customers/"+customer, nil).Expect(t, http.StatusOK).JSON(t)["kyc_status"]; got != "expired" {
		t.Errorf("the customer is %v", got)
	}
	advance(t, s, "P1D") // bills are kept for 400 days
	var bills, sessions int
	if err := s.DB.QueryRow(t.Context(), `SELECT (SELECT COUNT(*) FROM bills), (SELECT COUNT(*) FROM sessions WHERE expires_at < $1)`, s.DB.Now().Add(-31*24*time.Hour)).Scan(&bills, &sessions); err != nil || bills+sessions > 0 {
		t.Errorf("%d bills and %d old sessions are left, err %v", bills, sessions, err)
	}
	days := reminderDays(t, s)
	if len(slices.Compact(days)) != 9 || len(days) != 9 {
		t.Errorf("reminders on the days %v, want one on each of nine", days)
	}
}

// reminderDays returns the days of the reminders, in their order.
func reminderDays(t *testing.T, s *servertest.Server) (days []string) {
	t.Helper()
	rows, err := s.DB.Query(t.Context(), `SELECT created_at FROM notices WHERE event = 'task_due' ORDER BY created_at`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var ms int64
		if err := rows.Scan(&ms); err != nil {
			t.Fatal(err)
		}
		days = append(days, time.UnixMilli(ms).UTC().Format("2006-01-02 15"))
	}
	return days
}

// Terms of rights and repetitions happen at their times, whatever the grid.
func TestAdvance_EndsRightsAtTheirTime(t *testing.T) {
	s := servertest.StartSandbox(t, false)
	user := s.User(access.Advisor)
	end := s.DB.Now().Add(50*24*time.Hour + 17*time.Minute)
	s.Admin().Do("POST", "/v1/rbac/grants", servertest.Body{"user_id": user.UserID, "rec_type": "audit", "permissions": []string{"read"}, "expires_at": end}).Expect(t, http.StatusCreated)
	m := advance(t, s, "P60D")
	if m.count("rbac.grants.expire") != 1 || m.count("access_expiring") == 0 {
		t.Errorf("changes %v, notices %v", m.Changes, m.Notices)
	}
	var at int64
	if err := s.DB.QueryRow(t.Context(), `SELECT at FROM audit_trail WHERE action = 'rbac.grants.expire'`).Scan(&at); err != nil || at != int64(end) {
		t.Errorf("the grant ended at %s, want %s; err %v", time.UnixMilli(at).UTC(), end, err)
	}
}

func TestAdvance_RepeatsDeliveries(t *testing.T) {
	var calls atomic.Int64
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		w.WriteHeader(http.StatusInternalServerError)
	}))
	t.Cleanup(receiver.Close)
	s := servertest.StartSandbox(t, false, func(s *settings.Settings) {
		s.Webhooks.AllowedNetworks = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	})
	s.Admin().Do("POST", "/v1/webhooks", servertest.Body{"url": receiver.URL, "types": []string{"payers.*", "customers.*"}}).Expect(t, http.StatusCreated)
	s.User(access.Advisor).Create("/v1/customers", servertest.Body{"first_name": "Ada", "last_name": "Muster", "email": "ada@example.ch"})
	advance(t, s, "PT1S")
	if got := calls.Load(); got != 1 {
		t.Fatalf("%d calls after a second, want 1", got)
	}
	m := advance(t, s, "P5D")
	if got := calls.Load(); got != int64(1+len(s.Webhooks.Pauses)) || !m.Complete {
		t.Errorf("%d calls after five days, complete %v; want the first and all %d repetitions", got, m.Complete, len(s.Webhooks.Pauses))
	}
}

func TestAdvance_RejectsWhatIsNoWayAhead(t *testing.T) {
	s := servertest.StartSandbox(t, false)
	admin := s.Admin()
	before := s.DB.Now()
	for _, c := range []struct {
		body   any
		status int
		want   string
	}{
		{servertest.Body{}, 400, `"advance":`},
		{servertest.Body{"advance": "P1D", "to": "2027-01-01T00:00:00Z"}, 400, `"advance":`},
		{servertest.Body{"advance": nil, "to": nil}, 400, `"advance":`},
		{servertest.Body{"advance": ""}, 400, `"advance":`},
		{servertest.Body{"advance": "400d"}, 400, `"advance":`},
		{servertest.Body{"advance": "-P1D"}, 400, `"advance":`},
		{servertest.Body{"advance": "P0D"}, 400, `"advance":`},
		{servertest.Body{"advance": "PT0S"}, 400, `"advance":`},
		{servertest.Body{"advance": 400}, 400, `"advance":`},
		{servertest.Body{"advance": "P11Y"}, 400, `"advance":`},
		{servertest.Body{"advance": "P10Y1D"}, 400, `"advance":`},
		{servertest.Body{"advance": "P9999999D"}, 400, `"advance":`},
		{servertest.Body{"advance": "PT9999999H9999999M9999999S"}, 400, `"advance":`},
		{servertest.Body{"advance": "P" + strings.Repeat("9", 100_000) + "D"}, 400, `"advance":`},
		{servertest.Body{"to": "tomorrow"}, 400, `"to":`},
		{servertest.Body{"to": "2026-02-30T00:00:00Z"}, 400, `"to":`},
		{servertest.Body{"to": "2300-01-01T00:00:00Z"}, 400, `"to":`},
		{servertest.Body{"to": "2050-01-01T00:00:00Z"}, 400, `"to":`},
		{servertest.Body{"to": "2026-01-31T08:15:30Z"}, 409, `"field":"to"`},
		{servertest.Body{"to": "1970-01-01T00:00:00Z"}, 409, `"now":"2026-01-31T08:15:30.123Z"`},
		{servertest.Body{"to": "0001-01-01T00:00:00Z"}, 409, `"sandbox.clock_back"`},
		{"null", 400, ""}, {"[]", 400, ""}, {"{", 400, ""},
	} {
		answer := admin.Do(http.MethodPost, clockPath, c.body)
		if answer.Status != c.status || !strings.Contains(answer.Body, c.want) {
			t.Errorf("%.80v: %d %s, want %d with %s", c.body, answer.Status, answer.Body, c.status, c.want)
		}
	}
	if s.DB.Now() != before {
		t.Errorf("the clock has moved to %s", s.DB.Now())
	}
	s.Anonymous().Do(http.MethodPost, clockPath, servertest.Body{"advance": "P1D"}).ExpectError(t, http.StatusUnauthorized, "common.unauthorized")
	s.User(access.Customer).Do(http.MethodPost, clockPath, servertest.Body{"advance": "P1D"}).ExpectError(t, http.StatusForbidden, "common.rbac_no_rec_access")
}

// Each of several moves is done, or rejected because another one is being made.
func TestAdvance_OneAtATime(t *testing.T) {
	s := servertest.StartSandbox(t, false)
	admin, before := s.Admin(), s.DB.Now()
	var done atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			answer, err := admin.Try(http.MethodPost, clockPath, servertest.Body{"advance": "PT10S"})
			switch {
			case err != nil:
				t.Error(err)
			case answer.Status == http.StatusOK:
				done.Add(1)
			case answer.Status != http.StatusConflict || !strings.Contains(answer.Body, "sandbox.clock_busy"):
				t.Errorf("%d %s", answer.Status, answer.Body)
			}
		})
	}
	all.Wait()
	if want := before.Add(time.Duration(done.Load()) * 10 * time.Second); done.Load() == 0 || s.DB.Now() != want {
		t.Errorf("after %d moves it is %s, want %s", done.Load(), s.DB.Now(), want)
	}
}

// A request that ends early leaves the clock between two steps, where the next one continues.
func TestAdvance_EndsEarlyWithItsTime(t *testing.T) {
	s := servertest.StartSandbox(t, false)
	ctx, cancel := context.WithCancel(access.With(t.Context(), &access.Caller{}))
	cancel()
	year := "P1Y"
	in := playground.Move{Advance: &year}
	in.Validate(&apierr.Fields{})
	m, err := s.Playground.Advance(ctx, in)
	if err == nil && m.Complete {
		t.Errorf("without time it is complete: %+v", m)
	}
	if ahead, err := s.DB.Ahead(t.Context()); err != nil || ahead < s.Sandbox.Clock.Offset() {
		t.Errorf("%s ahead is kept, err %v; the clock is %s ahead", ahead, err, s.Sandbox.Clock.Offset())
	}
	if m := advance(t, s, "P1D"); !m.Complete {
		t.Error(fmt.Sprint("the next one is not complete: ", m))
	}
}
