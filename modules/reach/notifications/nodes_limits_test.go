package notifications_test

import (
	"net/http"
	"sync"
	"testing"

	"kontor/server/access"
	"kontor/server/settings"
)

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
