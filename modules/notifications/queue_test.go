package notifications_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kontor/locales"
	"kontor/modules/notifications"
	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/store"
	"kontor/store/storetest"
)

// gate is a gateway whose answers a test decides.
type gate struct {
	mu     sync.Mutex
	answer func(d notifications.Delivery) error
	took   []string // ids that were answered with success
	tries  map[string]int
}

func (g *gate) Send(_ context.Context, d notifications.Delivery) error {
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

func (g *gate) taken() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.took)
}

// house is a service with queues, on a clock that the test moves.
type house struct {
	*notifications.Service
	t     testing.TB
	db    *store.DB
	clock *storetest.Clock
}

func newHouse(t testing.TB, o notifications.Options) *house {
	t.Helper()
	clock := storetest.NewClock()
	h := &house{t: t, db: storetest.OpenWith(t, clock), clock: clock}
	h.restart(o)
	return h
}

// restart puts another service on the same database, as a new process would.
func (h *house) restart(o notifications.Options) {
	h.t.Helper()
	texts, err := locales.Load()
	if err != nil {
		h.t.Fatal(err)
	}
	h.Service = notifications.New(h.db, texts, o)
	if err := h.Start(context.Background()); err != nil {
		h.t.Fatal(err)
	}
	service := h.Service
	h.t.Cleanup(func() { _ = service.Close(context.Background()) })
}

