package chats_test

import (
	"net/http"
	"strings"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/server/settings"
)

// small sets a quota that a test can reach.
func small(records, megabytes int) servertest.Option {
	return func(s *settings.Settings) { s.Quotas.Records, s.Quotas.Megabytes = records, megabytes }
}

func TestQuota_NamesTheExceededLimit(t *testing.T) {
	s := servertest.Start(t, small(5, 1))
	anna, beat, advisor := s.User(access.Customer), s.User(access.Customer), s.User(access.Advisor)
	id := open(t, anna, beat).ID
	path := "/v1/chats/" + id + "/messages"
	for range 4 {
		post(t, anna, id, "Hallo")
	}
	refused := map[string]any{"content": "one too many"}
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "one record too many", As: anna, Method: "POST", Path: path, Body: refused, Status: 409,
			Contains: []string{`"common.quota_exceeded"`, `"limit":"quotas.records_per_user"`, `"max":5`, `"used":5`}},
		{Name: "a persona", As: anna, Method: "POST", Path: "/v1/personas", Status: 409, Contains: []string{`"common.quota_exceeded"`},
			Body: map[string]any{"first_name": "A", "last_name": "B", "date_of_birth": "1990-01-01"}},
		{Name: "a customer", As: anna, Method: "POST", Path: "/v1/customers", Status: 409, Contains: []string{`"common.quota_exceeded"`},
			Body: map[string]any{"first_name": "A", "last_name": "B", "email": "a@example.ch"}},
		{Name: "another user", As: beat, Method: "POST", Path: path, Body: refused, Status: 201},
		{Name: "the existing direct chat", As: anna, Method: "POST", Path: "/v1/chats", Body: with(beat), Status: 200},
	})
	for range 10 { // staff are not counted
		advisor.Do("POST", "/v1/personas", map[string]any{"first_name": "A", "last_name": "B", "date_of_birth": "1990-01-01"}).Expect(t, http.StatusCreated)
	}
}

func TestQuota_CountsBytesAcrossChanges(t *testing.T) {
	s := servertest.Start(t, small(1000, 1))
	anna := s.User(access.Customer)
	persona := func(filler int) map[string]any {
		return map[string]any{"first_name": "A", "last_name": "B", "date_of_birth": "1990-01-01", "metadata": map[string]any{"x": strings.Repeat("x", filler)}}
	}
	var records, bytes int64
	usage := func() {
		t.Helper()
		if err := s.DB.QueryRow(t.Context(), `SELECT records, bytes FROM storage_usage WHERE user_id = $1`, anna.UserID).Scan(&records, &bytes); err != nil {
			t.Fatal(err)
		}
	}
	path := "/v1/personas/" + anna.Create("/v1/personas", persona(0))
	usage()
	first := bytes
	anna.Do("PUT", path, persona(10_000)).Expect(t, http.StatusOK)
	usage()
	if bytes != first+10_000 || records != 1 {
		t.Errorf("10,000 bytes more are counted as %d, with %d records", bytes-first, records)
	}
	s.Admin().Do("PUT", path, persona(5000)).Expect(t, http.StatusOK) // counts for the owner, not for the user who changes it
	usage()
	if bytes != first+5000 {
		t.Errorf("5,000 bytes less are counted as %d", bytes-first)
	}
	made := 0
	for ; made < 200; made++ {
		answer := anna.Do("POST", "/v1/personas", persona(16_000))
		if answer.Status == http.StatusConflict {
			if !strings.Contains(answer.Body, `"limit":"quotas.megabytes_per_user"`) {
				t.Errorf("got %s, want the name of the limit", answer.Body)
			}
			break
		}
		answer.Expect(t, http.StatusCreated)
	}
	if want := (1 << 20) / 16_300; made < want-2 || made > want+2 {
		t.Errorf("got %d personas of 16 kB into 1 MB, want about %d", made, want)
	}
	usage()
	before := bytes
	anna.Do("PUT", path, persona(16_000)).Expect(t, http.StatusConflict) // growing counts, too
	anna.Do("PUT", path, persona(100)).Expect(t, http.StatusOK)
	usage()
	if bytes != before-4900 {
		t.Errorf("shrinking by 4,900 bytes is counted as %d", bytes-before)
	}
}

func TestRemoveParticipant_IsForTheCreatorWhileInTheChatAndForGrants(t *testing.T) {
	s := servertest.Start(t)
	creator, plain, granted := s.User(access.Customer), s.User(access.Customer), s.User(access.Customer)
	one, two := s.User(access.Customer), s.User(access.Customer)
	id := open(t, creator, plain, granted, one, two).ID
	remove := func(as, whom *servertest.Client) int {
		return as.Do("DELETE", "/v1/chats/"+id+"/participants/"+whom.UserID, nil).Status
	}
	s.Admin().Do("POST", "/v1/rbac/grants", map[string]any{"user_id": granted.UserID, "rec_type": "chats", "permissions": []string{"update"}, "rec_id": id}).
		Expect(t, http.StatusCreated)
	if got := remove(plain, one); got != http.StatusForbidden {
		t.Errorf("a participant removes another: %d, want 403", got)
	}
	if got := remove(granted, one); got != http.StatusOK {
		t.Errorf("a participant with a grant removes another: %d, want 200", got)
	}
	if got := remove(creator, two); got != http.StatusOK {
		t.Errorf("the creator removes another: %d, want 200", got)
	}
	if got := remove(creator, creator); got != http.StatusOK {
		t.Errorf("the creator leaves: %d, want 200", got)
	}
	if got := remove(creator, plain); got != http.StatusForbidden {
		t.Errorf("a creator who has left removes another: %d, want 403", got)
	}
	s.Admin().Do("POST", "/v1/rbac/grants", map[string]any{"user_id": creator.UserID, "rec_type": "chats", "permissions": []string{"update"}, "rec_id": id}).
		Expect(t, http.StatusCreated)
	if got := remove(creator, plain); got != http.StatusOK {
		t.Errorf("by a grant on the chat: %d, want 200", got)
	}
}
