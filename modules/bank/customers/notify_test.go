package customers_test

import (
	"net/http"
	"strings"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/store"
)

func TestNotifyUsers_ReachesTheChosenUsersOnly(t *testing.T) {
	s := servertest.Start(t)
	advisor, anna, beat := s.User(access.Advisor), s.User(access.Customer), s.User(access.Customer)
	path := "/v1/customers/" + newCustomer(advisor)
	send := func(text string, ids ...string) map[string]any { return map[string]any{"text": text, "user_ids": ids} }
	inbox := "/v1/notifications?search.event=customer_notice"
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "no text", As: advisor, Method: "POST", Path: path + "/notify", Body: send(" ", anna.UserID), Status: 400, Contains: []string{`"text"`}},
		{Name: "too long", As: advisor, Method: "POST", Path: path + "/notify", Body: send(strings.Repeat("x", 501), anna.UserID), Status: 400, Contains: []string{`"text"`}},
		{Name: "no recipient", As: advisor, Method: "POST", Path: path + "/notify", Body: send("x"), Status: 400, Contains: []string{`"user_ids"`}},
		{Name: "an unknown user", As: advisor, Method: "POST", Path: path + "/notify", Body: send("x", store.NewID()), Status: 400, Contains: []string{`"user_ids.0"`}},
		{Name: "too many", As: advisor, Method: "POST", Path: path + "/notify", Body: send("x", make([]string, 21)...), Status: 400, Contains: []string{`"user_ids"`}},
		{Name: "a customer may not", As: anna, Method: "POST", Path: path + "/notify", Body: send("x", beat.UserID), Status: 403},
		{Name: "an unknown customer", As: advisor, Method: "POST", Path: "/v1/customers/" + store.NewID() + "/notify", Body: send("x", anna.UserID), Status: 404},
		{Name: "rejected ones reach nobody", As: anna, Method: "GET", Path: inbox, Status: 200, Contains: []string{`"total":0`}},
		{Name: "sent", As: advisor, Method: "POST", Path: path + "/notify", Body: send("Please <call> us.", anna.UserID, advisor.UserID), Status: 200, Contains: []string{`"recipients":1`}},
		{Name: "received", As: anna, Method: "GET", Path: inbox, Status: 200, Contains: []string{`"total":1`, `Please <call> us.`}},
		{Name: "not by others", As: beat, Method: "GET", Path: inbox, Status: 200, Contains: []string{`"total":0`}},
		{Name: "not by the sender", As: advisor, Method: "GET", Path: inbox, Status: 200, Contains: []string{`"total":0`}},
	})
	mail := s.Admin().Do("GET", "/v1/notifications/deliveries?search.user_id="+anna.UserID, nil).Expect(t, http.StatusOK)
	if !strings.Contains(mail.Body, `"total":1`) || strings.Contains(mail.Body, "call") {
		t.Errorf("the e-mail is %s, want one without the text", mail.Body)
	}
}
