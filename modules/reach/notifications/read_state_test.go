package notifications_test

import (
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/store"
)

func TestMarkRead_DependsOnThePresenceOfTheMember(t *testing.T) {
	s := servertest.Start(t)
	anna, beat := s.User(access.Customer), s.User(access.Customer)
	id := notified(t, s, customerEvent(anna.UserID))[0]
	route := path + "/" + id + "/read"
	for _, body := range []string{`{}`, `{"read":null}`, ``, `{"other":1}`} {
		if answer := anna.Do("PATCH", route, body).Expect(t, 200); answer.Body != "null" {
			t.Errorf("%s: got %s, want null", body, answer.Body)
		}
	}
	if n := count(t, s.DB, "notifications WHERE read = TRUE"); n != 0 {
		t.Fatalf("%d rows were marked without the member", n)
	}
	zero := `"id":"00000000-0000-0000-0000-000000000000"`
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "another user's notification", As: beat, Method: "PATCH", Path: route, Body: `{"read":true}`, Status: 200,
			Contains: []string{zero, `"read":false`, `"created_at":null`, `"read_at":null`, `"channels_sent":[]`, `"event":""`}, Excludes: []string{id}},
		{Name: "an unknown notification", As: anna, Method: "PATCH", Path: path + "/" + store.NewID() + "/read", Body: `{"read":true}`, Status: 200, Contains: []string{zero}},
		{Name: "another user's as an administrator", As: s.Admin(), Method: "PATCH", Path: route, Body: `{"read":true}`, Status: 200, Contains: []string{zero}},
		{Name: "an invalid id", As: anna, Method: "PATCH", Path: path + "/x/read", Body: `{"read":true}`, Status: 400, Contains: []string{"common.invalid_input"}},
		{Name: "false marks it, too", As: anna, Method: "PATCH", Path: route, Body: `{"read":false,"title":"x"}`, Status: 200, Contains: []string{`"read":true`, id}},
		{Name: "any value marks it", As: anna, Method: "PATCH", Path: route, Body: `{"read":"no"}`, Status: 200, Contains: []string{`"read":true`}},
	})
}

func TestGet_HidesWhatTheCallerMayNotSee(t *testing.T) {
	s := servertest.Start(t)
	anna, beat := s.User(access.Customer), s.User(access.Customer)
	id := notified(t, s, customerEvent(anna.UserID))[0]
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "own", As: anna, Method: "GET", Path: path + "/" + id, Status: 200, Contains: []string{id}},
		{Name: "foreign", As: beat, Method: "GET", Path: path + "/" + id, Status: 404, Contains: []string{"notifications.notification_not_found"}},
		{Name: "unknown", As: anna, Method: "GET", Path: path + "/" + store.NewID(), Status: 404},
		{Name: "nil", As: anna, Method: "GET", Path: path + "/" + store.NilID, Status: 404},
		{Name: "administrator", As: s.Admin(), Method: "GET", Path: path + "/" + id, Status: 200},
		{Name: "without a token", Method: "GET", Path: path + "/" + id, Status: 401},
	})
}

