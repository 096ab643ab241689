package app_test

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"kontor/server/endpoint"
	"kontor/server/servertest"
	"kontor/server/settings"
	"kontor/store"
)

// An unknown parameter has no effect, except that the answer names it.
func TestQuery_UnknownParametersHaveNoEffect(t *testing.T) {
	s := servertest.Start(t)
	for _, c := range []struct{ path, query, ignored string }{
		{"/v1/customers", "last_name=Muster", "last_name"},
		{"/v1/customers", "search%5Blast_name%5D=Muster&limits=5&limit=10&sort=-created_at", "search[last_name], limits"},
		{"/v1/customers", "xyzzy=5&xyzzy=6&_=1&xyzzy", "xyzzy, _"},
		{"/v1/payers", "compny=A&search.company=A&sort=id&limit=5&company=A", "compny, search.company, sort"},
		{"/v1/chats", "cursor=x&sort=y", "cursor, sort"},
		{"/v1/notifications", "status=read", "status"},
		{"/v1/notifications", "Limit=5&customer_id=" + store.NilID, "Limit"},
		{"/v1/chats", "page=2", "page"},
		{"/v1/users/me", "full=true", "full"},
		{"/v1/users/me", "search.x=1&limit=5", "search.x, limit"},
		{"/v1/profile/preferences", "&&=1&a", "a"},
		{"/v1/audit", "user=1", "user"},
		{"/v1/events", "page=1", "page"},
		{"/healthz", "ts=1", "ts"},
		{"/openapi.json", "v=1", "v"},
		{"/v1/customers", "%00%0d%0aSet-Cookie:%20a=b&%2C=1&%e2%82%ac=1&%22=1", "%00%0D%0ASet-Cookie%3A%20a, %2C, %E2%82%AC, %22"},
		{"/v1/customers", strings.Repeat("x", 500) + "=1", strings.Repeat("x", 60) + "..."},
		{"/v1/customers", "limit=5", ""},
		{"/v1/customers", "", ""},
	} {
		answer := s.Admin().Do("GET", c.path+"?"+c.query, nil).Expect(t, http.StatusOK)
		if got := answer.Header.Get(endpoint.IgnoredHeader); got != c.ignored {
			t.Errorf("%s?%s: got %q, want %q", c.path, c.query, got, c.ignored)
		}
		if answer.Header.Get("Set-Cookie") != "" {
			t.Errorf("%s?%s sets a cookie", c.path, c.query)
		}
	}
}

func TestQuery_UnknownParametersAreIgnoredByEveryMethod(t *testing.T) {
	s := servertest.Start(t)
	admin := s.Admin()
	anna := `{"last_name":"Keller","email":"anna@example.ch","first_name":"Anna"}`
	answer := admin.Do("POST", "/v1/customers?dry_run=true", anna).Expect(t, http.StatusCreated)
	path := "/v1/customers/" + answer.JSON(t)["id"].(string)
	for _, answer := range []servertest.Response{
		answer, admin.Do("PUT", path+"?dry_run=true", anna).Expect(t, http.StatusOK), admin.Do("HEAD", path+"?dry_run=true", nil).Expect(t, http.StatusOK),
		admin.Do("POST", "/v1/customers?dry_run=true", `{"last_name":7}`).Expect(t, http.StatusBadRequest),
		admin.Do("GET", "/v1/customers?dry_run=true&search.nothing=1", nil).Expect(t, http.StatusInternalServerError),
		admin.With("Accept", "text/csv").Do("GET", "/v1/customers?dry_run=true", nil).Expect(t, http.StatusOK),
	} {
		if got := answer.Header.Get(endpoint.IgnoredHeader); got != "dry_run" {
			t.Errorf("got %q", got)
		}
	}
}

// A flood of unknown parameters gets a short header.
func TestQuery_BoundsTheIgnoredParameters(t *testing.T) {
	var query strings.Builder
	for i := range 3000 {
		query.WriteString("&" + strconv.FormatInt(int64(i), 36))
	}
	answer := servertest.Start(t).Admin().Do("GET", "/v1/customers?"+query.String(), nil).Expect(t, http.StatusOK)
	if got := answer.Header.Get(endpoint.IgnoredHeader); len(got) > 500 || !strings.HasPrefix(got, "0, 1, 2") || !strings.HasSuffix(got, ", ...") {
		t.Errorf("got %q", got)
	}
}

// Pages of other origins can read the header, and the log of requests has the same names.
func TestQuery_IgnoredParametersAreShown(t *testing.T) {
	s := servertest.Start(t, func(o *settings.Settings) {
		o.CORS.AllowedOrigins, o.Requests.Keep = []string{"https://app.example"}, 100
	})
	admin := s.Admin()
	answer := admin.With("Origin", "https://app.example").Do("GET", "/v1/customers?status=x&limit=5", nil).Expect(t, http.StatusOK)
	if got := answer.Header.Get("Access-Control-Expose-Headers"); !strings.Contains(got, endpoint.IgnoredHeader) {
		t.Errorf("exposed: %s", got)
	}
	if got := admin.Do("GET", "/v1/requests?limit=1", nil).Expect(t, http.StatusOK).Body; !strings.Contains(got, `"query":"status&limit","ignored":"status"`) {
		t.Errorf("got %s", got)
	}
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
