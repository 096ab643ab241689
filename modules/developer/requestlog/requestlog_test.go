package requestlog_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"kontor/modules/developer/requestlog"
	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/server/settings"
	"kontor/store/testenv"
)

type page struct {
	Data       []requestlog.Request
	Total      int64
	HasMore    bool   `json:"has_more"`
	NextCursor string `json:"next_cursor"`
}

func keep(n int) servertest.Option {
	return func(s *settings.Settings) { s.Requests.Keep = n }
}

func listed(t *testing.T, c *servertest.Client, query string) page {
	t.Helper()
	var p page
	c.Do("GET", "/v1/requests?"+query, nil).Expect(t, http.StatusOK).Into(t, &p)
	return p
}

// detail returns the explanation of the latest request that a search finds.
func detail(t *testing.T, c *servertest.Client, query string) requestlog.Detail {
	t.Helper()
	found := listed(t, c, "limit=1&"+query)
	if len(found.Data) == 0 {
		t.Fatalf("no request for %s", query)
	}
	var d requestlog.Detail
	c.Do("GET", "/v1/requests/"+strconv.FormatInt(found.Data[0].Seq, 10), nil).Expect(t, http.StatusOK).Into(t, &d)
	return d
}

// last returns the last finding of an explanation, which must be a failure unless it is the only one.
func last(t *testing.T, d requestlog.Detail) requestlog.Finding {
	t.Helper()
	if len(d.Why) == 0 {
		t.Fatalf("%s %s %d has no explanation", d.Method, d.Path, d.Status)
	}
	return d.Why[len(d.Why)-1]
}

func TestRequests_ExplainRefusals(t *testing.T) {
	s := servertest.Start(t, keep(100))
	admin, customer := s.Admin(), s.User(access.Customer)
	id := admin.Create("/v1/customers", map[string]any{"first_name": "Anna", "last_name": "Keller", "email": "anna@example.ch"})
	const unknown = "01a1fba6-a539-7476-8ef2-2ae6188b879c"
	role := admin.Create("/v1/rbac/roles", map[string]any{"name": "Tellers"})
	stranger := s.User(role)
	for _, c := range []struct {
		name        string
		client      *servertest.Client
		method, url string
		body        any
		status      int
		check, says string
	}{
		{"record of another", customer, "GET", "/v1/customers/" + id, nil, 403, "record", "exists. The caller has no relation to it that allows read, and no grant of read"},
		{"no such record", admin, "GET", "/v1/customers/" + unknown, nil, 404, "record", "There is no record " + unknown},
		{"no path", admin, "GET", "/v1/custmers", nil, 404, "path", "No endpoint has this path"},
		{"no method", admin, "PATCH", "/v1/customers", nil, 405, "path", "not with this method"},
		{"no token", s.Anonymous(), "GET", "/v1/customers", nil, 401, "caller", "no token or API key"},
		{"wrong token", s.Anonymous().With("Authorization", "Bearer x.y.z"), "GET", "/v1/customers", nil, 401, "caller", "wrong, expired or revoked"},
		{"no grant on the endpoint", customer, "GET", "/v1/audit", nil, 403, "endpoint", "has a grant on GET /v1/audit"},
		{"no grant on the endpoint, own role", stranger, "GET", "/v1/customers", nil, 403, "endpoint", "has a grant on GET /v1/customers"},
		{"wrong input", admin, "POST", "/v1/customers", map[string]any{"first_name": "Anna"}, 400, "input", "Wrong fields: "},
		{"name in use", admin, "POST", "/v1/rbac/roles", map[string]any{"name": "Tellers"}, 409, "state", "rbac.role_exists"},
	} {
		t.Run(c.name, func(t *testing.T) {
			answer := c.client.Do(c.method, c.url, c.body).Expect(t, c.status)
			d := detail(t, admin, "search.request_id="+answer.Header.Get("X-Request-ID"))
			if f := last(t, d); f.Passed || f.Check != c.check || !strings.Contains(f.Text, c.says) || strings.HasSuffix(f.Text, " ") {
				t.Errorf("got %+v, want a failure of %s with %q", d.Why, c.check, c.says)
			}
			if d.Status != int64(c.status) || d.Class != strconv.Itoa(c.status)[:1]+"xx" || d.Method != c.method || d.Path != c.url || d.RequestBody != "" {
				t.Errorf("got %+v", d)
			}
		})
	}
	german := admin.With("Accept-Language", "de")
	if f := last(t, detail(t, german, "search.status=404&search.endpoint=GET%20/v1/customers/%7Bid%7D")); !strings.Contains(f.Text, "Es gibt keinen Eintrag") {
		t.Errorf("got %+v", f)
	}
}

