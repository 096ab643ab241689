package chats_test

import (
	"strings"
	"testing"
	"time"

	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/store"
)

// bankChat lets a new customer write to the bank, and returns the customer and the chat.
func bankChat(t *testing.T, s *servertest.Server, text string) (customer *servertest.Client, chat string) {
	t.Helper()
	customer = s.User(access.Customer)
	chat = customer.Do("POST", "/v1/chats/bank", nil).Expect(t, 201).JSON(t)["id"].(string)
	customer.Create("/v1/chats/"+chat+"/messages", map[string]any{"content": text})
	return customer, chat
}

// A customer writes to the bank without knowing anybody there, and always in the same chat.
func TestInbox_ACustomerWritesToTheBank(t *testing.T) {
	s := servertest.Start(t)
	customer, chat := bankChat(t, s, "My card is lost")
	if again := customer.Do("POST", "/v1/chats/bank", nil).Expect(t, 200).JSON(t)["id"]; again != chat {
		t.Errorf("the second chat is %v, want %v", again, chat)
	}
	advisor := s.User(access.Advisor)
	open := advisor.Do("GET", "/v1/inbox?view=open", nil).Expect(t, 200).JSON(t)["data"].([]any)
	if len(open) != 1 || open[0].(map[string]any)["id"] != chat || open[0].(map[string]any)["preview"] != "My card is lost" {
		t.Fatalf("the open threads are %v", open)
	}
	if messages := advisor.Do("GET", "/v1/inbox/"+chat+"/messages", nil).Expect(t, 200).Body; !strings.Contains(messages, "My card is lost") {
		t.Errorf("the staff read %s", messages)
	}
	advisor.Do("GET", "/v1/chats/"+chat+"/files", nil).Expect(t, 200) // without taking part
	s.User(access.Customer).Do("GET", "/v1/chats/"+chat+"/files", nil).ExpectError(t, 403, "common.rbac_no_rec_access")
	advisor.Create("/v1/inbox/"+chat+"/messages", map[string]any{"content": "We have blocked it."})
	thread := advisor.Do("GET", "/v1/inbox/"+chat, nil).Expect(t, 200).JSON(t)
	if thread["state"] != "waiting" || thread["assignee"] != advisor.UserID {
		t.Errorf("after the answer the thread is %v", thread)
	}
	if messages := customer.Do("GET", "/v1/chats/"+chat+"/messages", nil).Expect(t, 200).Body; !strings.Contains(messages, "We have blocked it.") {
		t.Errorf("the customer reads %s", messages)
	}
	if n := customer.Do("GET", "/v1/notifications/unread-count", nil).Expect(t, 200).JSON(t)["unread_count"]; n != float64(1) {
		t.Errorf("the customer has %v unread notifications, want 1", n)
	}
}

// A further message to an open thread makes it the newest one, and staff who have not seen it do not close the thread.
func TestInbox_AFurtherMessageChangesTheThread(t *testing.T) {
	s := servertest.Start(t)
	first, chat := bankChat(t, s, "My card is lost")
	s.Clock.Advance(time.Minute)
	_, later := bankChat(t, s, "A question")
	advisor := s.User(access.Advisor)
	seen := advisor.Do("GET", "/v1/inbox/"+chat, nil).Expect(t, 200).Header.Get("ETag")
	s.Clock.Advance(time.Minute)
	first.Create("/v1/chats/"+chat+"/messages", map[string]any{"content": "I have found it."})
	threads := advisor.Do("GET", "/v1/inbox?sort=-changed_at", nil).Expect(t, 200).JSON(t)["data"].([]any)
	if len(threads) != 2 || threads[0].(map[string]any)["id"] != chat || threads[1].(map[string]any)["id"] != later {
		t.Errorf("the threads are %v", threads)
	}
	advisor.With("If-Match", seen).Do("PATCH", "/v1/inbox/"+chat, map[string]any{"state": "closed"}).Expect(t, 412)
}

