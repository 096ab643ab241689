package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"kontor/store/postgres/postgrestest"
)

// TestNodes_WithClocksHalfAMinuteApart runs two nodes whose clocks differ by 30 s. Both follow the clock of the database: tokens of
// one are valid on the other at once, times never go back from one write to the next, and ended sessions stay ended.
func TestNodes_WithClocksHalfAMinuteApart(t *testing.T) {
	program := buildWith(t, shiftedClock(t))
	address := postgrestest.URL(t)
	var nodes []*process
	for _, shift := range []int{-15, 15} {
		environ := append(slices.Clone(nodesEnv), "KONTOR_DATA_URL="+address, "CLOCK_SHIFT="+strconv.Itoa(shift))
		p := startProgram(t, program, environ, "--rate_limits.enabled=false")
		if seen := logTime(t, p); time.Until(seen).Abs() < 10*time.Second {
			t.Fatalf("the clock of the node shows %v: it is not shifted", seen)
		}
		nodes = append(nodes, p)
	}
	admin := nodes[0].admin()
	me := admin.userID(t)
	var readers [2]reader
	for i, p := range nodes {
		readers[i].follow(t, admin.at(p))
	}
	var last time.Time
	for n := range 20 {
		p := nodes[n%2]
		key := admin.at(p).with("Idempotency-Key", fmt.Sprintf("clock-%d", n))
		body := fmt.Sprintf(`{"first_name":"Anna","last_name":"Uhr %d","email":"clock%d@example.ch"}`, n, n)
		created := key.do(t, "POST", "/v1/customers", body, 201)
		last = expectLater(t, created, last)
		if again := key.at(nodes[1-n%2]).do(t, "POST", "/v1/customers", body, 201); again.body != created.body {
			t.Errorf("the other node answered a repetition with %s", again.body)
		}
		p.keyed().do(t, "POST", "/v1/notifications/trigger", fmt.Sprintf(`{"event":"test","title_key":"%d","user_ids":[%q]}`, n, me), 200)
	}
	stored := allNotifications(t, admin, me, "")
	for i := range readers {
		expectAll(t, &readers[i], stored)
	}
	for n := range 4 {
		a, b := nodes[n%2], nodes[1-n%2]
		u := a.account(a.admin(), fmt.Sprintf("clock-user%d@example.ch", n), "Advisor")
		u.at(b).do(t, "GET", "/v1/users/me", "", 200)
		holdsAtOnce(t, b, func(at *client) (answer, error) { return u.using(at).try("GET", "/v1/users/me", "") },
			func() { u.do(t, "POST", "/v1/logout", "", 200) }, 401)
	}
	checkTrail(t, admin)
}

// expectLater checks the time in a created record: not before the last one, and near the time of the database.
func expectLater(t *testing.T, created answer, last time.Time) time.Time {
	t.Helper()
	var record struct {
		CreatedAt time.Time `json:"created_at"`
	}
	created.into(t, &record)
	if record.CreatedAt.Before(last) || time.Until(record.CreatedAt).Abs() > 5*time.Second {
		t.Errorf("created at %v, after one of %v; the database shows about %v", record.CreatedAt, last, time.Now())
	}
	return record.CreatedAt
}

// logTime returns the time in the first line of a log, which follows the machine's clock.
func logTime(t *testing.T, p *process) time.Time {
	t.Helper()
	var line struct{ Time time.Time }
	if err := json.NewDecoder(strings.NewReader(p.stderr.String())).Decode(&line); err != nil {
		t.Fatal(err)
	}
	return line.Time
}