// The reason of a 422 without wrong fields ends with its code.
func TestRequests_ExplainAFailedStep(t *testing.T) {
	s := servertest.StartSandbox(t, false)
	answer := s.Admin().With("Content-Type", "application/json").Do("POST", "/v1/sandbox/seed", `[{"request": "GET /v1/customers", "expect": 404}]`).Expect(t, http.StatusUnprocessableEntity)
	d := detail(t, s.Admin(), "search.request_id="+answer.Header.Get("X-Request-ID"))
	if f := last(t, d); f.Check != "input" || f.Text != "The input was rejected: sandbox.step_failed." {
		t.Errorf("got %+v", d.Why)
	}
}

func TestRequests_AreForAdministrators(t *testing.T) {
	s := servertest.Start(t, keep(10))
	for _, role := range []string{access.Advisor, access.Customer} {
		user := s.User(role)
		for _, path := range []string{"/v1/requests", "/v1/requests/status", "/v1/requests/1"} {
			user.Do("GET", path, nil).ExpectError(t, http.StatusForbidden, "common.rbac_no_rec_access")
			s.Anonymous().Do("GET", path, nil).Expect(t, http.StatusUnauthorized)
		}
		user.With("Accept", "text/event-stream").Do("GET", "/v1/requests", nil).Expect(t, http.StatusForbidden)
	}
}

func TestRequests_AreOffByDefault(t *testing.T) {
	s := servertest.Start(t)
	admin := s.Admin()
	admin.Do("GET", "/v1/customers", nil).Expect(t, http.StatusOK)
	if p := listed(t, admin, ""); p.Total != 0 {
		t.Errorf("%d requests are kept", p.Total)
	}
	var status requestlog.Status
	if admin.Do("GET", "/v1/requests/status", nil).Expect(t, http.StatusOK).Into(t, &status); status.Keep != 0 || status.Bodies {
		t.Errorf("got %+v", status)
	}
	admin.Do("GET", "/v1/requests/1", nil).ExpectError(t, http.StatusNotFound, "requests.request_not_found")
}

func TestRequests_FilterSortAndPage(t *testing.T) {
	s := servertest.Start(t, keep(50))
	admin, other := s.Admin(), s.User(access.Customer)
	for range 3 {
		admin.Do("GET", "/v1/customers", nil).Expect(t, 200)
		other.Do("GET", "/v1/audit", nil).Expect(t, 403)
		admin.Do("GET", "/v1/nowhere", nil).Expect(t, 404)
	}
	for query, want := range map[string]int64{
		"search.class=4xx&search.path=/v1/*":                   6,
		"search.status=403":                                    3,
		"search.status=403..404":                               6,
		"search.status=404,200&search.path=*customers":         3,
		"search.caller=" + other.UserID + "&search.status=403": 3,
		"search.code=common.not_found":                         3,
		"search.endpoint=GET /v1/customers":                    3,
		"search.at=..2001-01-01":                               0,
		"search.method=get&search.class=4xx&distinct=path":     2,
	} {
		if p := listed(t, admin, strings.ReplaceAll(query, " ", "%20")+"&limit=100"); p.Total != want || int64(len(p.Data)) != want {
			t.Errorf("%s: %d of %d, want %d", query, len(p.Data), p.Total, want)
		}
	}
	admin.Do("GET", "/v1/requests?search.body=x", nil).ExpectError(t, 500, "query_m.invalid_search_field")
	admin.Do("GET", "/v1/requests?sort=body", nil).ExpectError(t, 400, "query_m.invalid_sort_field")
	if p := listed(t, admin, "sort=status&limit=100"); p.Data[0].Status > p.Data[len(p.Data)-1].Status {
		t.Error("not sorted by status")
	}
	var stacked struct{ Keys []string }
	if admin.Do("GET", "/v1/requests?stack=class&search.path=/v1/*&limit=100", nil).Expect(t, 200).Into(t, &stacked); strings.Join(stacked.Keys, " ") != "2xx 4xx" {
		t.Errorf("groups %v", stacked.Keys)
	}
	for _, p := range listed(t, admin, "limit=100").Data {
		if strings.HasPrefix(p.Path, "/v1/requests") {
			t.Errorf("its own request is listed: %s", p.Path)
		}
	}
}

