package app_test

import (
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/server/settings"
	"kontor/store/testenv"
)

func limited(o *settings.Settings) { o.RateLimits.Enabled = true }

func setRule(t *testing.T, s *servertest.Server, perMinute any) {
	t.Helper()
	s.Admin().Do("PUT", "/v1/rate-limits", map[string]any{"endpoint": "GET /v1/users/me", "per_minute": perMinute}).Expect(t, 200)
}

// A rule that was set on one node is in force for the very next request to another one.
func TestNodes_RateLimitRuleAtOnce(t *testing.T) {
	a, b := nodes(t, limited, func(o *settings.Settings) { o.RateLimits.PrivatePerMinute = 10_000 })
	there := at(b, a.User(access.Customer))
	for n := range 200 {
		setRule(t, a, 1000+n)
		answer := there.Do("GET", "/v1/users/me", nil).Expect(t, 200)
		if got := answer.Header.Get("RateLimit-Limit"); got != strconv.Itoa(1000+n) {
			t.Fatalf("the next request on the other node is limited to %s, want %d", got, 1000+n)
		}
	}
}

// A stored rule allows its number of requests over all nodes, no more and no fewer.
func TestNodes_RateLimitRuleIsExact(t *testing.T) {
	a, b := nodes(t, limited)
	const rule, requests = 7, 40
	setRule(t, a, rule)
	for range 5 {
		u := a.User(access.Customer)
		for _, client := range []*servertest.Client{u, at(b, u)} { // the first request to a node counts for the network, too
			client.Do("GET", "/v1/users/"+u.UserID, nil).Expect(t, 200)
		}
		var allowed atomic.Int64
		var running sync.WaitGroup
		for _, client := range []*servertest.Client{u, at(b, u)} {
			for range requests / 2 {
				running.Go(func() {
					answer, err := client.Try("GET", "/v1/users/me", nil)
					switch {
					case err != nil:
						t.Error(err)
					case answer.Status == 200:
						allowed.Add(1)
					case answer.Status != 429 || answer.Header.Get("Retry-After") == "":
						t.Errorf("%d %s", answer.Status, answer.Body)
					}
				})
			}
		}
		running.Wait()
		if n := allowed.Load(); n != rule {
			t.Errorf("%d of %d requests were allowed, want %d", n, requests, rule)
		}
		a.Clock.Advance(time.Minute / rule)
		u.Do("GET", "/v1/users/me", nil).Expect(t, 200)
		at(b, u).Do("GET", "/v1/users/me", nil).Expect(t, 429)
	}
	// Counts that do not limit any more are deleted.
	a.Clock.Advance(2 * time.Minute)
	if err := a.RBAC.PurgeCounts(t.Context()); err != nil {
		t.Fatal(err)
	}
	var left int
	if err := a.DB.QueryRow(t.Context(), "SELECT count(*) FROM rate_limit_counts").Scan(&left); err != nil || left != 0 {
		t.Errorf("%d counts are left, %v", left, err)
	}
}

// The nodes divide the general limits.
func TestNodes_DivideGeneralLimits(t *testing.T) {
	a, b := nodes(t, limited, func(o *settings.Settings) { o.RateLimits.PrivatePerMinute = 100 })
	u := a.User(access.Customer)
	testenv.Wait(t, "a limit of 50 on each node", func() bool { // a node counts the others once a second
		a.Clock.Advance(time.Minute)
		one := u.Do("GET", "/v1/users/me", nil).Header.Get("RateLimit-Limit")
		other := at(b, u).Do("GET", "/v1/users/me", nil).Header.Get("RateLimit-Limit")
		return one == "50" && other == "50"
	})
}
