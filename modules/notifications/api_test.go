package notifications_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"kontor/modules/notice"
	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/store"
)

const path = "/v1/notifications"

// told makes a notice through the module and gives the ids of the copies in the order of the recipients.
func told(t testing.TB, s *servertest.Server, n notice.Notice) []string {
	t.Helper()
	notify(t, s.DB, s.Notifications, n)
	ids := make([]string, len(n.Recipients))
	for i, user := range n.Recipients {
		row := s.DB.QueryRow(context.Background(), `SELECT id FROM notifications WHERE user_id = $1 ORDER BY created_at DESC, id DESC LIMIT 1`, user)
		if err := row.Scan(&ids[i]); err != nil {
			t.Fatal(err)
		}
	}
	return ids
}

// page is the shared list envelope.
type page struct {
	Data            []map[string]any `json:"data"`
	Total           int              `json:"total"`
	TotalUnfiltered int              `json:"total_unfiltered"`
	HasMore         bool             `json:"has_more"`
}

func list(t testing.TB, c *servertest.Client, query string) page {
	t.Helper()
	var p page
	c.Do("GET", path+query, nil).Expect(t, 200).Into(t, &p)
	return p
}

func TestList_ShowsOwnAndGrantedRowsAndEverythingToAnAdministrator(t *testing.T) {
	s := servertest.Start(t)
	anna, beat, admin := s.User(access.Customer), s.User(access.Customer), s.Admin()
	told(t, s, customerNotice(anna.UserID, beat.UserID))
	beats := told(t, s, customerNotice(beat.UserID))[0]

	if p := list(t, anna, ""); p.Total != 1 || p.Data[0]["user_id"] != anna.UserID {
		t.Errorf("Anna sees %+v, want her own", p)
	}
	if p := list(t, admin, ""); p.Total != 3 {
		t.Errorf("the administrator sees %d, want all 3", p.Total)
	}
	if p := list(t, admin, "?search.user_id="+beat.UserID); p.Total != 2 || p.TotalUnfiltered != 3 {
		t.Errorf("search.user_id: got %d of %d, want 2 of 3", p.Total, p.TotalUnfiltered)
	}
	admin.Do("POST", "/v1/rbac/grants", map[string]any{"user_id": anna.UserID, "rec_type": "notifications", "rec_id": beats, "permissions": []string{"read"}}).
		Expect(t, 201)
	if p := list(t, anna, ""); p.Total != 2 {
		t.Errorf("with a grant on Beat's row Anna sees %d, want 2", p.Total)
	}
	anna.Do("GET", path+"/"+beats, nil).Expect(t, 200)
}

func TestList_WordsRowsByTemplateInTheLanguageOfTheCustomerOrTheRequest(t *testing.T) {
	s := servertest.Start(t)
	anna, admin := s.User(access.Customer), s.Admin()
	told(t, s, customerNotice(anna.UserID))
	customer := admin.Create("/v1/customers", map[string]any{"first_name": "Gina", "last_name": "Rossi", "email": "g@example.ch",
		"metadata": map[string]any{"language": "fr"}})

	for query, want := range map[string][2]string{
		"?":                             {"Kunde Vreni Muster erfasst", "Kunde öffnen"},
		"?customer_id=" + customer:      {"Client Vreni Muster saisi", "Ouvrir le client"},
		"?customer_id=" + store.NewID(): {"Kunde Vreni Muster erfasst", "Kunde öffnen"},
		"?customer_id=" + store.NilID:   {"Kunde Vreni Muster erfasst", "Kunde öffnen"},
	} {
		row := list(t, anna.With("Accept-Language", "de"), query).Data[0]
		if row["title"] != want[0] || row["link_text"] != want[1] || !strings.HasPrefix(row["link_url"].(string), "/customers/") {
			t.Errorf("%s: got %v, %v, %v, want %v", query, row["title"], row["link_text"], row["link_url"], want)
		}
	}
	if row := list(t, anna, "").Data[0]; row["title"] != "Customer Vreni Muster entered" || row["content"] != "The customer Vreni Muster has been entered." {
		t.Errorf("without a language: got %v, %v", row["title"], row["content"])
	}
}

