package app_test

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"kontor/server/ratelimit"
	"kontor/server/servertest"
)

func TestQuery_UnknownParametersAreRejectedWithASuggestion(t *testing.T) {
	s := servertest.Start(t)
	for _, c := range []struct{ path, query, lang, field, text string }{
		{"/v1/customers", "last_name=Muster", "en", "last_name", "There is no such parameter. Did you mean search.last_name?"},
		{"/v1/customers", "lastName=Muster", "de", "lastName", "Diesen Parameter gibt es nicht. Meinten Sie search.last_name?"},
		{"/v1/customers", "search%5Blast_name%5D=Muster", "it", "search[last_name]", "Questo parametro non esiste. Intendeva search.last_name?"},
		{"/v1/customers", "limits=5", "en", "limits", "There is no such parameter. Did you mean limit?"},
		{"/v1/customers", "xyzzy=5", "fr", "xyzzy", "Ce paramètre n’existe pas."},
		{"/v1/payers", "compny=A", "en", "compny", "There is no such parameter. Did you mean company?"},
		{"/v1/payers", "search.company=A", "en", "search.company", "There is no such parameter. Did you mean company?"},
		{"/v1/notifications", "status=unread", "en", "status", "There is no such parameter."},
		{"/v1/chats", "page=2", "en", "page", "There is no such parameter."},
		{"/v1/users/me", "full=true", "en", "full", "There is no such parameter."},
		{"/v1/customers", "%00%0a=1", "en", "??", "There is no such parameter."},
		{"/v1/customers", strings.Repeat("x", 500) + "=1", "en", strings.Repeat("x", 80), "There is no such parameter."},
	} {
		answer := s.Admin().With("Accept-Language", c.lang).Do("GET", c.path+"?"+c.query, nil)
		answer.ExpectError(t, http.StatusBadRequest, "common.invalid_input")
		if details, _ := answer.JSON(t)["details"].(map[string]any); details[c.field] != c.text || len(details) != 1 {
			t.Errorf("%s?%s: got %v, want %s: %s", c.path, c.query, details, c.field, c.text)
		}
	}
}

func TestQuery_UnknownParametersAreReportedWithTheBody(t *testing.T) {
	answer := servertest.Start(t).Admin().Do("POST", "/v1/customers?dry_run=true", `{"last_name":7,"email":"anna@example.ch","first_name":"Anna"}`)
	details, _ := answer.Expect(t, http.StatusBadRequest).JSON(t)["details"].(map[string]any)
	if got := strings.Join(slices.Sorted(maps.Keys(details)), " "); got != "dry_run last_name" {
		t.Errorf("got %s", got)
	}
}

// A flood of unknown parameters gets a short answer.
func TestQuery_BoundsTheReportedParameters(t *testing.T) {
	query := url.Values{}
	for i := range 200 {
		query.Set("p"+strings.Repeat("q", i%7)+string(rune('a'+i%26))+strings.Repeat("r", i/26), "1")
	}
	answer := servertest.Start(t).Admin().Do("GET", "/v1/customers?"+query.Encode(), nil)
	if details, _ := answer.Expect(t, http.StatusBadRequest).JSON(t)["details"].(map[string]any); len(details) > 20 {
		t.Errorf("got %d details", len(details))
	}
}

// Probes and scrapers may add parameters. A search that the list does not have keeps the error of its own.
func TestQuery_ProbesMayAddParameters(t *testing.T) {
	s := servertest.Start(t)
	for _, e := range s.Table() {
		if e.Limit == ratelimit.None && e.Method == "GET" {
			s.Admin().Do("GET", e.Path+"?ts=1", nil).Expect(t, http.StatusOK)
		}
	}
	s.Admin().Do("GET", "/v1/customers?search.nothing=1", nil).ExpectError(t, http.StatusInternalServerError, "query_m.invalid_search_field")
}

func TestQuery_SearchesQuotedEmptyAndNullValues(t *testing.T) {
	s := servertest.Start(t)
	admin := s.Admin()
	for _, name := range []string{`Muster, Söhne`, `Muster`, `Söhne`, `Null`, `The "Bank"`} {
		admin.Create("/v1/customers", map[string]any{"type": "business", "last_name": name, "email": "a@example.ch"})
	}
	admin.Create("/v1/customers", `{"first_name":"Anna","last_name":"Keller","email":"a@example.ch","phone":"+41446681800","date_of_birth":"1984-05-17","nationality":"CHE"}`)
	for search, want := range map[string]string{
		`search.last_name="Muster, Söhne"`:              `Muster, Söhne`,
		`search.last_name=Muster,Söhne`:                 `Muster|Söhne`,
		`search.last_name="muster, *"`:                  `Muster, Söhne`,
		`search.last_name=null`:                         `Null`,
		`search.last_name="The ""Bank"""`:               `The "Bank"`,
		`search.last_name=The "Bank"`:                   `The "Bank"`,
		`search.phone=null`:                             `Muster|Muster, Söhne|Null|Söhne|The "Bank"`,
		`search.phone=`:                                 `Muster|Muster, Söhne|Null|Söhne|The "Bank"`,
		`search.phone="null"`:                           ``,
		`search.date_of_birth=null,1984-05-17`:          `Keller|Muster|Muster, Söhne|Null|Söhne|The "Bank"`,
		`search.nationality=null&search.last_name=M*`:   `Muster|Muster, Söhne`,
		`search.nationality="",CHE&search.last_name=K*`: `Keller`,
		`search.date_of_birth=""&search.last_name=Null`: `Null`,
		`search.first_name=&search.last_name=Keller`:    ``,
		`search.first_name=""&search.last_name=S*`:      `Söhne`,
	} {
		var page struct {
			Data []struct {
				LastName string `json:"last_name"`
			} `json:"data"`
		}
		values, err := url.ParseQuery(search)
		if err != nil {
			t.Fatal(err)
		}
		admin.Do("GET", "/v1/customers?sort=last_name&limit=100&"+values.Encode(), nil).Expect(t, http.StatusOK).Into(t, &page)
		var got []string
		for _, c := range page.Data {
			got = append(got, c.LastName)
		}
		slices.Sort(got)
		if strings.Join(got, "|") != want {
			t.Errorf("%s: got %s, want %s", search, strings.Join(got, "|"), want)
		}
	}
}
