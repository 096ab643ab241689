package app_test

import (
	"net/http"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
)

// HEAD and conditions answer as GET does, and a refusal has no ETag: neither tells more of a record than its address.
func TestExistence_HeadAndConditionsTellNoMoreThanGet(t *testing.T) {
	s := servertest.Start(t)
	owner, stranger := s.User(access.Advisor), s.User(access.Customer)
	customer := customerOf(t, s)
	task := owner.Create("/v1/customers/"+customer+"/tasks", map[string]any{"title": "Sign", "category": "sign"})
	notified := s.User(access.Customer)
	owner.Do("POST", "/v1/customers/"+customer+"/notify", map[string]any{"text": "Please call.", "user_ids": []string{notified.UserID}}).Expect(t, 200)
	var inbox struct{ Data []struct{ ID string } }
	notified.Do("GET", "/v1/notifications", nil).Expect(t, 200).Into(t, &inbox)
	for path, status := range map[string]int{
		"/v1/customers/" + customer:                    http.StatusForbidden,
		"/v1/customers/" + customer + "/kyc":           http.StatusForbidden,
		"/v1/customers/" + customer + "/tasks/" + task: http.StatusForbidden,
		"/v1/users/" + owner.UserID:                    http.StatusForbidden,
		"/v1/users/" + owner.UserID + "/export":        http.StatusForbidden,
		"/v1/rbac/roles/" + access.Advisor:             http.StatusForbidden,
		"/v1/notifications/" + inbox.Data[0].ID:        http.StatusNotFound,
		"/v1/notifications/" + customer:                http.StatusNotFound,
		"/v1/service-accounts/" + owner.UserID:         http.StatusForbidden,
		"/v1/chats/" + owner.Create("/v1/chats", map[string]any{"participants": []string{notified.UserID}}): http.StatusForbidden,
	} {
		for _, headers := range [][]string{nil, {"If-None-Match", "*"}, {"If-None-Match", `"1"`}, {"If-Match", "*"}, {"If-Match", `"1"`}, {"Range", "bytes=0-0"}} {
			for _, method := range []string{"GET", "HEAD"} {
				answer := stranger.With(headers...).Do(method, path, nil)
				if answer.Status != status || answer.Header.Get("ETag") != "" || answer.Header.Get("Last-Modified") != "" {
					t.Errorf("%s %s with %v: got %d and the tag %q, want %d", method, path, headers, answer.Status, answer.Header.Get("ETag"), status)
				}
			}
		}
	}
	// Changes check the right before the version.
	for _, match := range []string{"*", `"1"`, `"99"`} {
		stranger.With("If-Match", match).Do("DELETE", "/v1/customers/"+customer+"/tasks/"+task, nil).Expect(t, http.StatusForbidden)
		stranger.With("If-Match", match).Do("PATCH", "/v1/users/"+owner.UserID, map[string]any{"language": "fr"}).Expect(t, http.StatusForbidden)
		for _, id := range []string{inbox.Data[0].ID, customer} { // the specification has 500 for an unknown notification
			stranger.With("If-Match", match).Do("DELETE", "/v1/notifications/"+id, nil).ExpectError(t, http.StatusInternalServerError, "common.database_error")
		}
	}
	owner.Do("HEAD", "/v1/customers/"+customer+"/tasks/"+task, nil).Expect(t, http.StatusOK)
	if tag := owner.Do("GET", "/v1/customers/"+customer, nil).Expect(t, http.StatusOK).Header.Get("ETag"); tag == "" {
		t.Error("a reader gets no tag")
	}
}
