package customers_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/server/servertest"
	"kontor/store/storetest"
)

// version returns the version that the ETag of an answer names.
func version(t *testing.T, r servertest.Response) int64 {
	t.Helper()
	n, err := strconv.ParseInt(strings.Trim(r.Header.Get("ETag"), `"v`), 10, 64)
	if err != nil {
		t.Errorf("ETag %q", r.Header.Get("ETag"))
	}
	return n
}

// Readers never get a customer that is older than the last acknowledged change, alone or in a list, while it changes all the time.
func TestGet_NeverOlderThanAnAcknowledgedChange(t *testing.T) {
	s := servertest.Start(t)
	advisor := s.User(access.Advisor)
	const customers, rounds = 2, 25
	var ids [customers]string
	for i := range ids {
		ids[i] = newCustomer(advisor)
	}
	var acknowledged [customers]atomic.Int64
	var writing, reading sync.WaitGroup
	var ended atomic.Bool
	for i, id := range ids {
		writing.Go(func() {
			for n := range rounds {
				r, err := advisor.Try("PUT", "/v1/customers/"+id, servertest.Body{"last_name": fmt.Sprint("Muster ", n)})
				if err != nil || r.Status != http.StatusOK {
					t.Errorf("update: %d, %v", r.Status, err)
					return
				}
				acknowledged[i].Store(version(t, r))
			}
		})
		reading.Go(func() {
			for !ended.Load() {
				least := acknowledged[i].Load()
				r, err := advisor.Try("GET", "/v1/customers/"+id, nil)
				if err != nil || r.Status != http.StatusOK || version(t, r) < least {
					t.Errorf("got %d with %s, %v after v%d was acknowledged", r.Status, r.Header.Get("ETag"), err, least)
					return
				}
				if n := version(t, r) - 2; n >= 0 && !strings.Contains(r.Body, fmt.Sprintf(`"Muster %d"`, n)) {
					t.Errorf("version %d is %s", n+2, r.Body)
				}
				shown := acknowledged[i].Load() - 2
				list, err := advisor.Try("GET", "/v1/customers?search.id="+id, nil)
				if err != nil || list.Status != http.StatusOK {
					t.Errorf("list: %d, %v", list.Status, err)
					return
				}
				_, name, _ := strings.Cut(list.Body, `"last_name":"Muster`)
				name, _, _ = strings.Cut(name, `"`)
				if n, err := strconv.ParseInt(strings.TrimSpace(name), 10, 64); shown >= 0 && (err != nil || n < shown) {
					t.Errorf("the list shows %q after %d was acknowledged", name, shown)
				}
			}
		})
	}
	writing.Wait()
	ended.Store(true)
	reading.Wait()
}

// A known answer is no right: grants and sessions are checked for each request.
func TestGet_OfAKnownCustomerStillNeedsTheRight(t *testing.T) {
	s := servertest.Start(t)
	admin, advisor, owner, other := s.Admin(), s.User(access.Advisor), s.User(access.Customer), s.User(access.Customer)
	id := newCustomer(owner)
	path := "/v1/customers/" + id
	reader := s.User(access.Customer)
	grant := admin.Create("/v1/rbac/grants", servertest.Body{"user_id": reader.UserID, "rec_type": "customers", "permissions": []string{"read"}})
	for range 2 {
		for _, c := range []*servertest.Client{advisor, admin, owner, reader} {
			c.Do("GET", path, nil).Expect(t, http.StatusOK)
		}
		other.Do("GET", path, nil).ExpectError(t, http.StatusForbidden, "common.rbac_no_rec_access")
	}
	admin.Do("DELETE", "/v1/rbac/grants/"+grant, nil).Expect(t, http.StatusOK)
	reader.Do("GET", path, nil).ExpectError(t, http.StatusForbidden, "common.rbac_no_rec_access")
	if list := reader.Do("GET", "/v1/customers", nil).Expect(t, http.StatusOK); strings.Contains(list.Body, id) {
		t.Error("the list shows a customer whom the caller may not read any more")
	}
	advisor.Do("POST", "/v1/logout", nil).Expect(t, http.StatusOK)
	advisor.Do("GET", path, nil).ExpectError(t, http.StatusUnauthorized, "common.unauthorized")
	s.Anonymous().Do("GET", path, nil).ExpectError(t, http.StatusUnauthorized, "common.unauthorized")
	admin.Do("GET", path, nil).Expect(t, http.StatusOK)
	for _, wrong := range []string{strings.ToUpper(id), id[:35] + "x"} {
		r := admin.Do("GET", "/v1/customers/"+wrong, nil)
		if want := map[bool]int{true: http.StatusOK, false: http.StatusBadRequest}[strings.EqualFold(wrong, id)]; r.Status != want {
			t.Errorf("%s: %d, want %d", wrong, r.Status, want)
		}
	}
}

