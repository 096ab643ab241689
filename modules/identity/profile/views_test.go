package profile_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
)

func TestViews_AreSavedByListAndName(t *testing.T) {
	s := servertest.Start(t)
	user, other := s.User(access.Advisor), s.User(access.Advisor)
	save := func(as *servertest.Client, list, name, query string) servertest.Response {
		return as.Do("PUT", "/v1/profile/views", map[string]any{"list": list, "name": name, "query": query})
	}
	first := save(user, "/customers", "In review", "kyc_status=in_review").Expect(t, http.StatusOK).JSON(t)
	again := save(user, "/customers", "In review", "kyc_status=in_review&limit=50").Expect(t, http.StatusOK).JSON(t)
	if first["id"] != again["id"] || again["query"] != "kyc_status=in_review&limit=50" {
		t.Errorf("got %v after %v", again, first)
	}
	save(user, "/tasks", "In review", "").Expect(t, http.StatusOK)
	save(other, "/customers", "Mine", "").Expect(t, http.StatusOK)
	page := user.Do("GET", "/v1/profile/views?search.list=/customers", nil).Expect(t, http.StatusOK).JSON(t)
	if page["total"] != 1.0 || page["total_unfiltered"] != 2.0 {
		t.Errorf("got %v", page)
	}
	one := "/v1/profile/views/" + first["id"].(string)
	if answer := other.Do("DELETE", one, nil).Expect(t, http.StatusNotFound); answer.JSON(t)["code"] != "profile.view_not_found" {
		t.Errorf("another user got %s", answer.Body)
	}
	user.Do("DELETE", one, nil).Expect(t, http.StatusOK)
	user.Do("DELETE", one, nil).Expect(t, http.StatusNotFound)
	trail := s.Admin().Do("GET", "/v1/audit?search.rec_type=profiles&search.rec_id="+user.UserID, nil).JSON(t)
	if trail["total"] != 4.0 {
		t.Errorf("the audit trail has %v entries, want 4", trail["total"])
	}
}

func TestViews_RejectInvalidInput(t *testing.T) {
	user := servertest.Start(t).User(access.Advisor)
	for field, body := range map[string]map[string]any{
		"list":  {"list": "https://bank.example/customers", "name": "x", "query": ""},
		"name":  {"list": "/customers", "name": " ", "query": ""},
		"query": {"list": "/customers", "name": "x", "query": strings.Repeat("x", 2001)},
	} {
		answer := user.Do("PUT", "/v1/profile/views", body).Expect(t, http.StatusBadRequest).JSON(t)
		if details := answer["details"].(map[string]any); len(details) != 1 || details[field] == nil {
			t.Errorf("%s: got %v", field, details)
		}
	}
	user.Do("PUT", "/v1/profile/views", map[string]any{"list": "//evil.example", "name": "x", "query": ""}).Expect(t, http.StatusBadRequest)
}

func TestViews_AreLimited(t *testing.T) {
	user := servertest.Start(t).User(access.Advisor)
	const most = 200
	for i := range most + 1 {
		want := http.StatusOK
		if i == most {
			want = http.StatusConflict
		}
		user.Do("PUT", "/v1/profile/views", map[string]any{"list": "/customers", "name": fmt.Sprint(i), "query": ""}).Expect(t, want)
	}
}
