package screening_test

import (
	"net/http"
	"strings"
	"testing"

	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/server/servertest"
	"kontor/server/settings"
)

// Lists are for administrators who have signed in recently; checks are for staff. Customers must not learn who is listed.
func TestAccess(t *testing.T) {
	s := servertest.Start(t)
	admin := s.Admin()
	id := load(t, admin, "Sample", people).Expect(t, http.StatusCreated).JSON(t)["id"].(string)
	for role, client := range map[string]*servertest.Client{"customer": s.User(access.Customer), "advisor": s.User(access.Advisor), "anonymous": s.Anonymous()} {
		denied := http.StatusForbidden
		if role == "anonymous" {
			denied = http.StatusUnauthorized
		}
		load(t, client, "Sample", people).Expect(t, denied)
		client.Do("DELETE", path+"/"+id, nil).Expect(t, denied)
		if role == "advisor" {
			denied = http.StatusOK
		}
		client.Do("GET", path, nil).Expect(t, denied)
		client.Do("GET", "/v1/screening/hits", nil).Expect(t, denied)
		r := client.Do("POST", "/v1/screening/check", object{"name": "Viktor Beispielow"}).Expect(t, denied)
		if denied != http.StatusOK && strings.Contains(r.Body, "Beispielow") {
			t.Errorf("%s: %s", role, r.Body)
		}
	}
	s.Clock.Advance(endpoint.FreshFor)
	load(t, admin, "Sample", people).ExpectError(t, http.StatusUnauthorized, "auth_m.insufficient_user_authentication")
	admin.Do("DELETE", path+"/"+id, nil).ExpectError(t, http.StatusUnauthorized, "auth_m.insufficient_user_authentication")
	admin.Do("GET", path, nil).Expect(t, http.StatusOK)
}

// The trail says who checked whom and which file is in force. No table has the name in clear.
func TestAudit_SealsTheName(t *testing.T) {
	s := servertest.Start(t)
	load(t, s.Admin(), "Sample", people).Expect(t, http.StatusCreated)
	advisor := s.User(access.Advisor)
	const name = "Quirinus Unverwechselbar"
	check(t, advisor, object{"name": name})
	var found struct {
		Data []struct{ Seq int64 }
	}
	r := s.Admin().Do("GET", "/v1/audit?search.action=screening.check", nil).Expect(t, http.StatusOK)
	r.Into(t, &found)
	if len(found.Data) != 1 || !strings.Contains(r.Body, advisor.UserID) || strings.Contains(r.Body, "Quirinus") {
		t.Errorf("the entry of the check: %s", r.Body)
	}
	if loads := s.Admin().Do("GET", "/v1/audit?search.action=screening.load", nil).Expect(t, http.StatusOK).Body; !strings.Contains(loads, "screening_lists") {
		t.Errorf("the entry of the load: %s", loads)
	}
	var sealed string
	if err := s.DB.QueryRow(t.Context(), "SELECT sealed FROM audit_values ORDER BY seq DESC LIMIT 1").Scan(&sealed); err != nil || strings.Contains(sealed, "Quirinus") {
		t.Errorf("the sealed name: %q %v", sealed, err)
	}
	var n int
	err := s.DB.QueryRow(t.Context(), "SELECT COUNT(*) FROM audit_entries WHERE detail LIKE '%Quirinus%' OR rec_id LIKE '%Quirinus%'").Scan(&n)
	if err != nil || n != 0 {
		t.Errorf("%d entries have the name in clear: %v", n, err)
	}
}

func TestCheck_RejectsWrongMembers(t *testing.T) {
	s := servertest.Start(t)
	advisor := s.User(access.Advisor)
	for name, c := range map[string]struct {
		body  object
		field string
	}{
		"no name":        {object{}, "name"},
		"an empty name":  {object{"name": "  "}, "name"},
		"no letters":     {object{"name": "!!! ..."}, "name"},
		"a long name":    {object{"name": strings.Repeat("a", 501)}, "name"},
		"many names":     {object{"name": strings.Repeat("Anna Muster/", 30) + "Anna"}, "name"},
		"NUL":            {object{"name": "Anna\x00Muster"}, "name"},
		"an override":    {object{"name": "Anna \u202e Muster"}, "name"},
		"another type":   {object{"name": "Anna", "type": "ship"}, "type"},
		"no date":        {object{"name": "Anna", "date_of_birth": "1990-02-30"}, "date_of_birth"},
		"no country":     {object{"name": "Anna", "country": "XX"}, "country"},
		"low threshold":  {object{"name": "Anna", "threshold": -0.1}, "threshold"},
		"high threshold": {object{"name": "Anna", "threshold": 1.1}, "threshold"},
		"no limit":       {object{"name": "Anna", "limit": 0}, "limit"},
		"a high limit":   {object{"name": "Anna", "limit": 101}, "limit"},
	} {
		r := advisor.Do("POST", "/v1/screening/check", c.body)
		r.ExpectError(t, http.StatusBadRequest, "common.invalid_input")
		if !strings.Contains(r.Body, `"`+c.field+`"`) {
			t.Errorf("%s: %s", name, r.Body)
		}
	}
}

// Names of any letters are compared, or rejected with a reason; the longest ones are, too.
func TestCheck_NaughtyNames(t *testing.T) {
	s := servertest.Start(t)
	load(t, s.Admin(), "Sample", people+line("' OR 1=1 --", "Person", "Robert'); DROP TABLE students;--", "", "")).Expect(t, http.StatusCreated)
	advisor := s.User(access.Advisor)
	for _, name := range []string{"Robert'); DROP TABLE students;--", "<script>alert(1)</script>", "田中さんにあげて下さい", "Виктор Бейспилов", "ﷺ 123", "Ω≈ç√∫˜µ≤≥÷ a",
		"𝒱𝒾𝓀𝓉𝑜𝓇", "%s%s%n", "a%b_c*", strings.Repeat("ab ", 166), strings.Repeat("Z", 500), strings.Repeat("王", 500), "-1", "null", "🏳️‍🌈 a"} {
		r := advisor.Do("POST", "/v1/screening/check", object{"name": name, "threshold": 0})
		if r.Status != http.StatusOK && r.Status != http.StatusBadRequest {
			t.Errorf("%q: %d %s", name, r.Status, r.Body)
		}
	}
	if r := check(t, advisor, object{"name": "Robert'); DROP TABLE students;--"}); len(r.Matches) != 1 || r.Matches[0].SourceID != "' OR 1=1 --" {
		t.Errorf("got %+v", r)
	}
}

// One caller cannot ask without end.
func TestCheck_IsRateLimited(t *testing.T) {
	s := servertest.Start(t, func(o *settings.Settings) { o.RateLimits.Enabled, o.RateLimits.PrivatePerMinute = true, 5 })
	advisor := s.User(access.Advisor)
	limited := false
	for range 6 {
		r := advisor.Do("POST", "/v1/screening/check", object{"name": "Anna Muster"})
		limited = limited || r.Status == http.StatusTooManyRequests
	}
	if !limited {
		t.Error("six checks were answered in a minute")
	}
}