func TestList_FallsBackToKeysWhereNoTemplateResolves(t *testing.T) {
	s := servertest.Start(t)
	anna := s.User(access.Customer)
	keyed := s.Keyed()
	for _, body := range []map[string]any{
		{"event": "nothing_known", "title_key": "my.title", "user_ids": []string{anna.UserID}, "content": "by hand"},
		{"event": "customer_created", "title_key": "notification.customer_created.title", "user_ids": []string{anna.UserID}},
	} {
		keyed.Do("POST", path+"/trigger", body).Expect(t, 200)
	}
	p := list(t, anna, "?sort=created_at")
	if got := p.Data[0]; got["title"] != "my.title" || got["content"] != "by hand" {
		t.Errorf("unknown event: got %v, %v", got["title"], got["content"])
	}
	if got := p.Data[1]; got["title"] != "Customer entered" {
		t.Errorf("the template's value is missing: got title %v, want that of the key", got["title"])
	}
}

func TestRoutes_WordEachRowInTheirOwnWay(t *testing.T) {
	s := servertest.Start(t)
	anna := s.User(access.Customer)
	id := told(t, s, customerNotice(anna.UserID))[0]
	german := anna.With("Accept-Language", "de")

	one := german.Do("GET", path+"/"+id, nil).Expect(t, 200).JSON(t)
	if one["title"] != "Kunde erfasst" || one["content"] != "Ein Kunde wurde erfasst." {
		t.Errorf("read one: got %v, %v, want the texts of the keys", one["title"], one["content"])
	}
	read := german.Do("PATCH", path+"/"+id+"/read", `{"read":true}`).Expect(t, 200).JSON(t)
	if read["title"] != "" || read["content"] != "" || read["read"] != true || read["read_at"] == nil {
		t.Errorf("mark read: got %v, want the row as it is stored", read)
	}
	for _, row := range []map[string]any{one, read} {
		for _, name := range []string{"link_url", "link_text", "title_key", "content_key", "metadata"} {
			if _, shown := row[name]; shown {
				t.Errorf("%s is shown in %v", name, row)
			}
		}
		for _, name := range []string{"channels_attempted", "channels_sent", "channels_delivered", "channels_failed"} {
			if got, ok := row[name].([]any); !ok || len(got) != 0 {
				t.Errorf("%s is %v, want an empty array", name, row[name])
			}
		}
	}
	written := customerNotice(anna.UserID)
	written.Event, written.Content = "written", "Grüezi"
	id = told(t, s, written)[0]
	if one := german.Do("GET", path+"/"+id, nil).JSON(t); one["content"] != "Grüezi" {
		t.Errorf("read one: got content %v, want what somebody wrote", one["content"])
	}
	if read := german.Do("PATCH", path+"/"+id+"/read", `{"read":false}`).JSON(t); read["content"] != "Grüezi" {
		t.Errorf("mark read: got content %v, want what somebody wrote", read["content"])
	}
}

func TestMarkRead_IsAPresenceFlag(t *testing.T) {
	s := servertest.Start(t)
	anna, beat := s.User(access.Customer), s.User(access.Customer)
	id := told(t, s, customerNotice(anna.UserID))[0]
	route := path + "/" + id + "/read"
	for _, body := range []string{`{}`, `{"read":null}`, ``, `{"other":1}`} {
		if answer := anna.Do("PATCH", route, body).Expect(t, 200); answer.Body != "null" {
			t.Errorf("%s: got %s, want null", body, answer.Body)
		}
	}
	if n := count(t, s.DB, "notifications WHERE read = TRUE"); n != 0 {
		t.Fatalf("%d rows were marked without being asked to", n)
	}
	zero := `"id":"00000000-0000-0000-0000-000000000000"`
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "another user's is not there", As: beat, Method: "PATCH", Path: route, Body: `{"read":true}`, Status: 200,
			Contains: []string{zero, `"read":false`, `"created_at":null`, `"read_at":null`, `"channels_sent":[]`, `"event":""`}, Excludes: []string{id}},
		{Name: "an unknown one neither", As: anna, Method: "PATCH", Path: path + "/" + store.NewID() + "/read", Body: `{"read":true}`, Status: 200, Contains: []string{zero}},
		{Name: "not even to an administrator", As: s.Admin(), Method: "PATCH", Path: route, Body: `{"read":true}`, Status: 200, Contains: []string{zero}},
		{Name: "an id that is none", As: anna, Method: "PATCH", Path: path + "/x/read", Body: `{"read":true}`, Status: 400, Contains: []string{"common.invalid_input"}},
		{Name: "false marks as well", As: anna, Method: "PATCH", Path: route, Body: `{"read":false,"title":"x"}`, Status: 200, Contains: []string{`"read":true`, id}},
		{Name: "nothing marks it unread", As: anna, Method: "PATCH", Path: route, Body: `{"read":"no"}`, Status: 200, Contains: []string{`"read":true`}},
	})
}

