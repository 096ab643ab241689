package profile_test

import (
	"net/http"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
)

const preferences = "/v1/profile/preferences"

func TestPreferences_FollowTheLanguageOfTheUser(t *testing.T) {
	s := servertest.Start(t)
	user := s.User(access.Customer)
	for language, want := range map[string]string{
		"en": `{"theme":"system","date_format":"YYYY-MM-DD","currency_display":"code","number_format":"1,234.56"}`,
		"de": `{"theme":"system","date_format":"DD.MM.YYYY","currency_display":"code","number_format":"1'234.56"}`,
		"fr": `{"theme":"system","date_format":"DD.MM.YYYY","currency_display":"code","number_format":"1 234,56"}`,
		"it": `{"theme":"system","date_format":"DD.MM.YYYY","currency_display":"code","number_format":"1'234.56"}`,
	} {
		user.Do("PATCH", "/v1/users/"+user.UserID, map[string]any{"language": language}).Expect(t, http.StatusOK)
		if got := user.Do("GET", preferences, nil).Expect(t, http.StatusOK); got.Body != want {
			t.Errorf("%s: got %s, want %s", language, got.Body, want)
		}
	}
}

// A screen may have another language than its user, who has not chosen the formats: the screen's decides. "*" is no choice.
func TestPreferences_FollowTheLanguageOfTheRequest(t *testing.T) {
	s := servertest.Start(t)
	user := s.User(access.Customer)
	french, whichever := user.With("Accept-Language", "fr"), user.With("Accept-Language", "*")
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "the user's", As: user, Method: "GET", Path: preferences, Status: 200, Contains: []string{`"date_format":"YYYY-MM-DD"`}},
		{Name: "any", As: whichever, Method: "GET", Path: preferences, Status: 200, Contains: []string{`"date_format":"YYYY-MM-DD"`}},
		{Name: "the screen's", As: french, Method: "GET", Path: preferences, Status: 200,
			Contains: []string{`"date_format":"DD.MM.YYYY"`, `"number_format":"1 234,56"`}},
		{Name: "a choice stays", As: french, Method: "PUT", Path: preferences, Body: map[string]any{"date_format": "MM/DD/YYYY"}, Status: 200,
			Contains: []string{`"date_format":"MM/DD/YYYY"`, `"number_format":"1 234,56"`}},
		{Name: "in all languages", As: user, Method: "GET", Path: preferences, Status: 200,
			Contains: []string{`"date_format":"MM/DD/YYYY"`, `"number_format":"1,234.56"`}},
	})
	now := french.Do("GET", preferences, nil).Expect(t, http.StatusOK)
	french.With("If-Match", now.Header.Get("ETag")).Do("PUT", preferences, map[string]any{"theme": "dark"}).Expect(t, http.StatusOK)
}

func TestPreferences_KeepMissingMembers(t *testing.T) {
	s := servertest.Start(t)
	user, other := s.User(access.Customer), s.User(access.Advisor)
	first := user.Do("GET", preferences, nil).Expect(t, http.StatusOK)
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "one member", As: user, Method: "PUT", Path: preferences, Body: map[string]any{"theme": "dark", "user_id": other.UserID}, Status: 200,
			Contains: []string{`{"theme":"dark","date_format":"YYYY-MM-DD","currency_display":"code","number_format":"1,234.56"}`}},
		{Name: "the other members", As: user, Method: "PUT", Path: preferences, Status: 200,
			Body:     map[string]any{"date_format": "MM/DD/YYYY", "currency_display": "name", "number_format": "1.234,56"},
			Contains: []string{`{"theme":"dark","date_format":"MM/DD/YYYY","currency_display":"name","number_format":"1.234,56"}`}},
		{Name: "null restores the default", As: user, Method: "PUT", Path: preferences, Body: map[string]any{"date_format": nil}, Status: 200,
			Contains: []string{`"theme":"dark","date_format":"YYYY-MM-DD","currency_display":"name"`}},
		{Name: "no member", As: user, Method: "PUT", Path: preferences, Body: map[string]any{}, Status: 200, Contains: []string{`"theme":"dark"`}},
		{Name: "the profile", As: user, Method: "GET", Path: "/v1/profile", Status: 200, Contains: []string{`"theme":"dark"`, user.UserID, `"avatar":null`}},
		{Name: "another user", As: other, Method: "GET", Path: preferences, Status: 200, Contains: []string{`"theme":"system"`}},
		{Name: "a stale ETag", As: user.With("If-Match", first.Header.Get("ETag")), Method: "PUT", Path: preferences, Body: map[string]any{"theme": "light"}, Status: 412},
	})
	now := user.Do("GET", preferences, nil)
	user.With("If-Match", now.Header.Get("ETag")).Do("PUT", preferences, map[string]any{"theme": "light"}).Expect(t, http.StatusOK)
	user.With("If-None-Match", now.Header.Get("ETag")).Do("GET", preferences, nil).Expect(t, http.StatusOK)
}

func TestPreferences_RejectUnknownValues(t *testing.T) {
	s := servertest.Start(t)
	user := s.User(access.Customer)
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "all invalid members at once", As: user, Method: "PUT", Path: preferences, Status: 400,
			Body:     map[string]any{"theme": "blue", "date_format": "DD-MM-YYYY", "currency_display": "", "number_format": "1’234.56"},
			Contains: []string{`"theme":"Only these values are possible: light, dark, system."`, `"date_format"`, `"currency_display"`, `"number_format"`}},
		{Name: "not a text", As: user, Method: "PUT", Path: preferences, Body: map[string]any{"theme": 1}, Status: 400, Contains: []string{`"theme"`}},
		{Name: "nothing changed", As: user, Method: "GET", Path: preferences, Status: 200, Contains: []string{`"theme":"system"`}},
	})
}

func TestProfile_IsForItsUserOnly(t *testing.T) {
	s := servertest.Start(t)
	user := s.User(access.Customer)
	calls := [][2]string{{"GET", "/v1/profile"}, {"GET", preferences}, {"PUT", preferences}, {"DELETE", "/v1/profile/avatar"}, {"POST", "/v1/profile/avatar"}}
	for _, c := range []struct {
		name   string
		as     *servertest.Client
		status []int
	}{
		{"anonymous", s.Anonymous(), []int{401, 401, 401, 401, 401}},
		{"api key", s.Keyed(), []int{401, 401, 401, 401, 401}},
		{"registrant", s.User(access.Registrant), []int{403, 403, 403, 403, 403}},
		{"customer", user, []int{200, 200, 200, 404, 400}},
		{"advisor", s.User(access.Advisor), []int{200, 200, 200, 404, 400}},
		{"administrator", s.Admin(), []int{200, 200, 200, 404, 400}},
	} {
		for i, call := range calls {
			if answer := c.as.Do(call[0], call[1], nil); answer.Status != c.status[i] {
				t.Errorf("%s: %s %s: got %d %s, want %d", c.name, call[0], call[1], answer.Status, answer.Body, c.status[i])
			}
		}
	}
	check := func(id string) map[string]any {
		return map[string]any{"checks": []any{map[string]any{"rec_type": "profiles", "permission": "update", "rec_id": id}}}
	}
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "the check for the own profile", As: user, Method: "POST", Path: "/v1/rbac/check", Body: check(user.UserID), Status: 200, Contains: []string{`"allowed":true,"source":"owner"`}},
		{Name: "the check for another profile", As: user, Method: "POST", Path: "/v1/rbac/check", Body: check(s.Admin().UserID), Status: 200, Contains: []string{`"allowed":false`}},
	})
}
