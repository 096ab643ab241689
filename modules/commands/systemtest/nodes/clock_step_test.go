package nodes_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"kontor/modules/commands/systemtest"
	"kontor/store/postgres/postgrestest"
	"kontor/store/testenv"
)

// serverClock makes the clock of a database one that a test sets: a function of the schema hides that of the server.
const serverClock = `
	CREATE TABLE kontor_test_clock (ahead INTERVAL NOT NULL);
	INSERT INTO kontor_test_clock VALUES ('0');
	CREATE FUNCTION clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
		AS 'SELECT pg_catalog.clock_timestamp() + (SELECT ahead FROM public.kontor_test_clock)';
	DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = public, pg_catalog', current_database()); END $$`

// TestNodes_FollowAClockThatIsSet sets the clock of the database back by twenty minutes and ahead by two hours, under two nodes. Both follow
// at once and say so. Passwords that are guessed at both in turn are locked out, whatever was counted before; streams, repetitions and
// the audit trail stay right.
func TestNodes_FollowAClockThatIsSet(t *testing.T) {
	address := postgrestest.URL(t)
	postgrestest.Run(t, address, serverClock)
	const long = "--auth.access_token_minutes=600" // the step ahead must not end the tokens
	nodes := []*systemtest.Process{startNode(t, address, long), startNode(t, address, long)}
	admin := nodes[0].Admin()
	me := admin.UserID(t)
	var readers [2]systemtest.StreamReader
	for i, p := range nodes {
		readers[i].Follow(t, admin.At(p))
	}
	l := newLoad(t, "step")
	for _, p := range nodes {
		l.on(p, admin.At(p), 2)
	}
	for i := range 3 {
		nodes[0].Account(admin, fmt.Sprintf("step%d@example.ch", i), "Advisor")
	}
	for round, ahead := range []time.Duration{0, -20 * time.Minute, 100 * time.Minute} {
		guess(t, nodes, fmt.Sprintf("step%d@example.ch", round))
		progress(t, &l.acknowledged, 20)
		postgrestest.Run(t, address, fmt.Sprintf(`UPDATE kontor_test_clock SET ahead = '%d seconds'`, int(ahead.Seconds())))
		for i, p := range nodes {
			testenv.Wait(t, "the node to follow", func() bool {
				var h struct{ Timestamp time.Time }
				p.Client().Do(t, "GET", "/readyz", "", 200).Decode(t, &h)
				return time.Until(h.Timestamp.Add(-ahead)).Abs() < 2*time.Second
			})
			testenv.Wait(t, "the node to say so", func() bool {
				return strings.Count(p.Stderr.String(), "the clock of the database server was set") == round
			})
			key := admin.At(p).With("Idempotency-Key", fmt.Sprintf("step-%d-%d", round, i))
			created := key.Do(t, "POST", "/v1/customers", clockCustomer(round), 201)
			if again := key.At(nodes[1-i]).Do(t, "POST", "/v1/customers", clockCustomer(round), 201); again.Body != created.Body {
				t.Errorf("the other node answered a repetition with %s", again.Body)
			}
			expectTime(t, createdAt(t, created), time.Now(), ahead.String())
			p.Keyed().Do(t, "POST", "/v1/notifications/trigger", fmt.Sprintf(`{"event":"test","title_key":"%d","user_ids":[%q]}`, round, me), 200)
		}
		guess(t, nodes, fmt.Sprintf("step%d@example.ch", round))
	}
	l.stop()
	stored := systemtest.AllNotifications(t, admin, me, "")
	for i := range readers {
		expectAll(t, &readers[i], stored)
	}
	checkTrail(t, admin)
}

// guess tries wrong passwords at the nodes in turn. Most of them must be rejected without a comparison.
func guess(t *testing.T, nodes []*systemtest.Process, who string) {
	t.Helper()
	compared := 0
	for n := range 40 {
		got, err := nodes[n%2].Client().Try("POST", "/authenticate", systemtest.Object("user_id", who, "password", fmt.Sprintf("wrong %d password", n)))
		if err != nil {
			t.Fatal(err)
		}
		if got.Status == 401 {
			compared++
		} else if got.Status != 429 {
			t.Fatalf("got %d %s", got.Status, got.Body)
		}
	}
	if compared > 12 {
		t.Errorf("%d of 40 guesses were compared", compared)
	}
}