func TestGet_HidesWhatTheCallerMayNotSee(t *testing.T) {
	s := servertest.Start(t)
	anna, beat := s.User(access.Customer), s.User(access.Customer)
	id := told(t, s, customerNotice(anna.UserID))[0]
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "own", As: anna, Method: "GET", Path: path + "/" + id, Status: 200, Contains: []string{id}},
		{Name: "foreign", As: beat, Method: "GET", Path: path + "/" + id, Status: 404, Contains: []string{"notifications.notification_not_found"}},
		{Name: "unknown", As: anna, Method: "GET", Path: path + "/" + store.NewID(), Status: 404},
		{Name: "nil", As: anna, Method: "GET", Path: path + "/" + store.NilID, Status: 404},
		{Name: "administrator", As: s.Admin(), Method: "GET", Path: path + "/" + id, Status: 200},
		{Name: "nobody", Method: "GET", Path: path + "/" + id, Status: 401},
	})
}

func TestDelete_TakesTheIdOfTheSource(t *testing.T) {
	s := servertest.Start(t)
	anna, beat := s.User(access.Customer), s.User(access.Customer)
	made := s.Keyed().Do("POST", path+"/trigger", map[string]any{"event": "x", "title_key": "t", "user_ids": []string{anna.UserID, beat.UserID}}).
		Expect(t, 200).JSON(t)
	if made["recipients"] != 2.0 {
		t.Fatalf("got %v, want 2 recipients", made)
	}
	source := made["notification_id"].(string)
	own := list(t, anna, "").Data[0]["id"].(string)
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "the id of a copy finds nothing", As: anna, Method: "DELETE", Path: path + "/" + own, Status: 500, Contains: []string{"common.database_error"}},
		{Name: "an unknown id neither", As: anna, Method: "DELETE", Path: path + "/" + store.NewID(), Status: 500, Contains: []string{"common.database_error"}},
		{Name: "whoever knows it deletes it", As: beat.With("Accept-Language", "de"), Method: "DELETE", Path: path + "/" + source, Status: 200,
			Contains: []string{`{"message":"Notification deleted"}`}},
		{Name: "it is gone for all", As: anna, Method: "GET", Path: path, Status: 200, Contains: []string{`"total":0`}},
		{Name: "also for itself", As: anna, Method: "GET", Path: path + "/" + own, Status: 404},
		{Name: "also for marking", As: anna, Method: "PATCH", Path: path + "/" + own + "/read", Body: `{"read":true}`, Status: 200, Contains: []string{store.NilID}},
		{Name: "and for deleting", As: anna, Method: "DELETE", Path: path + "/" + source, Status: 500},
	})
	var by string
	if err := s.DB.QueryRow(t.Context(), `SELECT deleted_by FROM notices WHERE id = $1 AND deleted = TRUE AND deleted_at IS NOT NULL`, source).Scan(&by); err != nil || by != beat.UserID {
		t.Errorf("deleted_by is %s, %v, want Beat", by, err)
	}
}

func TestPreferences_ReadNothingAndSayNothing(t *testing.T) {
	s := servertest.Start(t)
	anna := s.User(access.Customer)
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "get", As: anna, Method: "GET", Path: path + "/preferences", Status: 200, Contains: []string{`{"message":"Not implemented"}`}},
		{Name: "put", As: anna, Method: "PUT", Path: path + "/preferences", Body: `{"email":`, Status: 200, Contains: []string{`{"message":"Not implemented"}`}},
		{Name: "nobody", Method: "GET", Path: path + "/preferences", Status: 401},
	})
}