// A page after a cursor begins below the rows of the former page, whatever was overwritten meanwhile.
func TestRequests_AreOverwrittenWhileTheyArePaged(t *testing.T) {
	s := servertest.Start(t, keep(8))
	admin := s.Admin()
	send := func(n int) {
		for range n {
			admin.Do("GET", "/v1/customers", nil).Expect(t, 200)
		}
	}
	send(20)
	first := listed(t, admin, "limit=3")
	if first.Total != 8 || len(first.Data) != 3 || !first.HasMore {
		t.Fatalf("got %+v", first)
	}
	send(4) // the oldest four of eight are gone
	second := listed(t, admin, "limit=10&cursor="+first.NextCursor)
	if len(second.Data) != 1 || second.Data[0].Seq != first.Data[2].Seq-1 || second.HasMore {
		t.Errorf("after %d: got %+v", first.Data[2].Seq, second.Data)
	}
	send(8)
	if third := listed(t, admin, "limit=10&cursor="+first.NextCursor); len(third.Data) != 0 || third.HasMore {
		t.Errorf("got %+v", third)
	}
	admin.Do("GET", fmt.Sprintf("/v1/requests/%d", first.Data[2].Seq), nil).ExpectError(t, 404, "requests.request_not_found")
	admin.Do("GET", "/v1/requests?sort=path&cursor="+first.NextCursor, nil).Expect(t, 400)
}

// Values of queries, headers and bodies are not kept outside of a sandbox.
func TestRequests_KeepNoValues(t *testing.T) {
	s := servertest.Start(t, keep(50))
	admin := s.Admin()
	admin.Do("GET", "/v1/customers?search.last_name=Geheimnis&limit=1", nil).Expect(t, 200)
	admin.Do("POST", "/v1/customers", map[string]any{"first_name": "Geheimnis", "last_name": "Keller", "email": "geheimnis@example.ch"}).Expect(t, 201)
	s.Anonymous().Do("POST", "/authenticate", map[string]any{"user_id": "geheimnis", "password": "geheimnis"}).Expect(t, 401)
	s.Anonymous().With("Authorization", "Bearer geheimnis").Do("GET", "/v1/customers", nil).Expect(t, 401)
	s.Anonymous().With("Cookie", "a=geheimnis").Do("GET", "/v1/customers", nil).Expect(t, 401)
	expectNowhere(t, admin, "geheimnis")
	if d := detail(t, admin, "search.endpoint=GET%20/v1/customers&search.status=200"); d.Query != "search.last_name&limit" {
		t.Errorf("the query is %q", d.Query)
	}
}

// expectNowhere fails if a text is in an entry.
func expectNowhere(t *testing.T, admin *servertest.Client, secret string) {
	t.Helper()
	all := listed(t, admin, "limit=100")
	for _, r := range all.Data {
		answer := admin.Do("GET", fmt.Sprintf("/v1/requests/%d", r.Seq), nil).Expect(t, 200)
		if strings.Contains(strings.ToLower(answer.Body), secret) {
			t.Errorf("%s %s shows %s: %s", r.Method, r.Path, secret, answer.Body)
		}
	}
}

func TestRequests_KeepBodiesInASandbox(t *testing.T) {
	s := servertest.StartSandbox(t, false)
	admin := s.Admin()
	id := admin.Create("/v1/customers", map[string]any{"first_name": "Anna", "last_name": "Keller", "email": "anna@example.ch", "metadata": map[string]any{"api_token": "geheimnis", "deep": []any{map[string]any{"Password": "geheimnis"}}}})
	admin.Do("GET", "/v1/customers?search.last_name=Keller", nil).Expect(t, 200)
	d := detail(t, admin, "search.endpoint=POST%20/v1/customers")
	if !strings.Contains(d.RequestBody, `"last_name":"Keller"`) || !strings.Contains(d.RequestBody, `"api_token":"***"`) || !strings.Contains(d.ResponseBody, id) || !strings.Contains(d.Curl, "--data '{") || !strings.Contains(d.Curl, "$KONTOR_TOKEN") {
		t.Errorf("got %s, %s, %s", d.RequestBody, d.ResponseBody, d.Curl)
	}
	if d := detail(t, admin, "search.endpoint=GET%20/v1/customers"); !strings.Contains(d.Curl, "search.last_name=Keller") {
		t.Errorf("got %s", d.Curl)
	}
	// Endpoints that take or return secrets keep no bodies.
	s.Anonymous().Do("POST", "/authenticate", map[string]any{"user_id": "geheimnis", "password": "geheimnis"}).Expect(t, 401)
	admin.Do("POST", "/v1/users/reauthenticate", map[string]any{"password": "geheimnis"})
	admin.Do("POST", "/v1/auth/api-keys", map[string]any{"name": "geheimnis"})
	admin.Do("POST", "/v1/webhooks", map[string]any{"url": "https://geheimnis.example/geheimnis"})
	expectNowhere(t, admin, "geheimnis")
	for _, r := range listed(t, admin, "limit=100&search.path=*auth*").Data {
		if d := detail(t, admin, fmt.Sprintf("search.seq=%d", r.Seq)); d.RequestBody != "" || d.ResponseBody != "" {
			t.Errorf("%s has a body: %+v", r.Path, d)
		}
	}
	// An erasure drops what is kept of all people.
	admin.Erase("/v1/customers/" + id)
	expectNowhere(t, admin, "keller")
}

