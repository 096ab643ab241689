package imports_test

import (
	"context"
	"encoding/csv"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"kontor/modules/bank/imports"
	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/server/settings"
	"kontor/store"
	"kontor/store/testenv"
)

const path = "/v1/customers/import"

// send sends a file and returns the answer.
func send(c *servertest.Client, query, file string) servertest.Response {
	return c.With("Content-Type", "text/csv").Do("POST", path+query, file)
}

// run imports a file and returns how it ended.
func run(t testing.TB, s *servertest.Server, c *servertest.Client, query, file string) imports.Import {
	t.Helper()
	var i imports.Import
	send(c, query, file).Expect(t, http.StatusAccepted).Into(t, &i)
	if i.State != "queued" || i.Done != 0 {
		t.Errorf("a new import is %+v", i)
	}
	work(t, s)
	return get(t, c, i.ID)
}

func work(t testing.TB, s *servertest.Server) {
	t.Helper()
	testenv.Wait(t, "the node to lead", s.DB.Leads) // another one would import
	if err := s.Imports.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func get(t testing.TB, c *servertest.Client, id string) imports.Import {
	t.Helper()
	var i imports.Import
	c.Do("GET", "/v1/imports/"+id, nil).Expect(t, http.StatusOK).Into(t, &i)
	return i
}

// counts returns the numbers of an import.
func counts(i imports.Import) string {
	text := fmt.Sprintf("%s %d/%d created %d updated %d duplicates %d rejected %d", i.State, i.Done, i.Rows, i.Created, i.Updated, i.Duplicates, i.Rejected)
	if i.Failure != nil {
		text += " " + i.Failure.Code
	}
	return text
}

func expect(t testing.TB, i imports.Import, want string) {
	t.Helper()
	if got := counts(i); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// rejected returns the reasons of the rejected rows.
func rejected(t testing.TB, c *servertest.Client, id string) [][]string {
	t.Helper()
	answer := c.Do("GET", "/v1/imports/"+id+"/rejected", nil).Expect(t, http.StatusOK)
	rows, err := csv.NewReader(strings.NewReader(answer.Body)).ReadAll()
	if err != nil || !slices.Equal(rows[0], []string{"line", "field", "message", "record_id"}) {
		t.Fatalf("%v in %s", err, answer.Body)
	}
	return rows[1:]
}

// total returns the number of customers that a caller may read.
func total(t testing.TB, c *servertest.Client) int {
	t.Helper()
	return int(c.Do("GET", "/v1/customers?limit=-1", nil).Expect(t, http.StatusOK).JSON(t)["total"].(float64))
}

// branch returns a user who may import customers for the bank, and lists their own only.
func branch(t testing.TB, s *servertest.Server) *servertest.Client {
	t.Helper()
	c := s.User(access.Customer)
	for _, endpoint := range []string{"POST " + path, "GET /v1/imports", "GET /v1/imports/{id}", "GET /v1/imports/{id}/rejected"} {
		s.Admin().Create("/v1/rbac/grants", map[string]any{"user_id": c.UserID, "endpoint": endpoint})
	}
	s.Admin().Create("/v1/rbac/grants", map[string]any{"user_id": c.UserID, "rec_type": "customers", "permissions": []string{"update"}})
	return c
}

// file returns a file with n customers, each with an external id.
func file(from, n int) string {
	var b strings.Builder
	b.WriteString("external_id,first_name,last_name,email\n")
	for i := from; i < from+n; i++ {
		fmt.Fprintf(&b, "K-%d,Anna,Keller %d,anna%d@example.ch\n", i, i, i)
	}
	return b.String()
}

func TestImport_CreatesCustomersAsRequestsDo(t *testing.T) {
	s := servertest.Start(t)
	advisor := s.User(access.Advisor)
	table := "\ufefftype;first_name;last_name;email;phone;date_of_birth;nationality;address.street;address.city;address.postal_code;address.country;metadata;external_id;kyc_status;id\r\n" +
		"individual;Anna;Keller;anna@example.ch;'+41446681800;1990-04-12;CHE;Weg 1;\"Zürich; \"\"Enge\"\"\";8002;CH;\"{\"\"language\"\":\"\"de\"\"}\";K-1;verified;x\r\n" +
		"business;;'=Muster AG;info@example.ch;;;;;;;;;;;\r\n" +
		"individual;;Keller;wrong;;31.12.1990;;;;;;{;;;\r\n" +
		"individual;a\r\n"
	i := run(t, s, advisor, "", table)
	expect(t, i, "done 4/4 created 2 updated 0 duplicates 0 rejected 2")
	if i.FinishedAt == nil || i.StartedAt == nil || i.CreatedBy != advisor.UserID || i.Size != int64(len(table)) || len(i.SHA256) != 64 {
		t.Errorf("got %+v", i)
	}
	var page struct{ Data []map[string]any }
	advisor.Do("GET", "/v1/customers?sort=created_at,-last_name", nil).Expect(t, http.StatusOK).Into(t, &page)
	anna, muster := page.Data[0], page.Data[1]
	if anna["first_name"] != "Anna" {
		anna, muster = muster, anna
	}
	for member, want := range map[string]any{"type": "individual", "last_name": "Keller", "email": "anna@example.ch", "phone": "+41446681800", "date_of_birth": "1990-04-12",
		"nationality": "CHE", "kyc_status": "not_started", "verification_level": "none"} {
		if anna[member] != want {
			t.Errorf("%s is %v, want %v", member, anna[member], want)
		}
	}
	if got := fmt.Sprint(anna["address"], anna["metadata"], anna["id"] == "x"); got != `map[city:Zürich; "Enge" country:CH postal_code:8002 street:Weg 1] map[external_id:K-1 language:de] false` {
		t.Errorf("got %s", got)
	}
	if muster["last_name"] != "=Muster AG" || muster["address"] != nil || muster["type"] != "business" {
		t.Errorf("got %v", muster)
	}
	got := fmt.Sprint(rejected(t, advisor, i.ID))
	for _, want := range []string{"[4 first_name ", "[4 email ", "[4 date_of_birth ", "[4 metadata ", "[5  The row has 2 cells, but the header 15. ]"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s does not contain %q", got, want)
		}
	}
	german := fmt.Sprint(rejected(t, advisor.With("Accept-Language", "de"), i.ID))
	if !strings.Contains(german, "Der Datensatz hat 2 Zellen, die Kopfzeile aber 15.") {
		t.Errorf("in German: %s", german)
	}
	// One audit entry for each creation, by the caller.
	trail := s.Admin().Do("GET", "/v1/audit?search.action=customers.create&search.actor="+advisor.UserID, nil).Expect(t, http.StatusOK).JSON(t)
	if trail["total"] != 2.0 {
		t.Errorf("the audit trail has %v creations, want 2", trail["total"])
	}
}

func TestImport_OfTheSameFileCreatesNothingTwice(t *testing.T) {
	s := servertest.Start(t)
	advisor := s.User(access.Advisor)
	table := "first_name,last_name,email\nAnna,Keller,anna@example.ch\nBeat,Meier,beat@example.ch\n" // without external ids
	expect(t, run(t, s, advisor, "", table), "done 2/2 created 2 updated 0 duplicates 0 rejected 0")
	expect(t, run(t, s, advisor, "", table), "done 2/2 created 0 updated 0 duplicates 2 rejected 0")
	expect(t, run(t, s, advisor, "?on_duplicate=reject", table), "done 2/2 created 0 updated 0 duplicates 0 rejected 2")
	expect(t, run(t, s, advisor, "?on_duplicate=update", table), "done 2/2 created 0 updated 2 duplicates 0 rejected 0")
	if n := total(t, advisor); n != 2 {
		t.Errorf("there are %d customers, want 2", n)
	}
	// The same file of another caller, and another file, are other rows.
	other := s.User(access.Advisor)
	expect(t, run(t, s, other, "", table), "done 2/2 created 2 updated 0 duplicates 0 rejected 0")
	expect(t, run(t, s, advisor, "", table+"Carla,Rossi,carla@example.ch\n"), "done 3/3 created 3 updated 0 duplicates 0 rejected 0")
}

func TestImport_FindsDuplicatesByExternalID(t *testing.T) {
	s := servertest.Start(t)
	advisor, other := branch(t, s), s.User(access.Customer)
	id := advisor.Create("/v1/customers", map[string]any{"first_name": "Anna", "last_name": "Keller", "email": "anna@example.ch", "phone": "0446681800",
		"metadata": map[string]any{"external_id": "K-1", "note": "kept"}})
	other.Create("/v1/customers", map[string]any{"first_name": "Other", "last_name": "Person", "email": "other@example.ch", "metadata": map[string]any{"external_id": "K-2"}})
	table := "metadata.external_id,first_name,last_name,email\nK-1,Anna,Meier,anna@example.ch\nK-2,Beat,Frei,beat@example.ch\nK-2,Beat,Frei-Huber,beat@example.ch\n"
	skipped := run(t, s, advisor, "?dry_run=true", table)
	expect(t, skipped, "done 3/3 created 1 updated 0 duplicates 2 rejected 0")
	expect(t, run(t, s, advisor, "?dry_run=true&on_duplicate=update", table), "done 3/3 created 1 updated 2 duplicates 0 rejected 0")
	expect(t, run(t, s, advisor, "?dry_run=true&on_duplicate=reject", table), "done 3/3 created 1 updated 0 duplicates 0 rejected 2")
	if n := total(t, advisor); n != 1 {
		t.Errorf("dry runs have created %d customers", n-1)
	}
	expect(t, run(t, s, advisor, "?on_duplicate=update", table), "done 3/3 created 1 updated 2 duplicates 0 rejected 0")
	anna := advisor.Do("GET", "/v1/customers/"+id, nil).Expect(t, http.StatusOK).JSON(t)
	if anna["last_name"] != "Meier" || anna["phone"] != "+41446681800" || fmt.Sprint(anna["metadata"]) != "map[external_id:K-1 note:kept]" {
		t.Errorf("after the update: %v", anna)
	}
	rejecting := run(t, s, advisor, "?on_duplicate=reject", table)
	expect(t, rejecting, "done 3/3 created 0 updated 0 duplicates 0 rejected 3")
	if got := rejected(t, advisor, rejecting.ID); fmt.Sprint(got[0]) != "[2 external_id The record exists already. "+id+"]" {
		t.Errorf("got %v", got)
	}
	// The customer of another owner was neither found nor changed.
	if got := other.Do("GET", "/v1/customers?search.last_name=Person", nil).Expect(t, http.StatusOK).JSON(t); got["total"] != 1.0 {
		t.Errorf("got %v", got)
	}
}

func TestImport_DryRunEqualsTheRealOne(t *testing.T) {
	s := servertest.Start(t, func(s *settings.Settings) { s.Quotas.Records = 30 })
	table := file(0, 25) + "K-3,Again,Keller,x@example.ch\nK-90,,,\n" + strings.Join(strings.Split(file(25, 20), "\n")[1:], "\n")
	for _, query := range []string{"?on_duplicate=skip", "?on_duplicate=reject", "?on_duplicate=update"} {
		c := branch(t, s)
		want := run(t, s, c, query+"&dry_run=1", table)
		if n := total(t, c); n != 0 {
			t.Fatalf("a dry run has created %d customers", n)
		}
		got := run(t, s, c, query, table)
		expect(t, got, counts(want))
		reasons := func(id string) (all []string) { // a dry run cannot name a record that it would have created
			for _, row := range rejected(t, c, id) {
				all = append(all, fmt.Sprint(row[:3]))
			}
			return all
		}
		if a, b := fmt.Sprint(reasons(want.ID)), fmt.Sprint(reasons(got.ID)); a != b {
			t.Errorf("rejected %s, but %s in the dry run", b, a)
		}
	}
}

func TestImport_EndsWithTheRightsOfItsCaller(t *testing.T) {
	for name, end := range map[string]func(s *servertest.Server, c *servertest.Client){
		"the role": func(s *servertest.Server, c *servertest.Client) {
			s.Admin().Do("PUT", "/v1/users/"+c.UserID+"/roles", map[string]any{"roles": []string{access.Customer}}).Expect(t, http.StatusOK)
		},
		"the account": func(s *servertest.Server, c *servertest.Client) {
			s.Admin().Do("PATCH", "/v1/users/"+c.UserID, map[string]any{"status": "disabled"}).Expect(t, http.StatusOK)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := servertest.Start(t)
			c := s.User(access.Advisor)
			var i imports.Import
			send(c, "", file(0, 40)).Expect(t, http.StatusAccepted).Into(t, &i)
			end(s, c)
			work(t, s)
			expect(t, get(t, s.Admin(), i.ID), "failed 0/40 created 0 updated 0 duplicates 0 rejected 0 common.rbac_no_rec_access")
		})
	}
}