// Recipients hide their own notification. An event is deleted for all recipients by callers with the permission to delete
// notifications; for others its id is unknown.
func TestDelete_HidesTheOwnOneAndTakesTheRightForEvents(t *testing.T) {
	s := servertest.Start(t)
	anna, beat, deputy := s.User(access.Customer), s.User(access.Customer), s.User(access.Advisor)
	s.Admin().Do("POST", "/v1/rbac/grants", map[string]any{"user_id": deputy.UserID, "rec_type": "notifications", "permissions": []string{"delete"}}).Expect(t, 201)
	trigger := func() (event, own string) {
		made := s.Keyed().Do("POST", path+"/trigger", map[string]any{"event": "x", "title_key": "t", "user_ids": []string{anna.UserID, beat.UserID}}).
			Expect(t, 200).JSON(t)
		if made["recipients"] != 2.0 {
			t.Fatalf("got %v, want 2 recipients", made)
		}
		return made["notification_id"].(string), list(t, anna, "").Data[0]["id"].(string)
	}
	event, own := trigger()
	unknown := func(name string, as *servertest.Client, id string) servertest.Scenario {
		return servertest.Scenario{Name: name, As: as, Method: "DELETE", Path: path + "/" + id, Status: 500,
			Contains: []string{"common.database_error", `"class":"business"`}, Excludes: []string{"retryable"}}
	}
	deleted := func(name string, as *servertest.Client, id string) servertest.Scenario {
		return servertest.Scenario{Name: name, As: as, Method: "DELETE", Path: path + "/" + id, Status: 200, Contains: []string{`{"message":"Notification deleted"}`}}
	}
	servertest.Run(t, s, []servertest.Scenario{
		unknown("an unknown id", anna, store.NewID()),
		unknown("another recipient's notification", beat, own),
		unknown("another recipient's notification, by an administrator", s.Admin(), own),
		unknown("the event, by a recipient", beat, event),
		unknown("the event, by an advisor", s.User(access.Advisor), event),
		deleted("the own notification", anna.With("Accept-Language", "de"), own),
		{Name: "the own list", As: anna, Method: "GET", Path: path, Status: 200, Contains: []string{`"total":0`}},
		{Name: "the count", As: anna, Method: "GET", Path: path + "/unread-count", Status: 200, Contains: []string{`"unread_count":0`}},
		{Name: "the notification", As: anna, Method: "GET", Path: path + "/" + own, Status: 404},
		{Name: "the list of the other recipient", As: beat, Method: "GET", Path: path, Status: 200, Contains: []string{`"total":1`}},
		unknown("hiding again", anna, own),
		deleted("the event, with the right", deputy, event),
		{Name: "the list of the other recipient, after the event", As: beat, Method: "GET", Path: path, Status: 200, Contains: []string{`"total":0`}},
		unknown("the event again", deputy, event),
	})
	var by string
	if err := s.DB.QueryRow(t.Context(), `SELECT deleted_by FROM notices WHERE id = $1 AND deleted = TRUE AND deleted_at IS NOT NULL`, event).Scan(&by); err != nil || by != deputy.UserID {
		t.Errorf("deleted_by is %s, %v, want the deputy", by, err)
	}
	event, own = trigger()
	servertest.Run(t, s, []servertest.Scenario{
		deleted("the event, by an administrator", s.Admin(), event),
		{Name: "marking as read", As: anna, Method: "PATCH", Path: path + "/" + own + "/read", Body: `{"read":true}`, Status: 200, Contains: []string{store.NilID}},
	})
}

func TestPreferences_AreNotImplemented(t *testing.T) {
	s := servertest.Start(t)
	anna := s.User(access.Customer)
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "get", As: anna, Method: "GET", Path: path + "/preferences", Status: 200, Contains: []string{`{"message":"Not implemented"}`}},
		{Name: "put", As: anna, Method: "PUT", Path: path + "/preferences", Body: `{"email":`, Status: 200, Contains: []string{`{"message":"Not implemented"}`}},
		{Name: "without a token", Method: "GET", Path: path + "/preferences", Status: 401},
	})
}

func TestMarkRecord_MarksOwnNotificationsButNotTestNotifications(t *testing.T) {
	s := servertest.Start(t)
	anna, beat := s.User(access.Customer), s.User(access.Customer)
	n := customerEvent(anna.UserID, beat.UserID)
	notified(t, s, n)
	notified(t, s, customerEvent(anna.UserID))
	s.Keyed().Do("POST", path+"/trigger", map[string]any{"type": "customers", "rec_id": n.RecordID, "user_ids": []string{anna.UserID}}).Expect(t, 200)
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "unread before", As: anna, Method: "GET", Path: path + "/unread-count", Status: 200, Contains: []string{`{"unread_count":3}`}},
		{Name: "the record", As: anna, Method: "POST", Path: path + "/read", Body: map[string]any{"rec_type": "customers", "rec_id": n.RecordID}, Status: 200, Contains: []string{`{"updated":1}`}},
		{Name: "again", As: anna, Method: "POST", Path: path + "/read", Body: map[string]any{"rec_type": "customers", "rec_id": n.RecordID}, Status: 200, Contains: []string{`{"updated":0}`}},
		{Name: "the id of a record type", As: anna, Method: "POST", Path: path + "/read", Body: map[string]any{"rec_type": "customers", "rec_id": access.Customers.ID}, Status: 200, Contains: []string{`{"updated":0}`}},
		{Name: "unread after", As: anna, Method: "GET", Path: path + "/unread-count", Status: 200, Contains: []string{`{"unread_count":2}`}},
		{Name: "another user", As: beat, Method: "GET", Path: path + "/unread-count", Status: 200, Contains: []string{`{"unread_count":1}`}},
		{Name: "incomplete", As: anna, Method: "POST", Path: path + "/read", Body: `{}`, Status: 400, Contains: []string{"rec_type", "rec_id"}},
	})
}
