package bus_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kontor/store/postgres/postgrestest"
)

// cache remembers a number of the database, as a module remembers rights.
type cache struct {
	mu    sync.Mutex
	known bool
	value int
	drops int
	loads atomic.Int64
	hits  atomic.Int64
	bus   *node
}

func (c *cache) drop(string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known = false
	c.drops++
}

// get returns the number: the remembered one, if that may be used.
func (c *cache) get(load func() int) int {
	remembers := c.bus.Remembers()
	c.mu.Lock()
	known, value, drops := c.known, c.value, c.drops
	c.mu.Unlock()
	if remembers && known {
		c.hits.Add(1)
		return value
	}
	c.loads.Add(1)
	value = load()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.drops == drops { // otherwise it may have been read before the change
		c.known, c.value = true, value
	}
	return value
}

// disturb does something to the network of a node.
func disturb(random *rand.Rand, p *postgrestest.Proxy, n int) {
	switch {
	case n == 7: // each of these takes as long as a lease
		p.Hold()
	case n == 14:
		p.HoldAnswers()
	case n == 22:
		p.HalfOpen()
	case n%5 < 2:
		p.Cut()
	case n%5 == 3:
		p.Delay(time.Duration(random.IntN(20)) * time.Millisecond)
	default:
		p.Delay(0)
	}
}

// While connections are cut, held and delayed at random, no node ever uses a number that was replaced before the last strict
// change was answered.
func TestChaos_NobodyUsesWhatWasReplaced(t *testing.T) {
	address := postgrestest.URL(t)
	setUp := connect(t, address)
	execute(t, setUp, `CREATE TABLE numbers (n INTEGER); INSERT INTO numbers VALUES (0)`)
	const nodes = 3
	var answered atomic.Int64 // the newest number whose change was answered
	caches := make([]*cache, nodes)
	proxies := make([]*postgrestest.Proxy, nodes)
	for i := range caches {
		_, proxies[i] = database(t)
		c := &cache{}
		c.bus = start(t, address, options{listen: proxies[i].Through(address), receive: c.drop})
		caches[i] = c
	}
	stop := make(chan struct{})
	var running sync.WaitGroup
	for i, c := range caches {
		conn := connect(t, address)
		running.Go(func() { // requests
			for {
				select {
				case <-stop:
					return
				default:
					runtime.Gosched()
				}
				least := int(answered.Load())
				got := c.get(func() int {
					n, err := strconv.Atoi(string(execute(t, conn, `SELECT n FROM numbers`)[0].Rows[0][0]))
					if err != nil {
						t.Error(err)
					}
					return n
				})
				if got < least {
					t.Errorf("node %d used %d after the change to %d was answered", i, got, least)
					return
				}
			}
		})
	}
	random := rand.New(rand.NewPCG(1, 2))
	for n := 1; n <= 25 && !t.Failed(); n++ {
		disturb(random, proxies[random.IntN(nodes)], n)
		from := caches[n%nodes]
		received := from.bus.commit(fmt.Sprintf(`UPDATE numbers SET n = %d`, n), strictly(from.bus, "n"))
		from.drop("") // an engine calls the receivers of this node itself
		<-received
		answered.Store(int64(n))
		for _, p := range proxies {
			p.Release()
		}
	}
	for i, c := range caches {
		until(t, fmt.Sprintf("node %d to use what it remembers", i), func() bool { return c.hits.Load() > 0 || t.Failed() })
	}
	close(stop)
	running.Wait()
}