func TestImport_StopsAtTheQuotaAndContinuesLater(t *testing.T) {
	s := servertest.Start(t, func(s *settings.Settings) { s.Quotas.Records = 20 })
	c := branch(t, s)
	expect(t, run(t, s, c, "?dry_run=true", file(0, 50)), "failed 20/50 created 20 updated 0 duplicates 0 rejected 0 common.quota_exceeded")
	expect(t, run(t, s, c, "", file(0, 50)), "failed 20/50 created 20 updated 0 duplicates 0 rejected 0 common.quota_exceeded")
	expect(t, run(t, s, c, "", file(0, 50)), "failed 20/50 created 0 updated 0 duplicates 20 rejected 0 common.quota_exceeded")
}

// The file and what is known of its rows are deleted.
func TestPurge_LeavesNothing(t *testing.T) {
	s := servertest.Start(t)
	advisor := s.User(access.Advisor)
	i := run(t, s, advisor, "", file(0, 3)+"x\n")
	rows := func(table string) (n int) {
		t.Helper()
		if err := s.DB.QueryRow(t.Context(), "SELECT COUNT(*) FROM "+table).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	var key string
	if err := s.DB.QueryRow(t.Context(), `SELECT key_sealed FROM imports WHERE id = $1`, i.ID).Scan(&key); err != nil || key != "" || rows("import_chunks") != 0 {
		t.Errorf("the file remains: key %q, %v", key, err)
	}
	s.Clock.Set(s.Clock.Now().AddDate(0, 0, 29))
	if err := s.Imports.Purge(t.Context()); err != nil || rows("imports") != 1 || rows("import_rejections") != 1 || rows("import_rows") != 3 {
		t.Errorf("after 29 days: %v", err)
	}
	s.Clock.Set(s.Clock.Now().Add(48 * time.Hour))
	if err := s.Imports.Purge(t.Context()); err != nil || rows("imports")+rows("import_rejections")+rows("import_rows") != 0 {
		t.Errorf("after 31 days: %v", err)
	}
	// An upload that was cut off by a kill.
	servertest.InTx(t, s.DB, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO imports (id, state, dry_run, on_duplicate, sha256, size, row_count, key_sealed, chunks, created_at, created_by)
			VALUES ($1, 'uploading', FALSE, 'skip', '', 0, 0, '', 1, $2, $3)`, store.NewID(), tx.Now(), advisor.UserID)
		return err
	})
	if err := s.Imports.Purge(t.Context()); err != nil || rows("imports") != 0 {
		t.Errorf("an upload that was cut off remains: %v", err)
	}
}

// A customer claims the external id of another. The file of the bank neither skips the real customer, nor writes their data into the
// record of the claimant, whatever the import does with duplicates.
func TestImport_IgnoresClaimedExternalIDs(t *testing.T) {
	for _, query := range []string{"?on_duplicate=skip", "?on_duplicate=update", "?on_duplicate=reject"} {
		s := servertest.Start(t)
		advisor, attacker := s.User(access.Advisor), s.User(access.Customer)
		claimed := "/v1/customers/" + attacker.Create("/v1/customers", map[string]any{"first_name": "Mallory", "last_name": "Muster", "email": "mallory@example.ch",
			"metadata": map[string]any{"external_id": "K-1"}})
		before := attacker.Do("GET", claimed, nil).Expect(t, http.StatusOK).Body
		table := "external_id,first_name,last_name,email\nK-1,Anna,Keller,anna@example.ch\n"
		expect(t, run(t, s, advisor, query, table), "done 1/1 created 1 updated 0 duplicates 0 rejected 0")
		if after := attacker.Do("GET", claimed, nil).Expect(t, http.StatusOK).Body; after != before {
			t.Errorf("%s: the record of the claimant was %s and is %s", query, before, after)
		}
		// The list as a table is a file, too: the claim in its metadata counts for nothing.
		list := advisor.With("Accept", "text/csv").Do("GET", "/v1/customers?search.last_name=Muster", nil).Expect(t, http.StatusOK).Body
		i := run(t, s, advisor, query, list)
		expect(t, i, "done 1/1 created 1 updated 0 duplicates 0 rejected 0")
		if anna := advisor.Do("GET", "/v1/customers?search.last_name=Keller", nil).Expect(t, http.StatusOK); strings.Contains(anna.Body, "mallory") {
			t.Errorf("%s: the claimant has written into %s", query, anna.Body)
		}
	}
}

// A skipped row says so, and names the record to those who may read it.
func TestImport_NamesSkippedRecords(t *testing.T) {
	s := servertest.Start(t)
	advisor := s.User(access.Advisor)
	id := advisor.Create("/v1/customers", map[string]any{"first_name": "Anna", "last_name": "Keller", "email": "anna@example.ch", "metadata": map[string]any{"external_id": "K-1"}})
	i := run(t, s, advisor, "", "external_id,first_name,last_name,email\nK-1,Anna,Keller,anna@example.ch\nK-2,Beat,Frei,beat@example.ch\n")
	expect(t, i, "done 2/2 created 1 updated 0 duplicates 1 rejected 0")
	want := "[[2 external_id The record exists already, so the row was skipped. " + id + "]]"
	if got := fmt.Sprint(rejected(t, advisor, i.ID)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	// A caller who may not read the record any more learns that the row was skipped, and not for which.
	s.Admin().Do("PUT", "/v1/users/"+advisor.UserID+"/roles", map[string]any{"roles": []string{access.Customer}}).Expect(t, http.StatusOK)
	for _, endpoint := range []string{"GET /v1/imports/{id}", "GET /v1/imports/{id}/rejected"} {
		s.Admin().Create("/v1/rbac/grants", map[string]any{"user_id": advisor.UserID, "endpoint": endpoint})
	}
	if got := fmt.Sprint(rejected(t, advisor, i.ID)); strings.Contains(got, id) || !strings.Contains(got, "was skipped") {
		t.Errorf("got %s", got)
	}
}
