package nodes_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"kontor/modules/commands/systemtest"
	"kontor/store/postgres/postgrestest"
)

// TestNodes_WithClocksHalfAMinuteApart runs two nodes whose clocks differ by 30 s. Both follow the clock of the database: tokens of
// one are valid on the other at once, times never go back from one write to the next, and ended sessions stay ended.
func TestNodes_WithClocksHalfAMinuteApart(t *testing.T) {
	program := buildWith(t, shiftedClock(t))
	address := postgrestest.URL(t)
	var nodes []*systemtest.Process
	for _, shift := range []int{-15, 15} {
		environ := append(slices.Clone(nodesEnv), "KONTOR_DATA_URL="+address, "CLOCK_SHIFT="+strconv.Itoa(shift))
		p := systemtest.StartProgram(t, program, environ, "--rate_limits.enabled=false")
		if seen := logTime(t, p); time.Until(seen).Abs() < 10*time.Second {
			t.Fatalf("the clock of the node shows %v: it is not shifted", seen)
		}
		nodes = append(nodes, p)
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
		body := fmt.Sprintf(`{"first_name":"Anna","last_name":"Uhr %d","email":"clock%d@example.ch"}`, n, n)
		created := key.Do(t, "POST", "/v1/customers", body, 201)
		last = expectLater(t, created, last)
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

// expectLater checks the time in a created record: not before the last one, and near the time of the database.
func expectLater(t *testing.T, created systemtest.Answer, last time.Time) time.Time {
	t.Helper()
	var record struct {
		CreatedAt time.Time `json:"created_at"`
	}
	created.Decode(t, &record)
	if record.CreatedAt.Before(last) || time.Until(record.CreatedAt).Abs() > 5*time.Second {
		t.Errorf("created at %v, after one of %v; the database shows about %v", record.CreatedAt, last, time.Now())
	}
	return record.CreatedAt
}

// logTime returns the time in the first line of a log, which follows the machine's clock.
func logTime(t *testing.T, p *systemtest.Process) time.Time {
	t.Helper()
	var line struct{ Time time.Time }
	if err := json.NewDecoder(strings.NewReader(p.Stderr.String())).Decode(&line); err != nil {
		t.Fatal(err)
	}
	return line.Time
}
