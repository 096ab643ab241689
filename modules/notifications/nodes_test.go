package notifications_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"kontor/modules/notifications"
	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/server/settings"
	"kontor/store"
	"kontor/store/postgres/postgrestest"
	"kontor/store/storetest"
)

// twoNodes starts two nodes on one database.
func twoNodes(t testing.TB, options ...servertest.Option) [2]*servertest.Server {
	t.Helper()
	first := servertest.StartShared(t, options...)
	return [2]*servertest.Server{first, servertest.Node(t, first, options...)}
}

// cutAnnouncements ends the connections on which the nodes receive announcements, and returns their number. The nodes connect again
// by themselves.
func cutAnnouncements(t testing.TB, db *store.DB) (n int) {
	t.Helper()
	err := db.QueryRow(context.Background(), `
		SELECT COUNT(pg_terminate_backend(pid)) FROM pg_stat_activity
		WHERE datname = current_database() AND application_name LIKE 'kontor bus %'`).Scan(&n)
	if err != nil {
		t.Errorf("cut the announcements: %v", err)
	}
	return n
}

// stored returns the ids of a user's notifications in the order of the streams.
func stored(t testing.TB, db *store.DB, userID string) []string {
	t.Helper()
	ids, err := store.All(context.Background(), db, store.Text, `SELECT id FROM notifications WHERE user_id = $1 ORDER BY created_at, id`, userID)
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

// Both nodes write in parallel while the connections for announcements are cut. Every stream gets every notification of its user
// once, in the order of the table, which is that of the commits.
func TestNodes_StreamsGetTheFramesOfAllNodesInOrder(t *testing.T) {
	const writers, each, cuts = 3, 300, 4
	nodes := twoNodes(t)
	anna, beat, carla := nodes[0].User(access.Advisor), nodes[1].User(access.Customer), nodes[0].User(access.Customer)
	streams := map[*streamClient]*servertest.Client{}
	for _, node := range nodes {
		for _, user := range []*servertest.Client{anna, beat, anna} {
			l := open(t, node.Address, "GET", user.Token)
			l.expect("open")
			streams[l] = user
		}
	}
	cut := 0 // of the first writer
	var writing sync.WaitGroup
	for i := range writers * 2 {
		writing.Go(func() {
			node := nodes[i%2]
			for n := range each {
				recipients := [][]string{{anna.UserID}, {anna.UserID, beat.UserID}, {carla.UserID, beat.UserID}}[(i+n)%3]
				if n%20 == 0 {
					recipients = append(newIDs(30), recipients...) // more than an announcement names
				}
				notify(t, node.DB, node.Notifications, customerEvent(recipients...))
				if i == 0 && n%(each/cuts) == each/cuts/2 {
					cut += cutAnnouncements(t, node.DB)
				}
			}
		})
	}
	var reading sync.WaitGroup
	for l, user := range streams {
		reading.Go(func() {
			var got []string
			for {
				f, ok := l.next()
				if !ok {
					t.Error("a stream has ended") // the leases last longer than a cut
					return
				}
				if f.Event != "message" {
					continue
				}
				if got = append(got, f.ID); f.member(t, "event") == "customer_status_changed" { // the last one
					break
				}
			}
			compareFrames(t, got, stored(t, nodes[1].DB, user.UserID))
		})
	}
	writing.Wait()
	notify(t, nodes[1].DB, nodes[1].Notifications, systemEvent(anna.UserID, beat.UserID))
	reading.Wait()
	if cut == 0 {
		t.Error("no connection was cut")
	}
}

// compareFrames compares the ids of frames with those of the table.
func compareFrames(t testing.TB, got, want []string) {
	t.Helper()
	if slices.Equal(got, want) {
		return
	}
	position := map[string]int{}
	for i, id := range want {
		position[id] = i
	}
	for i, id := range got {
		if i >= len(want) || want[i] != id {
			t.Errorf("got %d frames of %d; frame %d is that of row %d", len(got), len(want), i, position[id])
			return
		}
	}
	t.Errorf("got %d frames of %d", len(got), len(want))
}

// A client that changes the node after each few frames gets each frame once.
func TestNodes_AStreamResumesOnAnotherNode(t *testing.T) {
	const events, hops = 400, 25
	nodes := twoNodes(t)
	anna := nodes[0].User(access.Customer)
	l := open(t, nodes[0].Address, "GET", anna.Token)
	l.expect("open")
	var writing sync.WaitGroup
	for _, node := range nodes {
		writing.Go(func() {
			for range events / 2 {
				notify(t, node.DB, node.Notifications, customerEvent(anna.UserID))
			}
		})
	}
	var got []string
	for hop := range hops {
		for range events / hops {
			got = append(got, l.expect("message").ID)
		}
		_ = l.conn.Close()
		l = open(t, nodes[(hop+1)%2].Address, "GET", anna.Token, "Last-Event-ID", got[len(got)-1])
		l.expect("open")
	}
	writing.Wait()
	compareFrames(t, got, stored(t, nodes[0].DB, anna.UserID))
	l.expectNothing()
}

// The limit of a user holds over all nodes, and streams that have ended do not count, nor do those of a node that is gone.
func TestNodes_LimitStreamsOfAUserTogether(t *testing.T) {
	const limit = 4
	nodes := twoNodes(t, func(s *settings.Settings) { s.Notifications.SSE.ConnectionsPerUser = limit })
	anna, beat := nodes[0].User(access.Customer), nodes[0].User(access.Customer)
	var opened []*streamClient
	for i := range limit {
		l := open(t, nodes[i%2].Address, "GET", anna.Token)
		l.expect("open")
		opened = append(opened, l)
	}
	for _, node := range nodes {
		if l := open(t, node.Address, "GET", anna.Token); l.Response.StatusCode != http.StatusTooManyRequests {
			t.Errorf("a stream beyond the limit got %s", l.Response.Status)
		}
		open(t, node.Address, "GET", beat.Token).expect("open")
	}
	for _, node := range nodes {
		_ = opened[0].conn.Close()
		opened = opened[1:]
		eventually(t, func() bool {
			l := open(t, node.Address, "GET", anna.Token)
			if l.Response.StatusCode != http.StatusOK {
				return false
			}
			opened = append(opened, l)
			return true
		})
	}
}

// Parallel requests on both nodes do not exceed the limit either.
func TestNodes_LimitParallelRequests(t *testing.T) {
	const limit, requests = 5, 40
	nodes := twoNodes(t, func(s *settings.Settings) { s.Notifications.SSE.ConnectionsPerUser = limit })
	anna := nodes[0].User(access.Customer)
	var mu sync.Mutex
	statuses := map[int]int{}
	var opening sync.WaitGroup
	for i := range requests {
		opening.Go(func() {
			l := open(t, nodes[i%2].Address, "GET", anna.Token)
			mu.Lock()
			defer mu.Unlock()
			statuses[l.Response.StatusCode]++
		})
	}
	opening.Wait()
	// Requests that were refused at the same moment may have counted against each other.
	if statuses[http.StatusOK] > limit || statuses[http.StatusOK]+statuses[http.StatusTooManyRequests] != requests {
		t.Errorf("got %v with a limit of %d", statuses, limit)
	}
}

func TestNodes_NothingIsDeliveredAfterARevocationOnAnotherNodeWasAnswered(t *testing.T) {
	const rounds = 4
	nodes := twoNodes(t, func(o *settings.Settings) { o.Auth.SessionsMax = 1 })
	admin := nodes[0].Admin()
	for name, r := range revocations {
		t.Run(name, func(t *testing.T) {
			for range rounds {
				user := nodes[0].User(r.role)
				l := open(t, nodes[1].Address, "GET", user.Token)
				l.expect("open")
				late := publishWhile(t, nodes[:], user.UserID, func() { r.change(t, nodes[0], admin, user) })
				for f, ok := l.next(); ok; f, ok = l.next() {
					if late[f.ID] {
						t.Fatalf("%s was published after the answer and delivered", f.ID)
					}
				}
				if r.restore != nil {
					r.restore(t, nodes[0], admin)
				}
			}
		})
	}
}

// A frame about a message is the same on every node, for each reader.
func TestNodes_FramesCarryMessages(t *testing.T) {
	nodes := twoNodes(t)
	anna, beat, carla := nodes[0].User(access.Advisor), nodes[0].User(access.Customer), nodes[0].User(access.Advisor)
	chatID := newChat(t, anna, beat, carla)
	for _, reader := range []*servertest.Client{beat, carla} {
		var lines [2]*streamClient
		for i, node := range nodes {
			lines[i] = open(t, node.Address, "GET", reader.Token)
			lines[i].expect("open")
		}
		for _, text := range []string{"Grüezi", string(slices.Repeat([]byte("lang "), 1000))} {
			posted := postMessage(t, anna, chatID, text)
			here, there := lines[0].expect("message"), lines[1].expect("message")
			if fmt.Sprint(here.withoutSentAt(t)) != fmt.Sprint(there.withoutSentAt(t)) {
				t.Errorf("got %s on one node and %s on the other", here.Data, there.Data)
			}
			if m := there.message(t); m.Chat == nil || m.Chat.MessageID != posted["id"] || m.People[anna.UserID] == nil {
				t.Errorf("got %s", there.Data)
			}
		}
	}
}

// Former participants get no texts of a chat.
func TestNodes_FramesOfFormerParticipantsCarryNoMessage(t *testing.T) {
	nodes := twoNodes(t, func(o *settings.Settings) { o.Notifications.SSE.Heartbeat = 2 * time.Second })
	anna, beat := nodes[0].User(access.Advisor), nodes[0].User(access.Customer)
	carla := nodes[0].User(access.Advisor)
	chatID := newChat(t, anna, beat, carla)
	l := open(t, nodes[1].Address, "GET", beat.Token)
	l.expect("open")
	// Only a live stream gets heartbeats. Before, it reads the table itself, and may see the message before Beat is removed.
	if f, _ := l.next(); f.Comment == "" {
		t.Fatalf("got %+v, want a heartbeat", f)
	}
	release := nodes[1].Notifications.HoldFrames()
	postMessage(t, anna, chatID, "secret plans")
	anna.Do("DELETE", "/v1/chats/"+chatID+"/participants/"+beat.UserID, nil).Expect(t, http.StatusOK)
	release()
	if m := l.expect("message").message(t); m.Event != "message_received" || m.Chat != nil {
		t.Errorf("got %+v with the message %+v", m, m.Chat)
	}
}

func TestNodes_TheTriggerReachesStreamsOfAllNodes(t *testing.T) {
	nodes := twoNodes(t)
	anna := nodes[0].User(access.Customer)
	l := open(t, nodes[1].Address, "GET", anna.Token)
	l.expect("open")
	nodes[0].Keyed().Do("POST", path+"/trigger", map[string]any{"event": "test", "title_key": "x", "content": "hello"}).Expect(t, http.StatusOK)
	if f := l.expect("message"); f.member(t, "content") != "hello" {
		t.Errorf("got %+v", f)
	}
}

// Two nodes send each delivery once, also those of a node that ends in the middle.
func TestNodes_SendEachDeliveryOnce(t *testing.T) {
	const deliveries = 60
	databases := [2]*store.DB{}
	first := newSharedQueueTest(t)
	databases[0], databases[1] = first.db, first.second(t)
	gateways := [2]*fakeGateway{{}, {}}
	for i, db := range databases {
		h := &queueTest{t: t, db: db, clock: first.clock}
		h.restart(notifications.Options{Email: gateways[i]})
		for n := range deliveries / 2 {
			h.enqueue("email", fmt.Sprint(i, n))
		}
	}
	eventually(t, func() bool { return count(t, databases[0], "deliveries WHERE status = 'sent'") == deliveries })
	sent := slices.Concat(gateways[0].accepted(), gateways[1].accepted())
	if slices.Sort(sent); len(sent) != deliveries || len(slices.Compact(sent)) != deliveries {
		t.Errorf("%d messages were sent for %d deliveries", len(sent), deliveries)
	}
}

// A node that has many deliveries wakes the other ones.
func TestNodes_HelpABusyNode(t *testing.T) {
	first := newSharedQueueTest(t)
	release := make(chan struct{})
	slow := func(notifications.Delivery) error { <-release; return nil }
	gateways := [2]*fakeGateway{{answer: slow}, {answer: slow}}
	first.restart(notifications.Options{Email: gateways[0]})
	other := &queueTest{t: t, db: first.second(t), clock: first.clock}
	other.restart(notifications.Options{Email: gateways[1]})
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
	stuck := &fakeGateway{answer: func(notifications.Delivery) error { <-release; return errors.New("too late") }}
	dying := &queueTest{t: t, db: first.second(t), clock: first.clock}
	dying.restart(notifications.Options{Email: stuck})
	id := dying.enqueue("email", "hello")
	dying.until(id, "sending")

	g := &fakeGateway{}
	first.restart(notifications.Options{Email: g})
	for range 3 {
		if err := first.ReleaseNodes(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if s := first.state(id); s.status != "sending" || len(g.accepted()) != 0 {
		t.Fatalf("the delivery of a living node was taken: %+v", s)
	}
	insertStreams(t, first.db, map[string]int64{nodeID(dying.db): 3, nodeID(first.db): 2})
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

func (g *cancellableGateway) Send(ctx context.Context, d notifications.Delivery) error {
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
	cut.restart(notifications.Options{Email: slow})
	id := cut.enqueue("email", "hello")
	<-slow.begun
	proxy.Refuse(true)
	proxy.Cut()
	if got := <-slow.cancelled; got != id {
		t.Errorf("%s was cancelled, want %s", got, id)
	}
	g := &fakeGateway{}
	first.restart(notifications.Options{Email: g})
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

// nodeID returns the id of the node that a database was opened by.
func nodeID(db *store.DB) string {
	for _, n := range db.Nodes() {
		if n.Self {
			return n.ID
		}
	}
	return ""
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

// BenchmarkNodes measures how long a frame takes from the end of its transaction on one node to a stream on another.
func BenchmarkNodes(b *testing.B) {
	nodes := twoNodes(b)
	anna := nodes[0].User(access.Customer)
	for name, node := range map[string]*servertest.Server{"same node": nodes[0], "other node": nodes[1]} {
		b.Run(name, func(b *testing.B) {
			l := open(b, node.Address, "GET", anna.Token)
			l.expect("open")
			defer func() { _ = l.conn.Close() }()
			var took []time.Duration
			for b.Loop() {
				notify(b, nodes[0].DB, nodes[0].Notifications, customerEvent(anna.UserID))
				began := time.Now()
				l.expect("message")
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
		})
	}
}

// Ids of two nodes have no order, so times must: no two nodes use the same, even if the newest event was deleted.
func TestNodes_TimesOfEventsIncrease(t *testing.T) {
	nodes := twoNodes(t) // their clocks stand still
	anna, admin := nodes[0].User(access.Customer), nodes[0].Admin()
	for i := range 12 {
		node := nodes[i%2]
		notify(t, node.DB, node.Notifications, customerEvent(anna.UserID))
		if i%4 == 2 {
			var notice string
			if err := node.DB.QueryRow(t.Context(), `SELECT id FROM notices ORDER BY created_at DESC LIMIT 1`).Scan(&notice); err != nil {
				t.Fatal(err)
			}
			admin.Do("DELETE", path+"/"+notice, nil).Expect(t, http.StatusOK)
		}
	}
	if n := count(t, nodes[0].DB, "(SELECT DISTINCT created_at FROM notices) AS times"); n != 12 {
		t.Errorf("12 events have %d times", n)
	}
}
