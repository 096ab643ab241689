package deliveries_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kontor/locales"
	"kontor/modules/reach/deliveries"
	"kontor/modules/reach/notifications"
	"kontor/store"
	"kontor/store/storetest"
	"kontor/store/testenv"
)

// fakeGateway is a gateway whose answers a test sets.
type fakeGateway struct {
	mu     sync.Mutex
	answer func(d deliveries.Delivery) error
	took   []string // ids of the deliveries that it accepted
	tries  map[string]int
}

func (g *fakeGateway) Send(_ context.Context, d deliveries.Delivery) error {
	g.mu.Lock()
	if g.tries == nil {
		g.tries = map[string]int{}
	}
	g.tries[d.ID]++
	answer := g.answer
	g.mu.Unlock()
	if answer != nil {
		if err := answer(d); err != nil {
			return err
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.took = append(g.took, d.ID)
	return nil
}

// triesOf returns how often it was given a delivery.
func (g *fakeGateway) triesOf(id string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.tries[id]
}

// tried returns how many deliveries it was given.
func (g *fakeGateway) tried() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.tries)
}

func (g *fakeGateway) accepted() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.took)
}

// queueTest is a service with queues on a clock that the test sets.
type queueTest struct {
	*deliveries.Service
	t     testing.TB
	db    *store.DB
	clock *storetest.Clock
	nodes *notifications.Service // releases what nodes have left
}

func newQueueTest(t testing.TB, o deliveries.Options) *queueTest {
	t.Helper()
	clock := storetest.NewClock()
	h := &queueTest{t: t, db: storetest.OpenWith(t, clock), clock: clock}
	h.restart(o)
	return h
}

// newSharedQueueTest returns a database that several nodes may use, without a service.
func newSharedQueueTest(t testing.TB) *queueTest {
	t.Helper()
	clock := storetest.NewClock()
	return &queueTest{t: t, db: storetest.OpenShared(t, clock), clock: clock}
}

// second opens the database for another node.
func (h *queueTest) second(t testing.TB) *store.DB {
	t.Helper()
	return storetest.Second(t, h.db)
}

// restart starts another service on the same database, as a new process would.
func (h *queueTest) restart(o deliveries.Options) {
	h.t.Helper()
	h.Service, h.nodes = deliveries.New(h.db, o), nil
	if err := h.Start(context.Background()); err != nil {
		h.t.Fatal(err)
	}
	service := h.Service
	h.t.Cleanup(func() { _ = service.Close(context.Background()) })
}

// ReleaseNodes releases what nodes that are gone have left, as a job of the module notifications does.
func (h *queueTest) ReleaseNodes(ctx context.Context) error {
	h.t.Helper()
	if h.nodes == nil {
		texts, err := locales.Load()
		if err != nil {
			h.t.Fatal(err)
		}
		h.nodes = notifications.New(h.db, texts, h.Service, notifications.Options{})
	}
	return h.nodes.ReleaseNodes(ctx)
}

// release is ReleaseNodes, which must succeed.
func (h *queueTest) release() {
	h.t.Helper()
	if err := h.ReleaseNodes(context.Background()); err != nil {
		h.t.Fatal(err)
	}
}

// eventually waits until a condition holds.
func eventually(t testing.TB, so func() bool) {
	t.Helper()
	testenv.Wait(t, "the condition to hold", so)
}

func count(t testing.TB, db *store.DB, what string) (n int) {
	t.Helper()
	if err := db.QueryRow(context.Background(), "SELECT COUNT(*) FROM "+what).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// crash closes the database under the service, as the end of its process does, and opens it for the next one. The service can then
// claim nothing that the next one is to claim.
func (h *queueTest) crash() {
	h.t.Helper()
	o := storetest.OptionsOf(h.t, h.db)
	if err := h.db.Close(); err != nil {
		h.t.Fatal(err)
	}
	h.db, h.nodes = storetest.OpenAgain(h.t, o), nil
}

func (h *queueTest) enqueue(channel, text string) string {
	h.t.Helper()
	one := []deliveries.Delivery{{UserID: store.NewID(), Channel: channel,
		Recipient: "anna@example.ch", Subject: "s", Text: text, Secret: strings.HasPrefix(text, "secret")}}
	err := h.db.InTx(context.Background(), func(tx *store.Tx) error { return h.Enqueue(context.Background(), tx, one) })
	if err != nil {
		h.t.Fatal(err)
	}
	return one[0].ID
}

// state is a delivery as it is stored.
type state struct {
	status, text string // text is the sealed one of a secret
	attempts     int
	lastError    *string
	next         *store.Time
}

func (h *queueTest) state(id string) state {
	h.t.Helper()
	var s state
	err := h.db.QueryRow(context.Background(), `SELECT status, text || sealed, attempts, last_error, next_attempt_at FROM deliveries WHERE id = $1`, id).
		Scan(&s.status, &s.text, &s.attempts, &s.lastError, &s.next)
	if err != nil {
		h.t.Fatal(err)
	}
	return s
}

func (h *queueTest) until(id, status string) state {
	h.t.Helper()
	eventually(h.t, func() bool { return h.state(id).status == status })
	return h.state(id)
}

// pass advances the clock and wakes the queues.
func (h *queueTest) pass(d time.Duration) {
	h.clock.Advance(d)
	h.WakeUp()
}

// untilItEnds advances the clock by an hour after each failed attempt. It waits while the delivery is being sent, whose lease
// would expire otherwise.
func (h *queueTest) untilItEnds(id string) {
	h.t.Helper()
	waited := 0
	eventually(h.t, func() bool {
		s := h.state(id)
		if s.status == "retrying" && s.attempts > waited {
			waited = s.attempts
			h.pass(time.Hour)
		}
		return s.status == "sent" || s.status == "dead"
	})
}
