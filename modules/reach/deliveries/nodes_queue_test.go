package deliveries_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"testing"

	"kontor/modules/kit/outbox"
	"kontor/modules/reach/deliveries"
	"kontor/store"
	"kontor/store/postgres/postgrestest"
	"kontor/store/storetest"
	"kontor/store/testenv"
)

// Two nodes send each delivery once, also those of a node that ends in the middle.
func TestNodes_SendEachDeliveryOnce(t *testing.T) {
	const all = 60
	databases := [2]*store.DB{}
	first := newSharedQueueTest(t)
	databases[0], databases[1] = first.db, first.second(t)
	gateways := [2]*fakeGateway{{}, {}}
	for i, db := range databases {
		h := &queueTest{t: t, db: db, clock: first.clock}
		h.restart(deliveries.Options{Email: gateways[i]})
		for n := range all / 2 {
			h.enqueue("email", fmt.Sprint(i, n))
		}
	}
	eventually(t, func() bool { return count(t, databases[0], "deliveries WHERE status = 'sent'") == all })
	sent := slices.Concat(gateways[0].accepted(), gateways[1].accepted())
	if slices.Sort(sent); len(sent) != all || len(slices.Compact(sent)) != all {
		t.Errorf("%d messages were sent for %d deliveries", len(sent), all)
	}
}

// A node that has many deliveries wakes the other ones.
func TestNodes_HelpABusyNode(t *testing.T) {
	first := newSharedQueueTest(t)
	release := make(chan struct{})
	slow := func(deliveries.Delivery) error { <-release; return nil }
	gateways := [2]*fakeGateway{{answer: slow}, {answer: slow}}
	first.restart(deliveries.Options{Email: gateways[0]})
	other := &queueTest{t: t, db: first.second(t), clock: first.clock}
	other.restart(deliveries.Options{Email: gateways[1]})
	for n := range 20 {
		first.enqueue("email", fmt.Sprint(n))
	}
	eventually(t, func() bool { return gateways[0].tried() == 8 && gateways[1].tried() == 8 })
	close(release)
	eventually(t, func() bool { return count(t, first.db, "deliveries WHERE status = 'sent'") == 20 })
}

