package notifications_test

import (
	"testing"

	"kontor/modules/reach/notifications"
	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/store"
)

func TestTrigger_NotifiesAllConnectedUsers(t *testing.T) {
	s := servertest.Start(t)
	anna, beat, carla := s.User(access.Customer), s.User(access.Customer), s.User(access.Customer)
	first, second := open(t, s.Address, "GET", anna.Token), open(t, s.Address, "GET", beat.Token)
	first.expect("open")
	second.expect("open")
	made := s.Keyed().Do("POST", path+"/trigger", map[string]any{"event": "test", "title_key": "a \n title", "user_ids": []string{carla.UserID, anna.UserID}}).
		Expect(t, 200).JSON(t)
	if made["recipients"] != 3.0 {
		t.Errorf("got %v, want the two connected users and Carla", made)
	}
	for _, l := range []*streamClient{first, second} {
		if f := l.expect("message"); f.member(t, "title") != "a \n title" || f.member(t, "event") != "test" || f.member(t, "test") != true {
			t.Errorf("got %+v", f)
		}
	}
	p := list(t, carla, "")
	if p.Total != 1 || p.Data[0]["test"] != true {
		t.Errorf("Carla has %v", p)
	}
	notified(t, s, systemEvent(carla.UserID))
	if row := list(t, carla, "").Data[0]; row["test"] != nil {
		t.Errorf("a real notification is marked as a test: %v", row)
	}
}

// The trigger must not send the genuine e-mail of an event: neither a gateway nor the local outbox gets one.
func TestTrigger_SendsNothingByMailOrSMS(t *testing.T) {
	s := servertest.Start(t)
	anna := s.User(access.Customer)
	for event, channels := range notifications.Channels() {
		made := s.Keyed().Do("POST", path+"/trigger", map[string]any{"event": event, "user_ids": []string{anna.UserID}}).Expect(t, 200).JSON(t)
		if made["recipients"] != 1.0 {
			t.Errorf("%s: got %v", event, made)
		}
		if n := count(t, s.DB, "deliveries"); n != 0 {
			t.Fatalf("%s with the channels %v made %d deliveries", event, channels, n)
		}
	}
}

func TestTrigger_FollowsTheRulesOfTheAPI(t *testing.T) {
	s := servertest.Start(t)
	anna := s.User(access.Customer)
	keyed, record := s.Keyed(), store.NewID()
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "an API key is needed", Method: "POST", Path: path + "/trigger", Body: `{}`, Status: 401},
		{Name: "a bearer token is no API key", As: s.Admin(), Method: "POST", Path: path + "/trigger", Body: `{}`, Status: 401},
		{Name: "no recipients", As: keyed, Method: "POST", Path: path + "/trigger", Status: 200, Contains: []string{`{"message":"No connected users to notify"}`}},
		{Name: "values of the wrong type are ignored", As: keyed, Method: "POST", Path: path + "/trigger", Body: `{"type":7,"user_ids":["x"],"customer_id":{},"is_system":"perhaps"}`, Status: 200,
			Contains: []string{"No connected users"}},
	})
	if n := count(t, s.DB, "notices"); n != 0 {
		t.Fatalf("%d parent rows without recipients", n)
	}
	for i, c := range []struct {
		body           map[string]any
		recType, recID string
	}{
		{map[string]any{"rec_type": "customers", "rec_id": record, "type": "tasks"}, "customers", record},
		{map[string]any{"rec_id": record, "type": "chats"}, "chats", access.Chats.ID},
		{map[string]any{"rec_type": "customers", "type": "chats"}, "chats", access.Chats.ID},
		{map[string]any{"type": "nothing"}, "nothing", store.NilID},
		{map[string]any{"is_system": true}, "", store.NilID},
	} {
		c.body["user_ids"] = []string{anna.UserID}
		keyed.Do("POST", path+"/trigger", c.body).Expect(t, 200)
		row := list(t, anna, "").Data[0]
		if row["rec_type"] != c.recType || row["rec_id"] != c.recID || row["customer_id"] != store.NilID {
			t.Errorf("%d: got %v %v, want %s %s", i, row["rec_type"], row["rec_id"], c.recType, c.recID)
		}
	}
	if n := count(t, s.DB, "notifications WHERE system = TRUE"); n != 0 {
		t.Errorf("is_system was stored %d times", n)
	}
}