func (h *house) enqueue(channel, text string) string {
	h.t.Helper()
	var d notifications.Delivery
	err := h.db.InTx(context.Background(), func(tx *store.Tx) error {
		var err error
		d, err = h.Enqueue(context.Background(), tx, notifications.Delivery{UserID: store.NewID(), Channel: channel,
			Recipient: "anna@example.ch", Subject: "s", Text: text, Secret: strings.HasPrefix(text, "secret")})
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return d.ID
}

// state is a delivery as it is stored.
type state struct {
	status, text string
	attempts     int
	lastError    *string
	next         *store.Time
}

func (h *house) state(id string) state {
	h.t.Helper()
	var s state
	err := h.db.QueryRow(context.Background(), `SELECT status, text, attempts, last_error, next_attempt_at FROM deliveries WHERE id = $1`, id).
		Scan(&s.status, &s.text, &s.attempts, &s.lastError, &s.next)
	if err != nil {
		h.t.Fatal(err)
	}
	return s
}

func (h *house) until(id, status string) state {
	h.t.Helper()
	eventually(h.t, func() bool { return h.state(id).status == status })
	return h.state(id)
}

// pass lets time pass, and the queues notice.
func (h *house) pass(d time.Duration) {
	h.clock.Advance(d)
	h.Nudge()
}

// untilItEnds lets an hour pass after each failed attempt, and none while the delivery is on its way: its lease would
// run out.
func (h *house) untilItEnds(id string) {
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

func TestQueue_TriesAgainWithGrowingPausesUntilItIsSent(t *testing.T) {
	g := &gate{answer: func(notifications.Delivery) error { return errors.New("down") }}
	h := newHouse(t, notifications.Options{Email: g, MaxAttempts: 8, BasePause: 2 * time.Second, MaxPause: 10 * time.Second})
	id := h.enqueue("email", "hello")
	for n, whole := range []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second, 10 * time.Second, 10 * time.Second} {
		eventually(t, func() bool { s := h.state(id); return s.status == "retrying" && s.attempts == n+1 })
		s := h.state(id)
		pause := s.next.Std().Sub(h.clock.Now())
		if pause < whole/2 || pause > whole || s.lastError == nil || *s.lastError != "down" {
			t.Errorf("after attempt %d: pause %s, want %s to %s; error %v", n+1, pause, whole/2, whole, s.lastError)
		}
		h.pass(pause)
	}
	g.mu.Lock()
	g.answer = nil
	g.mu.Unlock()
	h.pass(10 * time.Second)
	if s := h.until(id, "sent"); s.text != "" || s.lastError != nil || s.next != nil {
		t.Errorf("got %+v, want nothing to be kept of what a gateway has", s)
	}
	if got := g.taken(); len(got) != 1 {
		t.Errorf("it was sent %d times", len(got))
	}
}

func TestQueue_PausesStayWithinTheirBounds(t *testing.T) {
	const base, longest = time.Hour, 7 * 24 * time.Hour
	h := newHouse(t, notifications.Options{Email: &gate{}, BasePause: base, MaxPause: longest})
	for n := range 200 {
		whole := longest
		if n < 9 {
			whole = min(longest, base<<max(n-1, 0))
		}
		if pause := h.Pause("email", n); pause < whole/2 || pause > whole {
			t.Errorf("after attempt %d: got %s, want %s to %s", n, pause, whole/2, whole)
		}
	}
}

func TestQueue_GivesUpAfterTheLastAttemptAndAtOnceWhereThatIsFinal(t *testing.T) {
	g := &gate{answer: func(d notifications.Delivery) error {
		if d.Text == "refused" {
			return &notifications.Refusal{Permanent: true, Cause: errors.New("no such mailbox")}
		}
		return errors.New("down")
	}}
	h := newHouse(t, notifications.Options{Email: g, MaxAttempts: 3})
	refused, down := h.enqueue("email", "refused"), h.enqueue("email", "down")
	if s := h.until(refused, "dead"); s.attempts != 1 || s.next != nil {
		t.Errorf("refused for good: %+v, want one attempt", s)
	}
	h.untilItEnds(down)
	if s := h.state(down); s.attempts != 3 {
		t.Errorf("got %d attempts, want 3", s.attempts)
	}
}

func TestQueue_WaitsAsLongAsTheGatewayAsks(t *testing.T) {
	g := &gate{answer: func(notifications.Delivery) error {
		return &notifications.Refusal{RetryAfter: 10 * time.Minute, Cause: errors.New("busy")}
	}}
	h := newHouse(t, notifications.Options{SMS: g})
	s := h.until(h.enqueue("sms", "x"), "retrying")
	if pause := s.next.Std().Sub(h.clock.Now()); pause != 10*time.Minute {
		t.Errorf("got a pause of %s, want 10 minutes", pause)
	}
}

func TestQueue_IsNotHeldUpByAJobThatPanicsNorByASlowChannel(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	poison := &gate{answer: func(d notifications.Delivery) error {
		if d.Text == "poison" {
			panic("no")
		}
		return nil
	}}
	stuck := &gate{answer: func(notifications.Delivery) error { <-release; return nil }}
	h := newHouse(t, notifications.Options{SMS: poison, Email: stuck})
	for range 20 {
		h.enqueue("email", "slow")
	}
	var bad, good []string
	for range 20 {
		bad, good = append(bad, h.enqueue("sms", "poison")), append(good, h.enqueue("sms", "fine"))
	}
	for _, id := range good {
		h.until(id, "sent")
	}
	for _, id := range bad {
		if s := h.until(id, "retrying"); !strings.Contains(*s.lastError, "panic") {
			t.Errorf("got %+v", s)
		}
	}
}

func TestQueue_TakesUpWhatAGoneProcessHadBegun(t *testing.T) {
	release := make(chan struct{})
	dying := &gate{answer: func(notifications.Delivery) error { <-release; return errors.New("too late") }}
	h := newHouse(t, notifications.Options{Email: dying, MaxAttempts: 3})
	id := h.enqueue("email", "hello")
	h.until(id, "sending")
	crashed := h.Service

	g := &gate{}
	h.restart(notifications.Options{Email: g, MaxAttempts: 3})
	if s := h.until(id, "sent"); s.attempts != 2 {
		t.Errorf("got %+v, want the second attempt to have sent it, with no lease to wait for", s)
	}
	close(release)
	_ = crashed.Close(context.Background())
	if s := h.state(id); s.status != "sent" {
		t.Errorf("who had lost the lease changed the delivery: %+v", s)
	}
	if n := len(g.taken()); n != 1 {
		t.Errorf("sent %d times", n)
	}
}

func TestQueue_GivesUpWhatTookTheProcessDownEachTime(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	deadly := &gate{answer: func(notifications.Delivery) error { <-release; return nil }}
	h := newHouse(t, notifications.Options{Email: deadly, MaxAttempts: 2})
	id := h.enqueue("email", "deadly")
	h.until(id, "sending")
	h.restart(notifications.Options{Email: deadly, MaxAttempts: 2})
	eventually(t, func() bool { s := h.state(id); return s.status == "sending" && s.attempts == 2 })
	h.restart(notifications.Options{Email: deadly, MaxAttempts: 2})
	if s := h.until(id, "dead"); !strings.Contains(*s.lastError, "abandoned") {
		t.Errorf("got %+v", s)
	}
	deadly.mu.Lock()
	defer deadly.mu.Unlock()
	if n := deadly.tries[id]; n != 2 {
		t.Errorf("it was tried %d times, want 2", n)
	}
}

func TestQueue_TakesOverALeaseThatRanOut(t *testing.T) {
	release := make(chan struct{})
	first := true
	var mu sync.Mutex
	g := &gate{answer: func(notifications.Delivery) error {
		mu.Lock()
		wait := first
		first = false
		mu.Unlock()
		if wait {
			<-release
			return errors.New("too late")
		}
		return nil
	}}
	h := newHouse(t, notifications.Options{Email: g})
	id := h.enqueue("email", "x")
	h.until(id, "sending")
	h.pass(3 * time.Minute)
	h.until(id, "sent")
	close(release)
	eventually(t, func() bool { return h.state(id).status == "sent" })
}

func TestQueue_KeepsLocallyWhatWaitsWhenTheGatewayIsTakenAway(t *testing.T) {
	g := &gate{answer: func(notifications.Delivery) error { return errors.New("down") }}
	h := newHouse(t, notifications.Options{Email: g})
	id := h.enqueue("email", "hello")
	h.until(id, "retrying")
	_ = h.Close(context.Background())
	h.restart(notifications.Options{})
	if s := h.until(id, "sent"); s.text != "hello" {
		t.Errorf("got %+v, want the text to be in the local outbox", s)
	}
}

func TestReady_TellsThatAQueueStandsStill(t *testing.T) {
	release := make(chan struct{})
	g := &gate{answer: func(notifications.Delivery) error { <-release; return nil }}
	h := newHouse(t, notifications.Options{Email: g})
	defer close(release)
	if err := h.Ready(t.Context()); err != nil {
		t.Errorf("an empty queue: %v", err)
	}
	for range 20 { // more than are sent at the same time
		h.enqueue("email", "x")
	}
	eventually(t, func() bool { return count(t, h.db, "deliveries WHERE status = 'sending'") == 8 })
	h.clock.Advance(6 * time.Minute)
	eventually(t, func() bool { return h.Ready(context.Background()) != nil })
}

// script is a gateway that answers each delivery as its plan says, attempt by attempt.
type script struct {
	mu    sync.Mutex
	plans map[string][]int // text → answers
	tries map[string]int
}

const (
	takes = iota
	isDown
	refuses
	panics
)

func (g *script) Send(_ context.Context, d notifications.Delivery) error {
	g.mu.Lock()
	plan, n := g.plans[d.Text], g.tries[d.Text]
	g.tries[d.Text]++
	g.mu.Unlock()
	switch plan[min(n, len(plan)-1)] {
	case takes:
		return nil
	case isDown:
		return errors.New("down")
	case refuses:
		return &notifications.Refusal{Permanent: true, Cause: errors.New("no")}
	default:
		panic("no")
	}
}

// Whatever a gateway answers, each delivery ends: taken by the gateway once and noted as sent, or dead, never tried more
// often than allowed and never again after the end.
func TestQueue_BringsEveryDeliveryToAnEnd(t *testing.T) {
	const maxAttempts = 4
	g := &script{plans: map[string][]int{}, tries: map[string]int{}}
	h := newHouse(t, notifications.Options{Email: g, MaxAttempts: maxAttempts})
	rapid.Check(t, func(r *rapid.T) {
		plan := rapid.SliceOfN(rapid.IntRange(takes, panics), maxAttempts, maxAttempts).Draw(r, "answers")
		want, attempts := "dead", maxAttempts
		for n, answer := range plan {
			if answer == takes || answer == refuses {
				attempts = n + 1
				if answer == takes {
					want = "sent"
				}
				break
			}
		}
		text := store.NewID()
		g.mu.Lock()
		g.plans[text] = plan
		g.mu.Unlock()
		id := h.enqueue("email", text)
		h.untilItEnds(id)
		g.mu.Lock()
		defer g.mu.Unlock()
		if s := h.state(id); s.status != want || s.attempts != attempts || g.tries[text] != attempts {
			r.Fatalf("plan %v: got %+v after %d tries, want %s after %d", plan, s, g.tries[text], want, attempts)
		}
	})
}

func TestDeliveries_AreForAdministratorsAndKeepSecrets(t *testing.T) {
	s := servertest.Start(t)
	anna, admin := s.User(access.Customer), s.Admin()
	const route = path + "/deliveries"
	id := store.NewID()
	insert := func(id, status string, secret bool) {
		err := s.DB.InTx(t.Context(), func(tx *store.Tx) error {
			_, err := tx.Exec(t.Context(), `INSERT INTO deliveries (id, user_id, channel, recipient, recipient_key, text, secret, status, created_at)
				VALUES ($1, $2, 'sms', '+41446681800', '+41446681800', 'code 012345', $3, $4, $5)`, id, anna.UserID, secret, status, tx.Now())
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	insert(id, "dead", true)
	sent := store.NewID()
	insert(sent, "sent", true)
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "not for customers", As: anna, Method: "GET", Path: route, Status: 403},
		{Name: "nor for advisors", As: s.User(access.Advisor), Method: "GET", Path: route, Status: 403},
		{Name: "a secret on its way", As: admin, Method: "GET", Path: route + "?search.id=" + id, Status: 200, Contains: []string{id, `"text":""`}, Excludes: []string{"012345"}},
		{Name: "in the local outbox", As: admin, Method: "GET", Path: route + "?search.id=" + sent, Status: 200, Contains: []string{"012345"}},
		{Name: "retry by others", As: anna, Method: "POST", Path: route + "/" + id + "/retry", Status: 403},
		{Name: "retry of an unknown one", As: admin, Method: "POST", Path: route + "/" + store.NewID() + "/retry", Status: 404, Contains: []string{"notifications.delivery_not_found"}},
		{Name: "retry", As: admin, Method: "POST", Path: route + "/" + id + "/retry", Status: 200, Contains: []string{`"status":"sent"`, id}},
		{Name: "retry of one that is not dead", As: admin, Method: "POST", Path: route + "/" + id + "/retry", Status: 409, Contains: []string{"notifications.delivery_not_dead"}},
	})
}

func TestRetry_GivesADeadDeliveryItsAttemptsAgain(t *testing.T) {
	g := &gate{answer: func(notifications.Delivery) error {
		return &notifications.Refusal{Permanent: true, Cause: errors.New("no")}
	}}
	h := newHouse(t, notifications.Options{Email: g})
	id := h.enqueue("email", "x")
	h.until(id, "dead")
	g.mu.Lock()
	g.answer = nil
	g.mu.Unlock()
	admin := access.Caller{UserID: store.NewID(), Roles: []string{access.Administrator}}
	ctx := access.With(t.Context(), admin.Under(access.NewPolicy(access.PolicyData{})))
	if d, err := h.Retry(ctx, notifications.DeliveryInput{ID: id}); err != nil || d.Status != "queued" || d.Attempts != 0 {
		t.Fatalf("got %+v, %v", d, err)
	}
	h.until(id, "sent")
}
