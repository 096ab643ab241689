package hostile_test

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"kontor/modules/commands/systemtest"
	"kontor/store"
	"kontor/store/testenv"
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

// manyCustomersDir returns a data directory with many customers, and the id of one.
func manyCustomersDir(t *testing.T) (dir, customerID string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "data")
	p := systemtest.Start(t, dir)
	name := strings.Repeat("a", 100)
	customerID = p.Admin().Create(t, "/v1/customers", fmt.Sprintf(`{"type":"individual","first_name":%q,"last_name":%q,"email":"a@example.ch"}`, name, name))
	if code := p.Stop(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	create := systemtest.Command(t, nil, "user", "create", otherUser, "--role=Administrator", "--data.dir", dir)
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
	return dir, customerID
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
	dir, customerID := manyCustomersDir(t)
	p := systemtest.Start(t, dir)
	admin := p.Admin()
	tooMany := func(name, path string, query url.Values, field string) systemtest.Attack {
		return systemtest.Attack{Name: name, By: admin, Method: "GET", Path: path + "?" + query.Encode(), Status: 400, Code: "common.invalid_input",
			Contains: []string{fmt.Sprintf("%q:", "search."+field)}}
	}
	attacks := []systemtest.Attack{
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
		systemtest.Attack{Name: "asterisks only are one pattern", By: admin, Method: "GET", Path: "/v1/customers?limit=1&search.email=" + strings.Repeat("*", 500), Status: 200},
		systemtest.Attack{Name: "a hundred ids are not patterns", By: admin, Method: "GET", Status: 200, Contains: []string{customerID},
			Path: "/v1/customers?search.id=" + strings.Join(append(values(99, "0193a000-0000-7000-8000-%012d"), customerID), ",")},
	)
	systemtest.RunAttacks(t, attacks)
	if code := p.Stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}

	p = systemtest.Start(t, dir, "--server.request_seconds=1")
	admin = p.Client(admin.Headers...)
	attacks = nil
	for name, more := range map[string]string{"slow": "", "slow for totals only": "&limit=-1",
		"slow and stacked": "&stack=kyc_status", "slow and distinct": "&distinct=country"} {
		attacks = append(attacks, systemtest.Attack{Name: "a search that is " + name, By: admin.With("Accept-Language", "de"), Method: "GET",
			Path: "/v1/customers?" + slowSearch.Encode() + more, Status: 503, Code: "common.deadline_exceeded",
			Contains: []string{`"class":"temporary"`, `"retryable":true`, "dauerte zu lange"}})
	}
	systemtest.RunAttacks(t, attacks)

	got, err := admin.Try("GET", "/v1/customers?"+slowSearch.Encode(), "")
	if err != nil || got.Header.Get("Retry-After") == "" {
		t.Errorf("got Retry-After %q, %v", got.Header.Get("Retry-After"), err)
	}
	for line := range strings.Lines(p.Stderr.String()) {
		if strings.Contains(line, `"level":"ERROR"`) && strings.Contains(line, `"request_id"`) { // others are those of jobs on a busy machine
			t.Errorf("a slow search fills the log: %.500s", line)
		}
	}
}

// While one caller runs many slow searches, other callers can read, write and sign in. All readers work afterwards.
func TestHostile_SlowSearchesDoNotBlockOthers(t *testing.T) {
	dir, customerID := manyCustomersDir(t)
	p := systemtest.Start(t, dir)
	greedy, other := p.Admin().Headers, p.SignIn(otherUser, otherPassword).Headers
	if code := p.Stop(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	p = systemtest.Start(t, dir, "--server.request_seconds=5")
	reader := p.Client(other...)
	ctx, cancel := context.WithCancel(t.Context())
	var searching sync.WaitGroup
	var begun sync.WaitGroup
	for range 12 {
		begun.Add(1)
		one := p.Client(greedy...)
		searching.Go(func() {
			begin := sync.OnceFunc(begun.Done)
			for ctx.Err() == nil {
				if got, err := one.Try("GET", "/v1/customers?"+slowSearch.Encode(), ""); err != nil || got.Status != 503 && got.Status != 200 { // 200 within the time of a request
					t.Errorf("a slow search got %d %.200s, %v", got.Status, got.Body, err)
				}
				begin()
			}
		})
	}
	begun.Wait()
	// On a busy machine a request may reach its deadline; the next ones are answered.
	for _, tc := range []struct {
		by           *systemtest.Client
		method, path string
		body         string
		status       int
	}{
		{reader, "GET", "/v1/customers/" + customerID, "", 200},
		{reader, "GET", "/v1/users?limit=1", "", 200},
		{reader.With("Idempotency-Key", "one"), "POST", "/v1/customers", `{"type":"individual","first_name":"B","last_name":"B","email":"b@example.ch"}`, 201},
		{p.Client(), "POST", "/authenticate", fmt.Sprintf(`{"user_id":%q,"password":%q}`, otherUser, otherPassword), 200},
		{p.Client(), "GET", "/readyz", "", 200},
	} {
		testenv.Wait(t, tc.method+" "+tc.path, func() bool {
			got, err := tc.by.Try(tc.method, tc.path, tc.body)
			if err != nil || got.Status != tc.status && got.Status != 503 {
				t.Fatalf("%s %s: got %d %.200s, %v", tc.method, tc.path, got.Status, got.Body, err)
			}
			return got.Status == tc.status
		})
	}
	metrics := p.Scraper().Do(t, "GET", "/metrics", "", 200).Body
	for _, want := range []string{"kontor_store_stalled 0", "kontor_store_readers_waiting ", "kontor_store_last_progress_seconds "} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the metrics lack %q", want)
		}
	}
	cancel()
	searching.Wait()
	for i := range 8 { // uses each of the readers
		testenv.Wait(t, "a reader to find the new customer", func() bool {
			got, err := reader.Try("GET", fmt.Sprintf("/v1/customers?limit=1&search.last_name=b&offset=%d", i), "")
			if err != nil || got.Status != 200 && got.Status != 503 {
				t.Fatalf("got %d %.200s, %v", got.Status, got.Body, err)
			}
			if got.Status == 200 && !strings.Contains(got.Body, `"total":1,`) {
				t.Fatalf("got %s, want one new customer", got.Body)
			}
			return got.Status == 200
		})
	}
}
