package notifications_test

import (
	"sync"
	"testing"

	"kontor/modules/kit/event"
	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/store"
)

// unread returns the number of unread notifications that the API reports.
func unread(t *testing.T, c *servertest.Client) float64 {
	t.Helper()
	return c.Do("GET", path+"/unread-count", nil).Expect(t, 200).JSON(t)["unread_count"].(float64)
}

func TestMarkAll_MarksWhatTheSearchFinds(t *testing.T) {
	s := servertest.Start(t)
	anna, beat := s.User(access.Customer), s.User(access.Customer)
	notified(t, s, customerEvent(anna.UserID, beat.UserID))
	notified(t, s, customerEvent(anna.UserID))
	task := customerEvent(anna.UserID)
	task.Kind = event.TaskAssigned
	notified(t, s, task)
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "nothing matches", As: anna, Method: "POST", Path: path + "/read-all?search.event=webhook_paused", Status: 200, Contains: []string{`"updated":0`}},
		{Name: "read ones", As: anna, Method: "POST", Path: path + "/read-all?search.read=true", Status: 200, Contains: []string{`"updated":0`}},
		{Name: "those of another user", As: anna, Method: "POST", Path: path + "/read-all?search.user_id=" + beat.UserID, Status: 200, Contains: []string{`"updated":0`}},
		{Name: "an unknown field", As: anna, Method: "POST", Path: path + "/read-all?search.x=1", Status: 500, Contains: []string{"query_m.invalid_search_field"}},
		{Name: "without a token", Method: "POST", Path: path + "/read-all", Status: 401},
		{Name: "one event", As: anna, Method: "POST", Path: path + "/read-all?search.event=task_assigned&limit=1&sort=read", Status: 200, Contains: []string{`"updated":1`}},
		{Name: "of an administrator", As: s.Admin(), Method: "POST", Path: path + "/read-all", Status: 200, Contains: []string{`"updated":0`}},
		{Name: "the rest", As: anna, Method: "POST", Path: path + "/read-all?search.user_id=" + anna.UserID + "&search.read=false", Status: 200, Contains: []string{`"updated":2`}},
		{Name: "again", As: anna, Method: "POST", Path: path + "/read-all", Status: 200, Contains: []string{`"updated":0`}},
	})
	if n := unread(t, anna); n != 0 {
		t.Errorf("Anna has %v unread notifications, want none", n)
	}
	if n := unread(t, beat); n != 1 {
		t.Errorf("Beat has %v unread notifications, want 1", n)
	}
	if n := count(t, s.DB, "notifications WHERE read = TRUE AND read_at IS NULL"); n != 0 {
		t.Errorf("%d read notifications have no time", n)
	}
}

func TestMarkAll_IsExactInBatchesAndTwiceAtOnce(t *testing.T) {
	s := servertest.Start(t)
	anna := s.User(access.Customer)
	ctx := t.Context()
	err := s.DB.InTx(ctx, func(tx *store.Tx) error {
		for range 2005 {
			if err := s.Notifications.Notify(ctx, tx, customerEvent(anna.UserID)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	before := unread(t, anna)
	var answers [2]float64
	var both sync.WaitGroup
	for i := range answers {
		both.Go(func() { answers[i] = anna.Do("POST", path+"/read-all", nil).JSON(t)["updated"].(float64) })
	}
	both.Wait()
	if before != 2005 || answers[0]+answers[1] != before {
		t.Errorf("of %v notifications the calls marked %v", before, answers)
	}
	if n := unread(t, anna); n != 0 {
		t.Errorf("%v are unread afterwards", n)
	}
	notified(t, s, customerEvent(anna.UserID))
	if n := unread(t, anna); n != 1 {
		t.Errorf("a later notification: %v are unread, want 1", n)
	}
}
