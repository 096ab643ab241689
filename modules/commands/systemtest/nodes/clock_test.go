package nodes_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"kontor/modules/commands/systemtest"
	"kontor/store/postgres/postgrestest"
)

// TestNodes_WithClocksHalfAMinuteApart runs two nodes whose clocks differ by 30 s. Both follow the clock of the database: tokens of
// one are valid on the other at once, times never go back from one write to the next, and ended sessions stay ended.
func TestNodes_WithClocksHalfAMinuteApart(t *testing.T) {
	address := postgrestest.URL(t)
	environ := append(slices.Clone(nodesEnv), "KONTOR_DATA_URL="+address)
	var nodes []*systemtest.Process
	for _, shift := range []string{"-15s", "15s"} {
		program, err := systemtest.Build("kontor"+shift, "-ldflags=-X kontor/store/clock.linkedShift="+shift)
		if err != nil {
			t.Fatal(err)
		}
		alone := systemtest.StartProgram(t, program, nodesEnv, "--data.dir", filepath.Join(t.TempDir(), "data"))
		admin, began := alone.Admin(), time.Now()
		expectTime(t, createdAt(t, admin.Do(t, "POST", "/v1/customers", clockCustomer(0), 201)), began, shift)
		alone.Kill()
		nodes = append(nodes, systemtest.StartProgram(t, program, environ, "--rate_limits.enabled=false"))
	}
	admin := nodes[0].Admin()
	me := admin.UserID(t)
	var readers [2]systemtest.StreamReader
	for i, p := range nodes {
		readers[i].Follow(t, admin.At(p))
	}
	var last time.Time
	for n := range 20 {
		p := nodes[n%2]
		key := admin.At(p).With("Idempotency-Key", fmt.Sprintf("clock-%d", n))
		body := clockCustomer(n)
		began := time.Now()
		created := key.Do(t, "POST", "/v1/customers", body, 201)
		last = expectLater(t, created, began, last)
		if again := key.At(nodes[1-n%2]).Do(t, "POST", "/v1/customers", body, 201); again.Body != created.Body {
			t.Errorf("the other node answered a repetition with %s", again.Body)
		}
		p.Keyed().Do(t, "POST", "/v1/notifications/trigger", fmt.Sprintf(`{"event":"test","title_key":"%d","user_ids":[%q]}`, n, me), 200)
	}
	stored := systemtest.AllNotifications(t, admin, me, "")
	for i := range readers {
		expectAll(t, &readers[i], stored)
	}
	for n := range 4 {
		a, b := nodes[n%2], nodes[1-n%2]
		u := a.Account(a.Admin(), fmt.Sprintf("clock-user%d@example.ch", n), "Advisor")
		u.At(b).Do(t, "GET", "/v1/users/me", "", 200)
		holdsAtOnce(t, b, func(at *systemtest.Client) (systemtest.Answer, error) {
			return u.Using(at).Try("GET", "/v1/users/me", "")
		},
			func() { u.Do(t, "POST", "/v1/logout", "", 200) }, 401)
	}
	checkTrail(t, admin)
}

func clockCustomer(n int) string {
	return fmt.Sprintf(`{"first_name":"Anna","last_name":"Uhr %d","email":"clock%d@example.ch"}`, n, n)
}

// expectLater checks the time in a created record: not before the last one, and that of the database.
func expectLater(t *testing.T, created systemtest.Answer, began, last time.Time) time.Time {
	t.Helper()
	at := createdAt(t, created)
	if at.Before(last) {
		t.Errorf("created at %v, after one of %v", at, last)
	}
	expectTime(t, at, began, "0s")
	return at
}

func createdAt(t *testing.T, created systemtest.Answer) time.Time {
	t.Helper()
	var record struct {
		CreatedAt time.Time `json:"created_at"`
	}
	created.Decode(t, &record)
	return record.CreatedAt
}

// expectTime reports an error unless a time since began is that of a clock with a shift.
func expectTime(t *testing.T, at, began time.Time, shift string) {
	t.Helper()
	by, err := time.ParseDuration(shift)
	if err != nil {
		t.Fatal(err)
	}
	const slack = 7 * time.Second // nearer to this clock than to the others
	if at.Before(began.Add(by-slack)) || at.After(time.Now().Add(by+slack)) {
		t.Errorf("%v is not the time of a clock that is wrong by %s", at, shift)
	}
}