func TestList_RefusesLateAndCodesAsPromised(t *testing.T) {
	s := servertest.Start(t)
	anna, empty := s.User(access.Customer), s.User(access.Customer)
	told(t, s, customerNotice(anna.UserID))
	read := told(t, s, customerNotice(anna.UserID))[0]
	anna.Do("PATCH", path+"/"+read+"/read", `{"read":true}`).Expect(t, 200)
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "unknown search field", As: empty, Method: "GET", Path: path + "?search.status=new", Status: 500, Contains: []string{"query_m.invalid_search_field"}},
		{Name: "hidden search field", As: anna, Method: "GET", Path: path + "?search.title_key=x", Status: 500, Contains: []string{"query_m.invalid_search_field"}},
		{Name: "unknown sort field", As: anna, Method: "GET", Path: path + "?sort=status", Status: 400, Contains: []string{"query_m.invalid_sort_field"}},
		{Name: "unknown sort field without rows", As: empty, Method: "GET", Path: path + "?sort=status", Status: 200, Contains: []string{`"data":[]`}},
		{Name: "unknown sort field without reading", As: anna, Method: "GET", Path: path + "?sort=status&limit=-1", Status: 200, Contains: []string{`"data":[]`, `"total":2`}},
		{Name: "unknown stack field", As: anna, Method: "GET", Path: path + "?stack=status", Status: 400, Contains: []string{"query_m.invalid_field"}},
		{Name: "open bracket", As: anna, Method: "GET", Path: path + "?stack=created_at[day", Status: 400, Contains: []string{"query_m.invalid_format"}},
		{Name: "empty stack", As: empty, Method: "GET", Path: path + "?stack=status", Status: 200, Contains: []string{`"data":{}`}, Excludes: []string{"keys"}},
		{Name: "stack", As: anna, Method: "GET", Path: path + "?stack=-read", Status: 200, Contains: []string{`"true":[`, `"false":[`, `"keys":["true","false"]`}},
		{Name: "no stack, no keys", As: anna, Method: "GET", Path: path, Status: 200, Excludes: []string{"keys", "metadata"}},
		{Name: "title never matches", As: anna, Method: "GET", Path: path + "?search.title=*", Status: 200, Contains: []string{`"total":0`, `"total_unfiltered":2`}},
		{Name: "content of templates neither", As: anna, Method: "GET", Path: path + "?search.content=*", Status: 200, Contains: []string{`"total":0`}},
		{Name: "read", As: anna, Method: "GET", Path: path + "?search.read=true", Status: 200, Contains: []string{`"total":1,`, read}},
		{Name: "limit zero", As: anna, Method: "GET", Path: path + "?limit=0&offset=-3", Status: 200, Contains: []string{`"total":2`}},
		{Name: "limit that is no number", As: anna, Method: "GET", Path: path + "?limit=ten", Status: 400, Contains: []string{"common.invalid_input"}},
		{Name: "customer that is no id", As: anna, Method: "GET", Path: path + "?customer_id=x", Status: 400, Contains: []string{"common.invalid_input", "customer_id"}},
	})
}

func TestMarkRecord_MarksOwnRowsOfTheRecordAndNeverTestNotifications(t *testing.T) {
	s := servertest.Start(t)
	anna, beat := s.User(access.Customer), s.User(access.Customer)
	n := customerNotice(anna.UserID, beat.UserID)
	told(t, s, n)
	told(t, s, customerNotice(anna.UserID))
	s.Keyed().Do("POST", path+"/trigger", map[string]any{"type": "customers", "rec_id": n.RecordID, "user_ids": []string{anna.UserID}}).Expect(t, 200)
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "unread before", As: anna, Method: "GET", Path: path + "/unread-count", Status: 200, Contains: []string{`{"unread_count":3}`}},
		{Name: "the record", As: anna, Method: "POST", Path: path + "/read", Body: map[string]any{"rec_type": "customers", "rec_id": n.RecordID}, Status: 200, Contains: []string{`{"updated":1}`}},
		{Name: "again", As: anna, Method: "POST", Path: path + "/read", Body: map[string]any{"rec_type": "customers", "rec_id": n.RecordID}, Status: 200, Contains: []string{`{"updated":0}`}},
		{Name: "the record type is no record", As: anna, Method: "POST", Path: path + "/read", Body: map[string]any{"rec_type": "customers", "rec_id": access.Customers.ID}, Status: 200, Contains: []string{`{"updated":0}`}},
		{Name: "unread after", As: anna, Method: "GET", Path: path + "/unread-count", Status: 200, Contains: []string{`{"unread_count":2}`}},
		{Name: "of others nothing", As: beat, Method: "GET", Path: path + "/unread-count", Status: 200, Contains: []string{`{"unread_count":1}`}},
		{Name: "incomplete", As: anna, Method: "POST", Path: path + "/read", Body: `{}`, Status: 400, Contains: []string{"rec_type", "rec_id"}},
	})
}

