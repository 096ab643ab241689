package app_test

import (
	"testing"

	"kontor/server/servertest"
)

// TestNodes_ShareTheFeedAndDeliverOnce writes on both nodes. A stream on either shows all changes in one order, and a webhook gets
// each event, whichever node leads.
func TestNodes_ShareTheFeedAndDeliverOnce(t *testing.T) {
	first := servertest.StartShared(t, allowLocal)
	second := servertest.Node(t, first, allowLocal)
	r := newReceiver(t)
	newHook(t, first.Admin(), map[string]any{"url": r.URL, "types": []string{"customers.created"}})
	streams := []*follower{follow(t, first, first.Admin().Token, "types=customers.created", ""), follow(t, second, second.Admin().Token, "types=customers.created", "")}
	for _, f := range streams {
		if _, name, _ := f.next(); name != "open" {
			t.Fatalf("got %s", name)
		}
	}
	const each = 10
	want := map[string]bool{}
	for range each {
		want[newCustomer(first.Admin())] = true
		want[newCustomer(second.Admin())] = true
	}
	var orders [2][]string
	for i, f := range streams {
		for range 2 * each {
			id, _, _ := f.next()
			orders[i] = append(orders[i], id)
		}
	}
	for i := range orders[0] {
		if orders[0][i] != orders[1][i] || i > 0 && orders[0][i] <= orders[0][i-1] {
			t.Fatalf("the streams differ, or are out of order: %q and %q", orders[0], orders[1])
		}
	}
	for range 2 * each {
		e := r.next(t).event(t)
		if !want[e.Data.RecID] {
			t.Errorf("%s came twice, or was not created", e.Data.RecID)
		}
		delete(want, e.Data.RecID)
	}
}
