package main

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"kontor/store"
)

// manyCustomers copies the only customer. A search for many patterns then takes much longer than the deadline of the tests,
// because each pattern is compared at each letter of the long names.
const manyCustomers = `
	INSERT INTO customers (id, type, first_name, first_name_key, last_name, last_name_key, email, email_key, phone, date_of_birth,
		nationality, has_address, street, city, city_key, postal_code, country, kyc_status, verification_level, verified_at,
		metadata, language, created_at, created_by, updated_at, updated_by, version)
	WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 8000)
	SELECT substr(id, 1, 28) || substr('00000000' || i, -8), type, first_name, first_name_key, last_name, last_name_key, email, email_key, phone,
		date_of_birth, nationality, has_address, street, city, city_key, postal_code, country, kyc_status, verification_level, verified_at,
		metadata, language, created_at + i, created_by, updated_at, updated_by, version
	FROM customers, n`

const (
	otherUser     = "other@example.ch"
	otherPassword = "a long enough pass phrase"
)

// startWithManyCustomers starts a server with many customers and a deadline of one second.
func startWithManyCustomers(t *testing.T) (p *process, customerID string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	p = start(t, dir)
	name := strings.Repeat("a", 100)
	customerID = p.admin().create(t, "/v1/customers", fmt.Sprintf(`{"type":"individual","first_name":%q,"last_name":%q,"email":"a@example.ch"}`, name, name))
	if code := p.stop(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	create := command(t, nil, "user", "create", otherUser, "--role=Administrator", "--data.dir", dir)
	create.Stdin = strings.NewReader(otherPassword + "\n")
	if out, err := create.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	ctx := context.Background()
	db, err := store.Open(ctx, store.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	err = db.InTx(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec(ctx, manyCustomers)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return start(t, dir, "--server.request_seconds=1"), customerID
}

// values returns n values of a search with a format.
func values(n int, format string) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(format, i)
	}
	return all
}

// slowSearch has the maximum number of patterns. None of them matches.
var slowSearch = url.Values{"search.first_name": values(20, "*"+strings.Repeat("a", 90)+"b%d*"), "limit": {"1"}}

func TestHostile_PatternsAndSlowSearches(t *testing.T) {
	p, customerID := startWithManyCustomers(t)
	admin := p.admin()
	tooMany := func(name, path string, query url.Values, field string) attack {
		return attack{name: name, by: admin, method: "GET", path: path + "?" + query.Encode(), status: 400, code: "common.invalid_input",
			contains: []string{fmt.Sprintf("%q:", "search."+field)}}
	}
	attacks := []attack{
		tooMany("21 patterns in one parameter", "/v1/customers", url.Values{"search.email": {strings.Join(values(21, "*x%d*"), ",")}}, "email"),
		tooMany("21 repeated parameters", "/v1/customers", url.Values{"search.email": values(21, "*x%d*")}, "email"),
		tooMany("21 patterns over fields", "/v1/customers", url.Values{"search.email": values(10, "*x%d"), "search.last_name": values(11, "x%d*")}, "last_name"),
		tooMany("21 texts in one pattern", "/v1/customers", url.Values{"search.email": {strings.Repeat("*x", 21)}}, "email"),
		tooMany("300 patterns", "/v1/customers", url.Values{"search.email": {strings.Repeat("*a,", 300)}}, "email"),
		tooMany("patterns in an unknown field", "/v1/customers", url.Values{"search.nothing": values(21, "*%d")}, "nothing"),
		tooMany("patterns for totals only", "/v1/customers", url.Values{"search.email": values(21, "*x%d*"), "limit": {"-1"}}, "email"),
	}
	for _, path := range []string{"/v1/users", "/v1/audit", "/v1/personas", "/v1/notifications/deliveries", "/v1/rbac/roles"} {
		attacks = append(attacks, tooMany("21 patterns at "+path, path, url.Values{"search.id": values(21, "*%d")}, "id"))
	}
	attacks = append(attacks,
		attack{name: "asterisks only are one pattern", by: admin, method: "GET", path: "/v1/customers?limit=1&search.email=" + strings.Repeat("*", 500), status: 200},
		attack{name: "a hundred ids are not patterns", by: admin, method: "GET", status: 200, contains: []string{customerID},
			path: "/v1/customers?search.id=" + strings.Join(append(values(99, "0193a000-0000-7000-8000-%012d"), customerID), ",")},
	)
	for name, more := range map[string]string{"slow": "", "slow for totals only": "&limit=-1",
		"slow and stacked": "&stack=kyc_status", "slow and distinct": "&distinct=country"} {
		attacks = append(attacks, attack{name: "a search that is " + name, by: admin.with("Accept-Language", "de"), method: "GET",
			path: "/v1/customers?" + slowSearch.Encode() + more, status: 503, code: "common.deadline_exceeded",
			contains: []string{`"class":"temporary"`, `"retryable":true`, "dauerte zu lange"}})
	}
	runAttacks(t, attacks)

	got, err := admin.try("GET", "/v1/customers?"+slowSearch.Encode(), "")
	if err != nil || got.header.Get("Retry-After") == "" {
		t.Errorf("got Retry-After %q, %v", got.header.Get("Retry-After"), err)
	}
	if strings.Contains(p.stderr.String(), "level=ERROR") {
		t.Errorf("slow searches fill the log: %.500s", p.stderr)
	}
}

// While one caller runs many slow searches, other callers can read, write and sign in. All readers work afterwards.
func TestHostile_SlowSearchesDoNotBlockOthers(t *testing.T) {
	p, customerID := startWithManyCustomers(t)
	greedy, other := p.admin(), p.signIn(otherUser, otherPassword)
	ctx, cancel := context.WithCancel(t.Context())
	var searching sync.WaitGroup
	var begun sync.WaitGroup
	for range 12 {
		begun.Add(1)
		one := p.client(greedy.headers...)
		searching.Go(func() {
			begin := sync.OnceFunc(begun.Done)
			for ctx.Err() == nil {
				if got, err := one.try("GET", "/v1/customers?"+slowSearch.Encode(), ""); err != nil || got.status != 503 {
					t.Errorf("a slow search got %d %.200s, %v", got.status, got.body, err)
				}
				begin()
			}
		})
	}
	begun.Wait()
	runAttacks(t, []attack{
		{name: "reading", by: other, method: "GET", path: "/v1/customers/" + customerID, status: 200},
		{name: "listing users", by: other, method: "GET", path: "/v1/users?limit=1", status: 200},
		{name: "writing", by: other, method: "POST", path: "/v1/customers", body: `{"type":"individual","first_name":"B","last_name":"B","email":"b@example.ch"}`, status: 201},
		{name: "signing in", by: p.client(), method: "POST", path: "/authenticate",
			body: fmt.Sprintf(`{"user_id":%q,"password":%q}`, otherUser, otherPassword), status: 200},
		{name: "readiness", by: p.client(), method: "GET", path: "/readyz", status: 200},
		{name: "metrics", by: p.scraper(), method: "GET", path: "/metrics", status: 200,
			contains: []string{"kontor_store_stalled 0", "kontor_store_readers_waiting ", "kontor_store_last_progress_seconds "}},
	})
	cancel()
	searching.Wait()
	for i := range 8 { // uses each of the readers
		if n := other.total(t, fmt.Sprintf("/v1/customers?limit=1&search.last_name=b&offset=%d", i)); n != 1 {
			t.Errorf("a reader sees %d new customers, want 1", n)
		}
	}
}