// A thread is closed, opened by the next message of the customer, and left out of the open ones while it is snoozed.
func TestInbox_StatesFollowTheWork(t *testing.T) {
	s := servertest.Start(t)
	customer, chat := bankChat(t, s, "A question")
	advisor, other := s.User(access.Advisor), s.User(access.Advisor)
	thread := "/v1/inbox/" + chat
	count := func(view string) float64 {
		return advisor.Do("GET", "/v1/inbox?limit=-1&view="+view, nil).Expect(t, 200).JSON(t)["total"].(float64)
	}
	until := s.Clock.Now().Add(20 * time.Minute).UTC().Format(time.RFC3339)
	advisor.Do("PATCH", thread, map[string]any{"snoozed_until": until}).Expect(t, 200)
	if count("open") != 0 || count("snoozed") != 1 {
		t.Errorf("%v open and %v snoozed, want 0 and 1", count("open"), count("snoozed"))
	}
	s.Clock.Advance(21 * time.Minute)
	if count("open") != 1 || count("snoozed") != 0 {
		t.Errorf("after the pause %v open and %v snoozed, want 1 and 0", count("open"), count("snoozed"))
	}
	etag := advisor.Do("GET", thread, nil).Header.Get("ETag")
	advisor.With("If-Match", etag).Do("PATCH", thread, map[string]any{"assignee": other.UserID, "state": "closed"}).Expect(t, 200)
	advisor.With("If-Match", etag).Do("PATCH", thread, map[string]any{"state": "open"}).ExpectError(t, 412, "common.precondition_failed")
	if count("closed") != 1 || other.Do("GET", "/v1/inbox?limit=-1&view=mine", nil).JSON(t)["total"] != float64(0) {
		t.Error("a closed thread is not in the right views")
	}
	customer.Create("/v1/chats/"+chat+"/messages", map[string]any{"content": "One more thing"})
	if got := advisor.Do("GET", thread, nil).JSON(t); got["state"] != "open" || got["assignee"] != other.UserID {
		t.Errorf("after a new message the thread is %v", got)
	}
	for _, wrong := range []map[string]any{
		{"state": "deleted"}, {"state": nil}, {"assignee": "no id"}, {"assignee": customer.UserID}, {"assignee": s.User().UserID},
		{"snoozed_until": "2001-01-01T00:00:00Z"}, {"snoozed_until": "2999-01-01T00:00:00Z"}, {"snoozed_until": "soon"},
	} {
		advisor.Do("PATCH", thread, wrong).ExpectError(t, 400, "common.invalid_input")
	}
	advisor.Do("PATCH", thread, map[string]any{"assignee": nil, "snoozed_until": nil}).Expect(t, 200)
}

// Nothing that a customer can call shows a note or the state of a thread, or changes because of them.
func TestInbox_NotesNeverReachCustomers(t *testing.T) {
	s := servertest.Start(t)
	const secret = "zebrafish"
	customer, chat := bankChat(t, s, "A question")
	advisor := s.User(access.Advisor)
	advisor.Create("/v1/inbox/"+chat+"/messages", map[string]any{"content": "An answer"})
	// Even a customer who may follow events and read the exports of others' changes sees nothing.
	for _, endpoint := range []string{"GET /v1/events", "GET /v1/events/types"} {
		s.Admin().Create("/v1/rbac/grants", map[string]any{"user_id": customer.UserID, "endpoint": endpoint})
	}
	paths := []string{"/v1/chats", "/v1/chats/" + chat, "/v1/chats/" + chat + "/messages", "/v1/chats/" + chat + "/files", "/v1/search?q=" + secret,
		"/v1/chats?q=" + secret, "/v1/notifications", "/v1/notifications/unread-count", "/v1/events?limit=100", "/v1/users/" + customer.UserID + "/export"}
	type seen struct{ body, etag string }
	look := func() map[string]seen {
		all := map[string]seen{}
		for _, path := range paths {
			answer := customer.Do("GET", path, nil)
			if answer.Status != 200 && answer.Status != 401 {
				t.Fatalf("%s: %d %s", path, answer.Status, answer.Body)
			}
			all[path] = seen{answer.Body, answer.Header.Get("ETag")}
			if strings.HasPrefix(path, "/v1/events") {
				// The position in the feed moves on with every entry of the audit trail, also for those that the caller may not read.
				body, _, _ := strings.Cut(answer.Body, `,"next":`)
				all[path] = seen{body, ""}
			}
		}
		return all
	}
	before := look()
	advisor.Create("/v1/inbox/"+chat+"/notes", map[string]any{"content": "The " + secret + " again"})
	advisor.Do("PATCH", "/v1/inbox/"+chat, map[string]any{"state": "closed"}).Expect(t, 200)
	for path, after := range look() {
		if strings.Contains(after.body, secret) || strings.Contains(after.body, "inbox") {
			t.Errorf("%s shows %s", path, after.body)
		}
		if strings.HasSuffix(path, "/export") {
			continue // it names the time at which it was made
		}
		if after != before[path] {
			t.Errorf("%s has changed from %v to %v", path, before[path], after)
		}
	}
	if notes := advisor.Do("GET", "/v1/inbox/"+chat+"/notes", nil).Expect(t, 200).Body; !strings.Contains(notes, secret) {
		t.Errorf("the staff read %s", notes)
	}
}

