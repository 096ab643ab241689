package notifications_test

import (
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/server/settings"
)

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
				f, ok := l.event()
				if !ok {
					t.Error("a stream has ended")
					return
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
	expectNothing(t, nodes[0], anna.UserID, l)
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
				for f, ok := l.event(); ok; f, ok = l.event() {
					if late[f.ID] {
						t.Fatalf("%s was published after the answer and delivered", f.ID)
					}
				}
			}
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
