package store_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kontor/store"
	"kontor/store/storetest"
	"kontor/store/testenv"
)

// received collects the keys of a topic on a node.
type received struct {
	mu   sync.Mutex
	list []string
}

func (r *received) add(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, key)
}

// keys returns what has arrived.
func (r *received) keys() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.list)
}

// among returns the keys of a list that another list has, too. Empty keys belong to no order.
func among(list, other []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(key string) bool { return key == "" || !slices.Contains(other, key) })
}

func (r *received) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.list)
}

// hasSince reports whether the key has arrived since there were a number of keys, or an empty one, which stands for all keys.
func (r *received) hasSince(before int, key string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.list[before:], func(got string) bool { return got == key || got == "" })
}

// A strict announcement, such as that of the end of a session, holds on the other node as soon as the change is answered: the
// other node has received the key, or may not use what it remembers.
func TestNodes_StrictAnnouncementsAreNeverLate(t *testing.T) {
	rounds(t, 300)
}

// BenchmarkNodes_Strict measures how long a durable, audited change with a strict announcement takes with two nodes, and
// fails if one is late. Run it with -benchtime 10000x.
func BenchmarkNodes_Strict(b *testing.B) {
	took := rounds(b, b.N)
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(float64(took[len(took)-1].Microseconds())/1000, "max-ms")
}

func rounds(t testing.TB, n int) (took []time.Duration) {
	first := storetest.OpenShared(t, nil)
	second := storetest.Second(t, first)
	var got [2]received
	topics := []*store.Topic{first.Topic("changes", got[0].add), second.Topic("changes", got[1].add)}
	nodes := []*store.DB{first, second}
	for i := range n {
		from := i % 2
		key := fmt.Sprint(i)
		before := [...]int{got[0].count(), got[1].count()}
		begun := time.Now()
		err := nodes[from].InTx(t.Context(), func(tx *store.Tx) error {
			tx.Audit(store.AuditEntry{Actor: store.NilID, Action: "session.end", RecType: "session", RecID: store.NilID})
			tx.Announce(topics[from], key)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		took = append(took, time.Since(begun))
		for side, node := range nodes {
			if node.Remembers() && !got[side].hasSince(before[side], key) {
				t.Fatalf("round %d: a node remembers without having received the key", i)
			}
		}
	}
	testenv.Wait(t, "both nodes to remember", func() bool { return first.Remembers() && second.Remembers() })
	return took
}

// Publications of several nodes arrive on all of them in the order of the commits. A node that has lost its connection, as on a busy
// machine, gets an empty key instead of those that it has missed.
func TestNodes_PublicationsHaveOneOrder(t *testing.T) {
	const each = 50
	first := storetest.OpenShared(t, nil)
	nodes := []*store.DB{first, storetest.Second(t, first), storetest.Second(t, first)}
	got := make([]received, len(nodes))
	var locals atomic.Int64
	var writing sync.WaitGroup
	for i, db := range nodes {
		topic := db.Topic("frames", got[i].add)
		for worker := range 2 {
			writing.Go(func() {
				for n := range each / 2 {
					key := fmt.Sprint(i, "-", worker, "-", n)
					err := db.InTx(t.Context(), func(tx *store.Tx) error {
						tx.Publish(topic, key, func() { locals.Add(1); got[i].add(key) })
						return nil
					})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	writing.Wait()
	for i := range nodes {
		testenv.Wait(t, "all publications", func() bool { return got[i].count() >= each*len(nodes) || got[i].hasSince(0, "") || t.Failed() })
	}
	reference, lost := got[0].keys(), got[0].hasSince(0, "")
	for i := range nodes[1:] {
		other := got[i+1].keys()
		if !slices.Equal(among(other, reference), among(reference, other)) {
			t.Errorf("node %d has another order than node 0", i+1)
		}
		lost = lost || got[i+1].hasSince(0, "")
	}
	if !lost && locals.Load() != each*int64(len(nodes)) {
		t.Errorf("%d local functions were called, want %d", locals.Load(), each*len(nodes))
	}
}

func TestNodes_AreListedAndOneLeads(t *testing.T) {
	first := storetest.OpenShared(t, nil)
	second := storetest.Second(t, first)
	if !first.Shared() {
		t.Error("the database is not shared")
	}
	// Until the next heartbeat, and on a busy machine until both nodes have a lease.
	testenv.Wait(t, "two live nodes, of which one leads", func() bool {
		for i, list := range [][]store.Node{first.Nodes(), second.Nodes()} {
			if len(list) != 2 || list[0].Leads == list[1].Leads || !list[0].Live || !list[1].Live || !list[i].Self || list[1-i].Self {
				return false
			}
		}
		return first.Leads() != second.Leads()
	})
	if difference := first.Clock().Now().Sub(second.Clock().Now()).Abs(); difference > time.Second {
		t.Errorf("the clocks of the nodes differ by %v", difference)
	}
}

// BenchmarkNodes_Remembers is what a request pays for using what a node remembers.
func BenchmarkNodes_Remembers(b *testing.B) {
	db := storetest.OpenShared(b, nil)
	for b.Loop() {
		if !db.Remembers() {
			b.Fatal("the node does not remember")
		}
	}
}

// BenchmarkNodes_ReadInstead is what it would pay for reading a row by its key.
func BenchmarkNodes_ReadInstead(b *testing.B) {
	db := storetest.OpenShared(b, nil)
	for b.Loop() {
		var id string
		if err := db.QueryRow(b.Context(), `SELECT name FROM meta WHERE name = $1`, "audit_head").Scan(&id); err != nil && !errors.Is(err, store.ErrNotFound) {
			b.Fatal(err)
		}
	}
}

func TestAnnounce_ReachesReceiversAfterTheCommitOnly(t *testing.T) {
	db := storetest.Open(t)
	if db.Shared() {
		return // other processes and the order of events: see the tests of that engine
	}
	var got []string
	topic := db.Topic("changes", func(key string) { got = append(got, key) })
	err := db.InTx(t.Context(), func(tx *store.Tx) error {
		tx.Announce(topic, "strict")
		tx.AnnounceSoon(topic, "soon")
		tx.Publish(topic, "without a function", nil)
		tx.Publish(topic, "replaced", func() { got = append(got, "local") })
		if len(got) > 0 {
			t.Errorf("%q was received before the commit", got)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"strict", "soon", "without a function", "local"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	failure := errors.New("rejected")
	err = db.InTx(t.Context(), func(tx *store.Tx) error {
		tx.Announce(topic, "failed")
		return failure
	})
	if !errors.Is(err, failure) || slices.Contains(got, "failed") {
		t.Errorf("a failed transaction: %v, announced %q", err, got)
	}
}
