package notifications_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"kontor/modules/kit/event"
	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/store"
)

const path = "/v1/notifications"

// notified reports an event to the module and returns the ids of its notifications in the order of the recipients.
func notified(t testing.TB, s *servertest.Server, n event.Event) []string {
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

// page is the envelope of lists.
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

func TestList_ReturnsOwnAndGrantedRowsAndAllToAnAdministrator(t *testing.T) {
	s := servertest.Start(t)
	anna, beat, admin := s.User(access.Customer), s.User(access.Customer), s.Admin()
	notified(t, s, customerEvent(anna.UserID, beat.UserID))
	beats := notified(t, s, customerEvent(beat.UserID))[0]

	if p := list(t, anna, ""); p.Total != 1 || p.Data[0]["user_id"] != anna.UserID {
		t.Errorf("Anna gets %+v, want her own", p)
	}
	if p := list(t, admin, ""); p.Total != 3 {
		t.Errorf("the administrator gets %d, want all 3", p.Total)
	}
	if p := list(t, admin, "?search.user_id="+beat.UserID); p.Total != 2 || p.TotalUnfiltered != 3 {
		t.Errorf("search.user_id: got %d of %d, want 2 of 3", p.Total, p.TotalUnfiltered)
	}
	admin.Do("POST", "/v1/rbac/grants", map[string]any{"user_id": anna.UserID, "rec_type": "notifications", "rec_id": beats, "permissions": []string{"read"}}).
		Expect(t, 201)
	if p := list(t, anna, ""); p.Total != 2 {
		t.Errorf("with a grant on Beat's row Anna gets %d, want 2", p.Total)
	}
	anna.Do("GET", path+"/"+beats, nil).Expect(t, 200)
}

func TestList_RendersTemplatesInTheLanguageOfTheCustomerOrTheRequest(t *testing.T) {
	s := servertest.Start(t)
	anna, admin := s.User(access.Customer), s.Admin()
	notified(t, s, customerEvent(anna.UserID))
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
	if row := list(t, anna, "").Data[0]; row["title"] != "Customer Vreni Muster added" || row["content"] != "The customer Vreni Muster has been added." {
		t.Errorf("without a language: got %v, %v", row["title"], row["content"])
	}
}

func TestList_RendersKeysIfTheTemplateCannotBeRendered(t *testing.T) {
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
	if got := p.Data[1]; got["title"] != "Customer added" {
		t.Errorf("the template's value is missing: got title %v, want that of the key", got["title"])
	}
}

func TestGetAndMarkRead_RenderKeysAndKeepStoredTexts(t *testing.T) {
	s := servertest.Start(t)
	anna := s.User(access.Customer)
	id := notified(t, s, customerEvent(anna.UserID))[0]
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
	written := customerEvent(anna.UserID)
	written.Kind, written.Content = "written", "Grüezi"
	id = notified(t, s, written)[0]
	if one := german.Do("GET", path+"/"+id, nil).JSON(t); one["content"] != "Grüezi" {
		t.Errorf("read one: got content %v, want the stored text", one["content"])
	}
	if read := german.Do("PATCH", path+"/"+id+"/read", `{"read":false}`).JSON(t); read["content"] != "Grüezi" {
		t.Errorf("mark read: got content %v, want the stored text", read["content"])
	}
}

func TestList_RejectsFieldsAndParametersWithTheCodesOfTheAPI(t *testing.T) {
	s := servertest.Start(t)
	anna, empty := s.User(access.Customer), s.User(access.Customer)
	notified(t, s, customerEvent(anna.UserID))
	read := notified(t, s, customerEvent(anna.UserID))[0]
	anna.Do("PATCH", path+"/"+read+"/read", `{"read":true}`).Expect(t, 200)
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "unknown search field", As: empty, Method: "GET", Path: path + "?search.status=new", Status: 500,
			Contains: []string{"query_m.invalid_search_field", `"class":"business"`}, Excludes: []string{"retryable"}},
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
		{Name: "rendered content never matches", As: anna, Method: "GET", Path: path + "?search.content=*", Status: 200, Contains: []string{`"total":0`}},
		{Name: "read", As: anna, Method: "GET", Path: path + "?search.read=true", Status: 200, Contains: []string{`"total":1,`, read}},
		{Name: "limit zero", As: anna, Method: "GET", Path: path + "?limit=0&offset=-3", Status: 200, Contains: []string{`"total":2`}},
		{Name: "limit is not a number", As: anna, Method: "GET", Path: path + "?limit=ten", Status: 400, Contains: []string{"common.invalid_input"}},
		{Name: "customer is not a UUID", As: anna, Method: "GET", Path: path + "?customer_id=x", Status: 400, Contains: []string{"common.invalid_input", "customer_id"}},
	})
}

func TestNotify_LeavesOutOwnActionsButNotNewDevices(t *testing.T) {
	s := servertest.Start(t)
	anna := s.User(access.Customer)
	made := anna.Do("POST", "/v1/customers", map[string]any{"first_name": "Urs", "last_name": "Meier", "email": "u@example.ch"}).Expect(t, 201).JSON(t)
	anna.Do("PUT", "/v1/customers/"+made["id"].(string)+"/kyc", map[string]any{"documents": []map[string]any{
		{"type": "passport", "number": "X1", "expiry_date": "2030-01-01", "country": "CHE"}}}).Expect(t, 200)
	if p := list(t, anna, ""); p.Total != 0 {
		t.Errorf("Anna is notified of what she did herself: %+v", p)
	}
	s.Admin().Do("PATCH", "/v1/customers/"+made["id"].(string)+"/kyc/status", map[string]any{"kyc_status": "in_review"}).Expect(t, 200)
	if p := list(t, anna, ""); p.Total != 1 || p.Data[0]["event"] != "customer_status_changed" {
		t.Errorf("got %+v, want that of the reviewer's change", p)
	}
	credentials := map[string]any{"user_id": anna.UserID, "password": "a long enough password 42"}
	s.Anonymous().With("X-Device-ID", "phone").Do("POST", "/authenticate", credentials).Expect(t, http.StatusOK)
	s.Anonymous().With("X-Device-ID", "phone").Do("POST", "/authenticate", credentials).Expect(t, http.StatusOK)
	if p := list(t, anna, "?search.event=new_device_login"); p.Total != 1 || p.Data[0]["link_url"] != "/profile" {
		t.Errorf("got %+v, want one of the new device", p)
	}
	if n := count(t, s.DB, "deliveries WHERE user_id = $1 AND channel = 'email' AND notification_id IS NOT NULL AND status = 'sent' AND attempts = 1 AND subject LIKE '%device%'", anna.UserID); n != 1 {
		t.Errorf("got %d mails about it in the local outbox, want 1", n)
	}
}

func TestCheck_TreatsTheRecipientAsOwner(t *testing.T) {
	s := servertest.Start(t)
	anna := s.User(access.Customer)
	id := notified(t, s, customerEvent(anna.UserID))[0]
	answer := anna.Do("POST", "/v1/rbac/check", map[string]any{"checks": []map[string]any{
		{"rec_type": "notifications", "permission": "read", "rec_id": id}, {"rec_type": "notifications", "permission": "delete", "rec_id": id}}})
	if want := fmt.Sprintf(`{"results":[{"allowed":true,"source":"owner","source_id":%q},{"allowed":false`, id); !strings.HasPrefix(answer.Body, want) {
		t.Errorf("got %s, want %s", answer.Body, want)
	}
}
