package app_test

import (
	"net/http"
	"strings"
	"testing"

	"kontor/modules/reach/changes"
	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/server/servertest"
	"kontor/store"
)

// The id of an event is all that it takes to delete it for all recipients. So no answer has it but that of the trigger: no other endpoint for any
// role, no table, export, frame, change feed, webhook, search, audit entry or request log.
func TestEventIDs_AreInTheAnswerOfTheTriggerOnly(t *testing.T) {
	s := newScenario(t)
	const trigger = "POST /v1/notifications/trigger"
	texts := map[string][]string{} // what clients received, by where
	saw := func(where string, body string) { texts[where] = append(texts[where], body) }
	gets := map[string]bool{}
	s.answered = func(e endpoint.Endpoint, path string, answer servertest.Response) {
		if e.Key() != trigger {
			saw(e.Key(), answer.Body)
		}
		if e.Method == http.MethodGet && !strings.Contains(e.Path, "/sse") && !strings.HasPrefix(path, "/v1/requests/stream") {
			gets[path] = true
		}
	}
	received := newReceiver(t)
	newHook(t, s.admin, map[string]any{"url": received.URL, "types": changes.Types()})
	frames := followPath(t, s.server, s.admin.Token, "/v1/notifications/sse", "")
	frames.next()
	s.run()

	// A refused deletion must not leave the id in the audit trail.
	denied := idOfEvent(t, s.server, s.admin.UserID)
	s.server.User(access.Registrant).Do("DELETE", "/v1/notifications/"+denied, nil).Expect(t, http.StatusForbidden)
	for _, c := range []*servertest.Client{s.admin, s.server.User(access.Advisor), s.server.User(access.Customer), s.server.User(access.Registrant), s.server.Keyed()} {
		for path := range gets {
			for _, accept := range []string{"application/json", "text/csv"} {
				answer := c.With("Accept", accept).Do("GET", path, nil)
				saw("GET "+path+" as "+accept, answer.Body)
			}
		}
	}
	for id := newCustomer(s.admin); ; {
		c := received.next(t)
		saw("a webhook", c.body)
		if strings.Contains(c.body, id) {
			break
		}
	}
	last := idOfEvent(t, s.server, s.admin.UserID)
	for data := ""; !strings.Contains(data, "the last one"); saw("a frame", data) {
		_, _, data = frames.next()
	}

	events, err := store.All(t.Context(), s.server.DB, store.Text, `SELECT id FROM notices`)
	if err != nil || len(events) < 10 || last == "" {
		t.Fatalf("%d events, %v", len(events), err)
	}
	for where, bodies := range texts {
		for _, body := range bodies {
			for _, id := range events {
				if strings.Contains(strings.ToLower(body), id) || strings.Contains(body, strings.ReplaceAll(id, "-", "")) {
					t.Errorf("%s has the id of an event: %.300s", where, body)
				}
			}
		}
	}
	for _, where := range []string{"a frame", "a webhook", "GET /v1/notifications", "GET /v1/notifications/deliveries", "GET /v1/audit", "GET /v1/requests"} {
		if len(texts[where]) == 0 {
			t.Errorf("nothing was received from %s", where)
		}
	}
}

// idOfEvent sends a test notification to a user and returns the id of its event.
func idOfEvent(t *testing.T, s *servertest.Server, userID string) string {
	t.Helper()
	body := map[string]any{"content": "the last one", "user_ids": []string{userID}}
	return s.Keyed().Do("POST", "/v1/notifications/trigger", body).Expect(t, 200).JSON(t)["notification_id"].(string)
}

// The trail names an event by a digest that is the same in all entries about it, and says who deleted it.
func TestEventIDs_AreDigestsInTheAuditTrail(t *testing.T) {
	s := servertest.Start(t)
	anna, beat := s.User(access.Customer), s.User(access.Customer)
	event := idOfEvent(t, s, anna.UserID)
	beat.Do("DELETE", "/v1/notifications/"+event, nil).Expect(t, http.StatusOK)
	var page struct {
		Data []struct {
			Action, Actor string
			RecID         string `json:"rec_id"`
		}
	}
	s.Admin().Do("GET", "/v1/audit?search.rec_type=notifications&search.kind=change&sort=seq", nil).Expect(t, 200).Into(t, &page)
	if len(page.Data) != 2 || page.Data[0].Action != "notifications.trigger" || page.Data[1].Action != "notifications.delete" {
		t.Fatalf("got %+v", page.Data)
	}
	if made, deleted := page.Data[0], page.Data[1]; made.RecID != deleted.RecID || made.RecID == event || deleted.Actor != beat.UserID {
		t.Errorf("got %+v of the event %s", page.Data, event)
	}
	var row, by string
	err := s.DB.QueryRow(t.Context(), `SELECT n.id, e.deleted_by FROM notifications n JOIN notices e ON e.id = n.notice_id WHERE e.id = $1`, event).Scan(&row, &by)
	if err != nil || by != beat.UserID {
		t.Errorf("deleted_by is %s: %v", by, err)
	}
	// All bits of the event's id are random, and none come from the id of the notification.
	if event[14] != '4' || row[14] == '4' || event[24:] == row[24:] {
		t.Errorf("the event is %s and the notification %s", event, row)
	}
}