// The threads of a customer are those of the user who has created the record.
func TestInbox_OfOneCustomer(t *testing.T) {
	s := servertest.Start(t)
	customer, chat := bankChat(t, s, "A question")
	bankChat(t, s, "Another question")
	record := customer.Create("/v1/customers", map[string]any{"type": "individual", "first_name": "Nina", "last_name": "Keller", "email": "nina@example.ch"})
	advisor := s.User(access.Advisor)
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "theirs", As: advisor, Method: "GET", Path: "/v1/inbox?customer_id=" + record, Status: 200, Contains: []string{`"total":1,`, chat}},
		{Name: "another customer", As: advisor, Method: "GET", Path: "/v1/inbox?customer_id=" + store.NewID(), Status: 200, Contains: []string{`"total":0,`}},
		{Name: "no id", As: advisor, Method: "GET", Path: "/v1/inbox?customer_id=x", Status: 400, Contains: []string{`"customer_id"`}},
		{Name: "the customer", As: customer, Method: "GET", Path: "/v1/inbox?customer_id=" + record, Status: 403},
	})
}

// Only the staff use the inbox, even if others get the grants on its endpoints. The staff do not work on what they have written
// themselves.
func TestInbox_IsForTheStaffAlone(t *testing.T) {
	s := servertest.Start(t)
	customer, chat := bankChat(t, s, "A question")
	_, foreign := bankChat(t, s, "Another question")
	requests := []struct {
		method, path string
		body         any
	}{
		{"GET", "/v1/inbox", nil}, {"GET", "/v1/inbox/templates", nil}, {"GET", "/v1/inbox/{id}", nil}, {"GET", "/v1/inbox/{id}/messages", nil},
		{"GET", "/v1/inbox/{id}/notes", nil}, {"POST", "/v1/inbox/{id}/notes", map[string]any{"content": "A note"}},
		{"POST", "/v1/inbox/{id}/messages", map[string]any{"content": "An answer"}}, {"PATCH", "/v1/inbox/{id}", map[string]any{"state": "closed"}},
	}
	check := func() {
		t.Helper()
		for _, r := range requests {
			for _, id := range []string{chat, foreign} {
				customer.Do(r.method, strings.Replace(r.path, "{id}", id, 1), r.body).ExpectError(t, 403, "common.rbac_no_rec_access")
			}
		}
	}
	check()
	for _, r := range requests {
		s.Admin().Create("/v1/rbac/grants", map[string]any{"user_id": customer.UserID, "endpoint": r.method + " " + r.path})
	}
	check()
	// A customer neither adds nor removes participants of the conversation.
	advisor := s.User(access.Advisor)
	advisor.Create("/v1/inbox/"+chat+"/messages", map[string]any{"content": "An answer"})
	customer.Do("POST", "/v1/chats/"+chat+"/participants", map[string]any{"participants": []string{s.User(access.Customer).UserID}}).
		ExpectError(t, 409, "chats.fixed_participants")
	customer.Do("DELETE", "/v1/chats/"+chat+"/participants/"+advisor.UserID, nil).ExpectError(t, 409, "chats.fixed_participants")
	// The thread of an advisor who is a customer, too, does not exist for them.
	both := s.User(access.Advisor, access.Customer)
	own := both.Do("POST", "/v1/chats/bank", nil).Expect(t, 201).JSON(t)["id"].(string)
	both.Create("/v1/chats/"+own+"/messages", map[string]any{"content": "About me"})
	for _, r := range requests[2:] {
		both.Do(r.method, strings.Replace(r.path, "{id}", own, 1), r.body).ExpectError(t, 404, "chats.thread_not_found")
	}
	if list := both.Do("GET", "/v1/inbox", nil).Expect(t, 200).Body; strings.Contains(list, own) {
		t.Errorf("the inbox of an advisor has their own thread: %s", list)
	}
}

// The templates have texts in all four languages.
func TestInbox_TemplatesAreInFourLanguages(t *testing.T) {
	s := servertest.Start(t)
	for _, one := range s.User(access.Advisor).Do("GET", "/v1/inbox/templates", nil).Expect(t, 200).JSON(t)["templates"].([]any) {
		texts := one.(map[string]any)["texts"].(map[string]any)
		for _, language := range []string{"en", "de", "fr", "it"} {
			if text, _ := texts[language].(string); text == "" || strings.HasPrefix(text, "chats.reply.") {
				t.Errorf("%v has no text in %s: %q", one.(map[string]any)["id"], language, text)
			}
		}
	}
}