func TestTrigger_KeepsItsOddRules(t *testing.T) {
	s := servertest.Start(t)
	anna := s.User(access.Customer)
	keyed, record := s.Keyed(), store.NewID()
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "an API key is needed", Method: "POST", Path: path + "/trigger", Body: `{}`, Status: 401},
		{Name: "a bearer is none", As: s.Admin(), Method: "POST", Path: path + "/trigger", Body: `{}`, Status: 401},
		{Name: "nobody to tell", As: keyed, Method: "POST", Path: path + "/trigger", Status: 200, Contains: []string{`{"message":"No connected users to notify"}`}},
		{Name: "nothing is validated", As: keyed, Method: "POST", Path: path + "/trigger", Body: `{"type":7,"user_ids":["x"],"customer_id":{},"is_system":"perhaps"}`, Status: 200,
			Contains: []string{"No connected users"}},
	})
	if n := count(t, s.DB, "notices"); n != 0 {
		t.Fatalf("%d notices were written for nobody", n)
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
		t.Errorf("is_system was taken over %d times", n)
	}
}

func TestNotices_AreRaisedByWhatHappens(t *testing.T) {
	s := servertest.Start(t)
	anna := s.User(access.Customer)
	made := anna.Do("POST", "/v1/customers", map[string]any{"first_name": "Urs", "last_name": "Meier", "email": "u@example.ch"}).Expect(t, 201).JSON(t)
	p := list(t, anna, "?search.event=customer_created")
	if p.Total != 1 || p.Data[0]["rec_id"] != made["id"] || p.Data[0]["customer_id"] != made["id"] || p.Data[0]["rec_type"] != "customers" {
		t.Errorf("got %+v, want that of the new customer", p)
	}
	credentials := map[string]any{"user_id": anna.UserID, "password": "a long enough password 42"}
	s.Anonymous().With("X-Device-ID", "phone").Do("POST", "/authenticate", credentials).Expect(t, http.StatusOK)
	s.Anonymous().With("X-Device-ID", "phone").Do("POST", "/authenticate", credentials).Expect(t, http.StatusOK)
	if p := list(t, anna, "?search.event=new_device_login"); p.Total != 1 || p.Data[0]["link_url"] != "/profile" {
		t.Errorf("got %+v, want one of the new device", p)
	}
	if n := count(t, s.DB, "deliveries WHERE user_id = $1 AND channel = 'email' AND notification_id IS NOT NULL AND status = 'sent'", anna.UserID); n != 1 {
		t.Errorf("got %d mails about it in the local outbox, want 1", n)
	}
}

func TestCheck_KnowsTheRecipientAsOwner(t *testing.T) {
	s := servertest.Start(t)
	anna := s.User(access.Customer)
	id := told(t, s, customerNotice(anna.UserID))[0]
	answer := anna.Do("POST", "/v1/rbac/check", map[string]any{"checks": []map[string]any{
		{"rec_type": "notifications", "permission": "read", "rec_id": id}, {"rec_type": "notifications", "permission": "delete", "rec_id": id}}})
	if want := fmt.Sprintf(`{"results":[{"allowed":true,"source":"owner","source_id":%q},{"allowed":false`, id); !strings.HasPrefix(answer.Body, want) {
		t.Errorf("got %s, want %s", answer.Body, want)
	}
}