// The deliveries of a node that is gone are sent by another, and its streams do not count. Those of a living node stay.
func TestNodes_ReleaseWhatANodeHasLeft(t *testing.T) {
	ctx := t.Context()
	first := newSharedQueueTest(t)
	release := make(chan struct{})
	defer close(release)
	stuck := &fakeGateway{answer: func(deliveries.Delivery) error { <-release; return errors.New("too late") }}
	dying := &queueTest{t: t, db: first.second(t), clock: first.clock}
	dying.restart(deliveries.Options{Email: stuck})
	id := dying.enqueue("email", "hello")
	dying.until(id, "sending")

	g := &fakeGateway{}
	first.restart(deliveries.Options{Email: g})
	for range 3 {
		if err := first.ReleaseNodes(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if s := first.state(id); s.status != "sending" || len(g.accepted()) != 0 {
		t.Fatalf("the delivery of a living node was taken: %+v", s)
	}
	insertStreams(t, first.db, map[string]int64{outbox.ThisNode(dying.db): 3, outbox.ThisNode(first.db): 2})
	if err := dying.db.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool {
		if err := first.ReleaseNodes(ctx); err != nil {
			t.Fatal(err)
		}
		return first.state(id).status == "sent"
	})
	if s := first.state(id); s.attempts != 2 || !slices.Equal(g.accepted(), []string{id}) {
		t.Errorf("got %+v, sent %q", s, g.accepted())
	}
	if n := count(t, first.db, "open_streams"); n != 1 {
		t.Errorf("%d numbers of streams are left, want that of the living node", n)
	}
}

// cancellableGateway holds attempts until their context ends or it is released.
type cancellableGateway struct {
	begun, cancelled chan string
	release          chan struct{}
}

func (g *cancellableGateway) Send(ctx context.Context, d deliveries.Delivery) error {
	g.begun <- d.ID
	select {
	case <-ctx.Done():
		g.cancelled <- d.ID
		return ctx.Err()
	case <-g.release:
		return nil
	}
}

// A node that is cut off from the database cancels what it sends. Another node sends it.
func TestNodes_ANodeWithoutTheDatabaseCancelsItsAttempts(t *testing.T) {
	first := newSharedQueueTest(t)
	o := storetest.OptionsOf(t, first.db)
	address, err := url.Parse(o.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := postgrestest.NewProxy(t, address.Host)
	o.URL = proxy.Through(o.URL)
	cut := &queueTest{t: t, db: storetest.OpenAgain(t, o), clock: first.clock}
	slow := &cancellableGateway{begun: make(chan string, 8), cancelled: make(chan string, 8), release: make(chan struct{})}
	cut.restart(deliveries.Options{Email: slow})
	id := cut.enqueue("email", "hello")
	testenv.Wait(t, "an attempt to begin", func() bool { return len(slow.begun) == 1 })
	proxy.Refuse(true)
	proxy.Cut()
	testenv.Wait(t, "the attempt to be cancelled", func() bool { return len(slow.cancelled) == 1 })
	g := &fakeGateway{}
	first.restart(deliveries.Options{Email: g})
	eventually(t, func() bool {
		if err := first.ReleaseNodes(t.Context()); err != nil {
			t.Fatal(err)
		}
		return first.state(id).status == "sent"
	})
	proxy.Refuse(false)
	eventually(t, cut.db.Remembers)
	if s := first.state(id); s.attempts != 2 || !slices.Equal(g.accepted(), []string{id}) {
		t.Errorf("got %+v, sent %q", s, g.accepted())
	}
}

// A node whose lease has ended sends nothing that it claims: other nodes may have released it already. The attempt does not count.
func TestNodes_ANodeWithoutALeaseSendsNothing(t *testing.T) {
	first := newSharedQueueTest(t)
	without := &queueTest{t: t, db: storetest.Isolated(t, first.db, false), clock: first.clock}
	never := &fakeGateway{}
	without.restart(deliveries.Options{Email: never})
	id := without.enqueue("email", "hello")
	eventually(t, func() bool {
		s := first.state(id)
		return s.status == "retrying" && s.attempts == 0 // it has claimed the delivery, and given it back
	})
	g := &fakeGateway{}
	first.restart(deliveries.Options{Email: g})
	eventually(t, func() bool { return first.state(id).status == "sent" })
	if s := first.state(id); s.attempts != 1 || never.tried() != 0 || !slices.Equal(g.accepted(), []string{id}) {
		t.Errorf("got %+v, %d tries without a lease, sent %q", s, never.tried(), g.accepted())
	}
}

// While a node of another version uses the database, secrets are not sealed: it would send empty messages. They are afterwards.
func TestNodes_SealSecretsWhenAllNodesCanReadThem(t *testing.T) {
	first := newSharedQueueTest(t)
	down := &fakeGateway{answer: func(deliveries.Delivery) error { return errors.New("down") }}
	first.restart(deliveries.Options{Email: down})
	o := storetest.OptionsOf(t, first.db)
	o.Program = "the version before"
	before := storetest.OpenAgain(t, o)
	eventually(t, func() bool { return len(first.db.Nodes()) == 2 })
	id := first.enqueue("email", "secret 738051")
	if err := first.SealTexts(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := first.state(id); s.text != "secret 738051" {
		t.Errorf("with another version, the text is %q", s.text)
	}
	if err := before.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool {
		if err := first.SealTexts(t.Context()); err != nil {
			t.Fatal(err)
		}
		return plainSecrets(t, first.db) == 0
	})
	down.mu.Lock()
	var got string
	down.answer = func(d deliveries.Delivery) error { got = d.Text; return nil }
	down.mu.Unlock()
	first.untilItEnds(id)
	if s := first.state(id); s.status != "sent" || got != "secret 738051" {
		t.Errorf("the delivery is %+v, and the gateway got %q", s, got)
	}
}

func insertStreams(t testing.TB, db *store.DB, byNode map[string]int64) {
	t.Helper()
	ctx := context.Background()
	err := db.InTx(ctx, func(tx *store.Tx) error {
		for _, node := range slices.Sorted(maps.Keys(byNode)) {
			if _, err := tx.Exec(ctx, `INSERT INTO open_streams (user_id, node_id, streams) VALUES ($1, $2, $3)`, store.NewID(), node, byNode[node]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