// A change outside the module, such as an erasure, is shown at once and leaves nothing in memory.
func TestGet_ShowsNothingOfAnErasedCustomer(t *testing.T) {
	s := servertest.Start(t)
	admin := s.Admin()
	id := admin.Create("/v1/customers", servertest.Body{"first_name": "Zwetschgenmus", "last_name": "Muster", "email": "ada@example.ch"})
	path := "/v1/customers/" + id
	for range 2 {
		if r := admin.Do("GET", path, nil).Expect(t, http.StatusOK); !strings.Contains(r.Body, "Zwetschgenmus") {
			t.Fatal(r.Body)
		}
		admin.Do("GET", "/v1/customers", nil).Expect(t, http.StatusOK)
	}
	if !s.Customers.KnowsForTest(id) && !storetest.OnPostgreSQL() {
		t.Error("the customer is not in memory")
	}
	if err := s.Customers.EraseForTest(context.Background(), id); err != nil {
		t.Fatal(err)
	}
	if s.Customers.KnowsForTest(id) {
		t.Error("the erased customer is in memory")
	}
	for _, address := range []string{path, "/v1/customers"} {
		if r := admin.Do("GET", address, nil).Expect(t, http.StatusOK); strings.Contains(r.Body, "Zwetschgenmus") || !strings.Contains(r.Body, "erased_at") {
			t.Errorf("%s shows %s", address, r.Body)
		}
	}
	admin.With("If-None-Match", `"v1"`).Do("GET", path, nil).Expect(t, http.StatusOK)
}

// Answers that are made of known rows are the same, byte for byte, as those that are encoded as a whole.
func TestEncodedAnswers_AreTheSame(t *testing.T) {
	s := servertest.Start(t)
	admin := s.Admin()
	for i := range 13 {
		admin.Create("/v1/customers", servertest.Body{"first_name": fmt.Sprint("Zoë <", i, ">"), "last_name": "Müller", "email": "ada@example.ch",
			"metadata": servertest.Body{"b": []int{i}, "a": "\u2028"}, "address": servertest.Body{"city": "Zürich", "country": "CH"}})
	}
	next := func(offset int) string {
		return admin.Do("GET", fmt.Sprint("/v1/customers?limit=4&offset=", offset), nil).JSON(t)["next_cursor"].(string)
	}
	ctx := access.With(context.Background(), (&access.Caller{UserID: admin.UserID, Roles: []string{access.Administrator}}).WithPolicy(s.Policy.Load()))
	for _, query := range []string{"", "limit=1", "limit=0", "limit=5&offset=10", "limit=5&offset=40", "sort=last_name,-id", "search.first_name=nobody",
		"stack=kyc_status", "distinct=kyc_status", "q=zoë", "sort=-created_at&limit=13", "limit=5&cursor=" + next(0), "limit=5&cursor=" + next(8)} {
		in := s.Customers.ListInputForTest(t, query)
		page, err := s.Customers.List(ctx, in)
		if err != nil {
			t.Fatal(query, err)
		}
		want, err := endpoint.Encode(page)
		if err != nil {
			t.Fatal(err)
		}
		for range 4 { // the rows are read, known, and at last read by their keys
			got := admin.Do("GET", "/v1/customers?"+query, nil).Expect(t, http.StatusOK)
			if !bytes.Equal([]byte(got.Body), want.JSON) {
				t.Errorf("%q: got\n%s\nwant\n%s", query, got.Body, want.JSON)
			}
		}
		for _, row := range page.Data.Rows {
			want, err := endpoint.Encode(row)
			if err != nil {
				t.Fatal(err)
			}
			got := admin.Do("GET", "/v1/customers/"+row.ID, nil).Expect(t, http.StatusOK)
			if got.Body != string(want.JSON) || got.Header.Get("ETag") != `"`+want.Tag+`"` || got.Header.Get("Content-Type") != "application/json" {
				t.Errorf("got %s with %v, want %s", got.Body, got.Header, want.JSON)
			}
			admin.With("If-None-Match", `W/"v0", "v1"`).Do("GET", "/v1/customers/"+row.ID, nil).Expect(t, http.StatusNotModified)
		}
	}
}