// Long and hostile paths are cut, and the command has no control characters.
func TestRequests_BoundHostilePaths(t *testing.T) {
	s := servertest.Start(t, keep(10))
	admin := s.Admin()
	servertest.Send(t, s.Address, "GET", "/v1/"+strings.Repeat("%1b%5B31mx", 800), "")
	d := detail(t, admin, "search.status=404")
	if len(d.Path) > 520 || strings.ContainsRune(d.Curl, 0x1b) {
		t.Errorf("the path has %d bytes, the command is %q", len(d.Path), d.Curl)
	}
}

// The address of an avatar opens it without a token, and clients put all kinds of values into paths and the names of parameters.
func TestRequests_KeepNoValuesOfPaths(t *testing.T) {
	s := servertest.Start(t, keep(50))
	admin := s.Admin()
	id := admin.Create("/v1/customers", map[string]any{"first_name": "Anna", "last_name": "Keller", "email": "anna@example.ch"})
	const token = "QWERTZUIOPASDFGHJKLYXCVBNM"
	for sent, want := range map[string][2]string{
		"/v1/avatars/" + token + ".jpg":                    {"/v1/avatars/{file}", ""},
		"/v1/avatars/" + token:                             {"/v1/avatars/{file}", ""},
		"/v1/avatar/" + token + ".jpg":                     {"/v1/avatar/…", ""},
		"/v1/customers/anna@example.ch":                    {"/v1/customers/{id}", ""},
		"/v1/customers/anna%40example.ch/tasks":            {"/v1/customers/{customer_id}/tasks", ""},
		"/v1/customer/Anna%20Keller":                       {"/v1/customer/…", ""},
		"/v1/customers/" + id:                              {"/v1/customers/" + id, ""},
		"/v1/customers?anna@example.ch=1&" + token + "=2":  {"/v1/customers", "…&…"},
		"/v1/customers?search.anna%20keller=1&search.id=1": {"/v1/customers", "search.…&search.id"},
	} {
		answer := admin.Do("GET", sent, nil)
		d := detail(t, admin, "search.request_id="+answer.Header.Get("X-Request-ID"))
		if d.Path != want[0] || d.Query != want[1] {
			t.Errorf("%s is kept as %q with %q, want %q", sent, d.Path, d.Query, want)
		}
	}
	expectNowhere(t, admin, strings.ToLower(token))
}

func TestRequests_AreStreamed(t *testing.T) {
	s := servertest.Start(t, keep(50))
	admin, other := s.Admin(), s.User(access.Customer)
	ctx, end := context.WithTimeout(t.Context(), testenv.Limit()) // heartbeats come as long as the stream is open
	defer end()
	lines := follow(ctx, t, s, admin, "search.class=4xx")
	admin.Do("GET", "/v1/customers", nil).Expect(t, 200)
	other.Do("GET", "/v1/audit", nil).Expect(t, 403)
	for line := range lines {
		if strings.HasPrefix(line, "data: ") && strings.Contains(line, `"path"`) {
			if !strings.Contains(line, "/v1/audit") {
				t.Errorf("got %s", line)
			}
			break
		}
	}
	admin.Do("POST", "/v1/logout", nil).Expect(t, 200)
	for range lines {
	}
	if ctx.Err() != nil {
		t.Error("the stream did not end with the session, or had no frame about the request")
	}
}

// follow opens a stream, and returns its lines after the first frame until it or the context ends.
func follow(ctx context.Context, t *testing.T, s *servertest.Server, c *servertest.Client, query string) (lines <-chan string) {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, "GET", "http://"+s.Address+"/v1/requests?"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+c.Token)
	request.Header.Set("Accept", "text/event-stream")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("status %d", answer.StatusCode)
	}
	reader := bufio.NewReader(answer.Body)
	for text := ""; text != "\n"; {
		if text, err = reader.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	out := make(chan string, 1000)
	go func() {
		defer close(out)
		defer answer.Body.Close()
		for {
			text, err := reader.ReadString('\n')
			if err != nil {
				return
			}
			out <- text
		}
	}()
	return out
}
