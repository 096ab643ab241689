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

// eventFor sends a test notification to users, and returns the id of its event and that of the first user's notification.
func eventFor(t *testing.T, s *servertest.Server, users ...*servertest.Client) (event, own string) {
	t.Helper()
	var ids []string
	for _, u := range users {
		ids = append(ids, u.UserID)
	}
	made := s.Keyed().Do("POST", path+"/trigger", map[string]any{"event": "x", "title_key": "t", "user_ids": ids}).Expect(t, 200).JSON(t)
	return made["notification_id"].(string), list(t, users[0], "").Data[0]["id"].(string)
}

// The id is that of the event: the id of a notification finds none, for all callers. All callers delete an event by its id.
func TestDelete_TakesTheIDOfAnEvent(t *testing.T) {
	s := servertest.Start(t)
	anna, beat := s.User(access.Customer), s.User(access.Customer)
	for _, c := range []struct {
		name string
		as   *servertest.Client
	}{{"a recipient", anna}, {"a customer who is no recipient", s.User(access.Customer)}, {"an advisor", s.User(access.Advisor)},
		{"a user without a role", s.User()}, {"an administrator", s.Admin()}} {
		event, own := eventFor(t, s, anna, beat)
		unknown := func(name, id string) servertest.Scenario {
			return servertest.Scenario{Name: c.name + ": " + name, As: c.as, Method: "DELETE", Path: path + "/" + id, Status: 500,
				Contains: []string{`"code":"common.database_error"`, `"class":"business"`}, Excludes: []string{"retryable"}}
		}
		servertest.Run(t, s, []servertest.Scenario{
			unknown("an unknown id", store.NewID()),
			unknown("a notification", own),
			{Name: c.name + ": the event", As: c.as.With("Accept-Language", "de"), Method: "DELETE", Path: path + "/" + event, Status: 200,
				Contains: []string{`{"message":"Notification deleted"}`}},
			unknown("the event again", event),
			{Name: "the list of a recipient", As: anna, Method: "GET", Path: path, Status: 200, Contains: []string{`"total":0`}},
			{Name: "the list of the other recipient", As: beat, Method: "GET", Path: path, Status: 200, Contains: []string{`"total":0`}},
			{Name: "the notification", As: anna, Method: "GET", Path: path + "/" + own, Status: 404},
			{Name: "marking as read", As: anna, Method: "PATCH", Path: path + "/" + own + "/read", Body: `{"read":true}`, Status: 200, Contains: []string{store.NilID}},
		})
		var by string
		const deleted = `SELECT deleted_by FROM notices WHERE id = $1 AND deleted = TRUE AND deleted_at IS NOT NULL`
		if err := s.DB.QueryRow(t.Context(), deleted, event).Scan(&by); err != nil || by != c.as.UserID {
			t.Errorf("%s: deleted_by is %s, %v", c.name, by, err)
		}
	}
	event, own := eventFor(t, s, anna)
	s.User(access.Registrant).Do("DELETE", path+"/"+event, nil).ExpectError(t, 403, "common.rbac_no_rec_access")
	anna.Do("GET", path+"/"+own, nil).Expect(t, 200)
}

func TestHide_IsForTheCallersOwn(t *testing.T) {
	s := servertest.Start(t)
	anna, beat := s.User(access.Customer), s.User(access.Customer)
	event, own := eventFor(t, s, anna, beat)
	hide := func(name string, as *servertest.Client, id string, status int, contains string) servertest.Scenario {
		return servertest.Scenario{Name: name, As: as, Method: "POST", Path: path + "/" + id + "/hide", Status: status, Contains: []string{contains}}
	}
	const missing = `"code":"notifications.notification_not_found"`
	servertest.Run(t, s, []servertest.Scenario{
		hide("an unknown id", anna, store.NewID(), 404, missing),
		hide("the event", anna, event, 404, missing),
		hide("another recipient's notification", beat, own, 404, missing),
		hide("another recipient's notification, by an administrator", s.Admin(), own, 404, missing),
		hide("the caller's own", anna.With("Accept-Language", "de"), own, 200, `{"message":"Die Mitteilung ist verborgen."}`),
		hide("again", anna, own, 200, `{"message":"The notification is hidden."}`),
		{Name: "the list", As: anna, Method: "GET", Path: path, Status: 200, Contains: []string{`"total":0`}},
		{Name: "the count", As: anna, Method: "GET", Path: path + "/unread-count", Status: 200, Contains: []string{`"unread_count":0`}},
		{Name: "the notification", As: anna, Method: "GET", Path: path + "/" + own, Status: 404},
		{Name: "the list of the other recipient", As: beat, Method: "GET", Path: path, Status: 200, Contains: []string{`"total":1`}},
	})
	if n := count(t, s.DB, "audit_entries WHERE action = 'notifications.hide' AND rec_id = $1 AND actor = $2", own, anna.UserID); n != 1 {
		t.Errorf("%d audit entries, want 1", n)
	}
}

// A stream that resumes, or that starts without a position, leaves hidden notifications out.
func TestHide_IsNotReplayed(t *testing.T) {
	s := servertest.Start(t)
	anna := s.User(access.Customer)
	hidden := notified(t, s, systemEvent(anna.UserID))[0]
	kept := notified(t, s, systemEvent(anna.UserID))[0]
	anna.Do("POST", path+"/"+hidden+"/hide", nil).Expect(t, 200)
	l := open(t, s.Address, "GET", anna.Token)
	l.expect("open")
	if f := l.expect("message"); f.ID != kept {
		t.Errorf("got %+v, want the notification that is not hidden", f)
	}
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