// A page has as many rows as its limit, however heavy they are, whether they are known or not.
func TestList_LongPagesOfKnownRowsAreWhole(t *testing.T) {
	s := servertest.Start(t)
	admin := s.Admin()
	long := strings.Repeat("x", 14_000)
	for range 80 {
		admin.Create("/v1/customers", servertest.Body{"last_name": "Muster", "first_name": "Ada", "email": "ada@example.ch", "metadata": servertest.Body{"a": long}})
	}
	first := admin.Do("GET", "/v1/customers?limit=80", nil).Expect(t, http.StatusOK)
	if rows := first.JSON(t)["data"].([]any); len(rows) != 80 || !strings.Contains(first.Body, `"has_more":false`) {
		t.Fatalf("%d rows, %d bytes", len(rows), len(first.Body))
	}
	for range 3 {
		if again := admin.Do("GET", "/v1/customers?limit=80", nil).Expect(t, http.StatusOK); again.Body != first.Body {
			t.Errorf("%d bytes after %d", len(again.Body), len(first.Body))
		}
	}
}

// A page is of one state: its rows meet its search, although the answers with them are known from another time.
func TestList_ShowsOnlyRowsThatMeetItsSearchWhileTheyChange(t *testing.T) {
	s := servertest.Start(t)
	advisor := s.User(access.Advisor)
	const customers, rounds = 3, 30
	var ids [customers]string
	for i := range ids {
		ids[i] = newCustomer(advisor)
	}
	var writing, reading sync.WaitGroup
	var ended atomic.Bool
	for _, id := range ids {
		writing.Go(func() {
			for n := range rounds {
				r, err := advisor.Try("PUT", "/v1/customers/"+id, servertest.Body{"last_name": []string{"Odd", "Even"}[n%2]})
				if err != nil || r.Status != http.StatusOK {
					t.Errorf("update: %d, %v", r.Status, err)
				}
			}
		})
	}
	for _, name := range []string{"Odd", "Even"} {
		reading.Go(func() {
			for !ended.Load() {
				r, err := advisor.Try("GET", "/v1/customers?search.last_name="+name, nil)
				if err != nil || r.Status != http.StatusOK {
					t.Errorf("list: %d, %v", r.Status, err)
					return
				}
				for _, id := range ids {
					r, err := advisor.Try("GET", "/v1/customers/"+id, nil) // the next page may be made of these answers
					if err != nil || r.Status != http.StatusOK {
						t.Errorf("get: %d, %v", r.Status, err)
						return
					}
				}
				if shown := strings.Count(r.Body, `"last_name":"`); shown != strings.Count(r.Body, `"last_name":"`+name+`"`) {
					t.Errorf("a search for %s shows %s", name, r.Body)
				}
			}
		})
	}
	writing.Wait()
	ended.Store(true)
	reading.Wait()
}
