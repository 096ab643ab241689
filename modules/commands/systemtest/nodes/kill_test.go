//go:build unix

package nodes_test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"kontor/modules/commands/systemtest"
	"kontor/store/postgres/postgrestest"
	"kontor/store/testenv"
)

// TestNodes_KillOneUnderLoad kills a node under load, again and again. The other node serves without a pause, no acknowledged write is lost, and
// streams that were open on the killed node resume on the other one, without a gap and in order.
func TestNodes_KillOneUnderLoad(t *testing.T) {
	address := postgrestest.URL(t)
	survivor := startNode(t, address)
	admin := survivor.Admin()
	me := admin.UserID(t)
	l := newLoad(t, "kill")
	steady := l.on(survivor, admin, 6)
	posts := newPosts(t, survivor, me)
	readers := make([]systemtest.StreamReader, 3)
	for round := range nodeRounds(4) {
		victim := startNode(t, address)
		reached := l.on(victim, admin.At(victim), 6)
		ended := make([]<-chan struct{}, len(readers))
		for i := range readers {
			ended[i] = readers[i].FollowSoon(t, admin.At(victim))
		}
		progress(t, reached, 40)
		progress(t, &posts.acknowledged, 10)
		if round%3 == 1 {
			_ = victim.Cmd.Process.Signal(syscall.SIGTERM) // during the shutdown
		}
		victim.Kill()
		progress(t, steady, 20)
		progress(t, &posts.acknowledged, 10) // while no stream is open
		for _, end := range ended {
			testenv.Receive(t, "the end of a stream", end)
		}
	}
	posts.stop()
	l.check(t, survivor)
	if n := int64(admin.Total(t, "/v1/notifications?limit=-1&search.event=test&search.user_id="+me)); n < posts.acknowledged.Load() {
		t.Errorf("%d notifications are stored, %d were acknowledged", n, posts.acknowledged.Load())
	}
	stored := systemtest.AllNotifications(t, admin, me, "")
	for i := range readers {
		readers[i].FollowSoon(t, admin)
		expectAll(t, &readers[i], stored)
	}
	if code := survivor.Stop(); code != 0 {
		t.Errorf("exit code %d: %s", code, survivor.Stderr)
	}
}

// expectAll waits for the last notification and compares what a reader received with what is stored from its first one on.
func expectAll(t *testing.T, r *systemtest.StreamReader, stored []string) {
	t.Helper()
	testenv.Wait(t, "the last notification", func() bool {
		ids := r.Seen()
		return len(ids) > 0 && ids[len(ids)-1] == stored[len(stored)-1]
	})
	seen := r.Seen()
	first := slices.Index(stored, seen[0])
	if first < 0 || !slices.Equal(seen, stored[first:]) {
		t.Errorf("a stream received %d notifications, want the %d that are stored from its first on, in their order: %s",
			len(seen), len(stored[max(first, 0):]), difference(seen, stored[max(first, 0):]))
	}
	if r.Received("reset") {
		t.Error("a stream received a reset")
	}
}

// difference describes the first place where a stream differs from what is stored.
func difference(seen, stored []string) string {
	for i, id := range seen {
		if i >= len(stored) || stored[i] != id {
			return fmt.Sprintf("number %d is stored as number %d, and was received before as number %d", i, slices.Index(stored, id), slices.Index(seen[:i], id))
		}
	}
	return "the last ones are missing"
}

// posts triggers notifications for a user.
type posts struct {
	acknowledged atomic.Int64
	stopped      atomic.Bool
	running      sync.WaitGroup
}

func newPosts(tb testing.TB, p *systemtest.Process, user string) *posts {
	ps := &posts{}
	for w := range 2 {
		keyed := p.Keyed()
		ps.running.Go(func() {
			for n := 0; !ps.stopped.Load(); n++ {
				got, err := keyed.Try("POST", "/v1/notifications/trigger",
					fmt.Sprintf(`{"event":"test","title_key":"%d-%d","user_ids":[%q]}`, w, n, user))
				if err != nil || got.Status != 200 {
					tb.Errorf("a notification got %d %s, %v", got.Status, got.Body, err)
					return
				}
				ps.acknowledged.Add(1)
			}
		})
	}
	tb.Cleanup(ps.stop)
	return ps
}

func (ps *posts) stop() {
	ps.stopped.Store(true)
	ps.running.Wait()
}
