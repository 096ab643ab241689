package rbac_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/server/servertest"
)

const reviewPath = "/v1/rbac/review?limit=100"

// Roles and grants of every kind are listed with their origin, term and last use, which one write stores for all requests of an hour.
func TestReview_ListsWhoHoldsWhat(t *testing.T) {
	h := newHarness(t)
	auditors := h.role("Auditor")
	user := h.user(access.Customer, auditors)
	persona, other := h.persona(h.root), h.persona(h.root)
	grants := map[string]string{
		"used endpoint": h.grant(object{"role_id": auditors, "endpoint": "GET /v1/audit"}),
		"used type":     h.grant(object{"user_id": user, "rec_type": "audit", "permissions": []string{"read"}}),
		"used record":   h.grant(object{"user_id": user, "rec_type": "personas", "rec_id": persona, "permissions": []string{"read"}}),
		"other record":  h.grant(object{"user_id": user, "rec_type": "personas", "rec_id": other, "permissions": []string{"read"}, "expires_at": h.in(time.Hour)}),
		"denied":        h.grant(object{"user_id": user, "endpoint": "GET /v1/rbac/grants"}),
	}
	h.want(200, "", user, "GET", "/v1/audit?limit=1", nil)
	h.want(200, "", user, "GET", "/v1/personas/"+persona, nil)
	h.want(404, "personas.persona_not_found", user, "GET", "/v1/personas/"+h.root, nil)
	rows := map[string]object{}
	for _, row := range h.want(200, "", h.root, "GET", reviewPath+"&search.user_id="+user, nil).data() {
		rows[row["id"].(string)] = row
	}
	for _, row := range h.want(200, "", h.root, "GET", reviewPath+"&search.kind=endpoint&search.role_id="+auditors, nil).data() {
		rows[row["id"].(string)] = row
	}
	if len(rows) != 7 { // two roles, four grants of the user, one of the role
		t.Errorf("%d rows: %v", len(rows), rows)
	}
	for name, id := range grants {
		row := rows[id]
		if row["grant_id"] != id || row["created_by"] != h.root {
			t.Errorf("%s: %v", name, row)
			continue
		}
		if used := row["last_used_at"] != nil; used != strings.HasPrefix(name, "used") {
			t.Errorf("%s: last used %v", name, row["last_used_at"])
		}
		if ends := row["expires_at"] != nil; ends != (name == "other record") {
			t.Errorf("%s: ends %v", name, row["expires_at"])
		}
	}
	role := rows[user+":"+auditors]
	if role["kind"] != "role" || role["role_name"] != "Auditor" || role["last_used_at"] == nil {
		t.Errorf("the role: %v", role)
	}
	hour := h.Clock.Now().UTC().Truncate(time.Hour).Format("2006-01-02T15:04")
	if at := fmt.Sprint(role["last_used_at"]); !strings.HasPrefix(at, hour) {
		t.Errorf("last used %s, want %s", at, hour)
	}
	// Two hours later, when the tokens have expired, a use is newer.
	h.Clock.Advance(2 * time.Hour)
	const key = "GET /v1/audit"
	table := h.Endpoints()
	row := table[slices.IndexFunc(table, func(e endpoint.Endpoint) bool { return e.Key() == key })]
	h.RBAC.NoteUse(&access.Caller{UserID: user}, &row, key, nil)
	for _, job := range []func(context.Context) error{h.RBAC.FlushUses, h.RBAC.PurgeUses} {
		if err := job(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	var again int64
	if err := h.DB.QueryRow(t.Context(), `SELECT used_at FROM right_uses WHERE right_id = $1`, grants["used type"]).Scan(&again); err != nil {
		t.Fatal(err)
	}
	if want := h.Clock.Now().Truncate(time.Hour).UnixMilli(); again != want {
		t.Errorf("last used %d, want %d", again, want)
	}
}

// A use is written once an hour, however many requests there are.
func TestReview_UsesAreWrittenOnce(t *testing.T) {
	h := newHarness(t)
	user := h.user(access.Customer)
	uses := func() (n int) {
		t.Helper()
		if err := h.RBAC.FlushUses(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := h.DB.QueryRow(t.Context(), `SELECT COUNT(*) FROM right_uses WHERE right_id = $1`, user+":"+access.Customer).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := uses(); n != 0 {
		t.Fatalf("%d uses before a request", n)
	}
	h.want(200, "", user, "GET", "/v1/payers", nil)
	if n := uses(); n != 1 {
		t.Fatalf("%d uses", n)
	}
	h.exec(`DELETE FROM right_uses`)
	h.want(200, "", user, "GET", "/v1/payers", nil)
	if n := uses(); n != 0 {
		t.Errorf("the same hour was written again")
	}
}

// Only callers who may read all grants review. Those who may not list users get no names.
func TestReview_IsForReadersOfAllGrants(t *testing.T) {
	h := newHarness(t)
	customer, reviewer := h.user(access.Customer), h.user(access.Customer)
	keep := object{"user_id": customer, "decision": "keep"}
	for _, key := range []string{"GET /v1/rbac/review", "GET /v1/rbac/reviews", "POST /v1/rbac/reviews"} {
		h.grant(object{"user_id": reviewer, "endpoint": key})
	}
	for _, user := range []string{customer, reviewer} {
		h.want(403, "common.rbac_no_rec_access", user, "GET", "/v1/rbac/review", nil)
		h.want(403, "common.rbac_no_rec_access", user, "GET", "/v1/rbac/reviews", nil)
		h.want(403, "common.rbac_no_rec_access", user, "POST", "/v1/rbac/reviews", keep)
	}
	h.grant(object{"user_id": reviewer, "rec_type": "grants", "permissions": []string{"read_all"}})
	h.want(201, "", reviewer, "POST", "/v1/rbac/reviews", keep)
	for _, path := range []string{"/v1/rbac/review", "/v1/rbac/reviews"} {
		if a := h.want(200, "", reviewer, "GET", path, nil); a.body["people"] != nil || len(a.data()) == 0 {
			t.Errorf("%s: %s", path, a.text)
		}
		if a := h.want(200, "", h.root, "GET", path, nil); a.body["people"] == nil {
			t.Errorf("%s names no users to an administrator", path)
		}
	}
	// A right to review is none to remove.
	h.want(403, "common.rbac_no_rec_access", reviewer, "POST", "/v1/rbac/reviews", object{"user_id": customer, "decision": "remove"})
	powerful := h.user(access.Advisor)
	h.want(403, "rbac.rights_not_held", reviewer, "POST", "/v1/rbac/reviews", object{"user_id": powerful, "decision": "remove"})
	h.want(403, "rbac.rights_not_held", reviewer, "POST", "/v1/rbac/reviews", object{"role_id": access.Advisor, "decision": "remove"})
	h.want(403, "rbac.grant_to_self", reviewer, "POST", "/v1/rbac/reviews", object{"user_id": reviewer, "decision": "keep"})
}

func TestReview_RejectsWrongInput(t *testing.T) {
	h := newHarness(t)
	user := h.user(access.Customer)
	for name, body := range map[string]object{
		"nothing":     {},
		"both":        {"user_id": user, "role_id": access.Customer, "decision": "keep"},
		"no decision": {"user_id": user},
		"unknown":     {"user_id": user, "decision": "maybe"},
		"no id":       {"user_id": "beat", "decision": "keep"},
	} {
		if a := h.do(h.root, "POST", "/v1/rbac/reviews", body); a.status != 400 {
			t.Errorf("%s: %d %s", name, a.status, a.text)
		}
	}
	unknown := "0193b000-0000-7000-8000-00000000ffff"
	h.want(404, "users.user_not_found", h.root, "POST", "/v1/rbac/reviews", object{"user_id": unknown, "decision": "keep"})
	h.want(404, "rbac.role_not_found", h.root, "POST", "/v1/rbac/reviews", object{"role_id": unknown, "decision": "keep"})
}

// Keep changes nothing; remove takes all roles and grants from a user, or deletes a role, and both are on record.
func TestReview_KeepsAndRemoves(t *testing.T) {
	h := newHarness(t)
	role := h.role("Auditor")
	user := h.user(access.Customer, role)
	h.grant(object{"role_id": role, "endpoint": "GET /v1/audit"})
	h.grant(object{"user_id": user, "rec_type": "audit", "permissions": []string{"read"}})
	h.grant(object{"user_id": user, "rec_type": "audit", "permissions": []string{"update"}, "starts_at": h.in(time.Hour)})
	decide := func(holder, id, decision string, rights, remaining float64) {
		t.Helper()
		a := h.want(201, "", h.root, "POST", "/v1/rbac/reviews", object{holder: id, "decision": decision})
		if a.body["rights"] != rights || a.body["remaining"] != remaining || a.body["created_by"] != h.root {
			t.Errorf("%s %s: %s", decision, holder, a.text)
		}
	}
	decide("user_id", user, "keep", 4, 4)
	h.want(200, "", user, "GET", "/v1/audit?limit=1", nil)
	if row := h.want(200, "", h.root, "GET", reviewPath+"&search.user_id="+user, nil).data()[0]; row["reviewed_at"] == nil {
		t.Errorf("not reviewed: %v", row)
	}
	decide("user_id", user, "remove", 4, 0)
	h.want(403, "common.rbac_no_rec_access", user, "GET", "/v1/audit?limit=1", nil)
	if n := h.want(200, "", h.root, "GET", reviewPath+"&search.user_id="+user, nil).body["total"]; n != 0.0 {
		t.Errorf("%v rights are left", n)
	}
	decide("role_id", role, "keep", 1, 1)
	decide("role_id", role, "remove", 1, 0)
	h.want(404, "rbac.role_not_found", h.root, "GET", "/v1/rbac/roles/"+role, nil)
	h.want(409, "rbac.role_built_in", h.root, "POST", "/v1/rbac/reviews", object{"role_id": access.Advisor, "decision": "remove"})
	if n := h.want(200, "", h.root, "GET", "/v1/rbac/reviews", nil).body["total"]; n != 4.0 {
		t.Errorf("%v reviews", n)
	}
	for action, want := range map[string]float64{"rbac.reviews.keep": 2, "rbac.reviews.remove": 2} {
		if n := h.want(200, "", h.root, "GET", "/v1/audit?search.action="+action, nil).body["total"]; n != want {
			t.Errorf("%v entries %s, want %v", n, action, want)
		}
	}
}

// The list is a table, too, under the same rule.
func TestReview_AsATable(t *testing.T) {
	h := newHarness(t)
	user := h.user(access.Customer)
	table := func(who string) (int, string) {
		t.Helper()
		client, _ := h.clients.Load(who)
		r, err := client.(*servertest.Client).With("Accept", "text/csv").Try(http.MethodGet, "/v1/rbac/review?search.user_id="+user, nil)
		if err != nil {
			t.Fatal(err)
		}
		return r.Status, r.Body
	}
	if status, body := table(h.root); status != 200 || !strings.HasPrefix(body, "id,kind,user_id,") || !strings.Contains(body, user+":"+access.Customer) {
		t.Errorf("%d %s", status, body)
	}
	if status, body := table(user); status != 403 {
		t.Errorf("a customer: %d %s", status, body)
	}
}

// The last uses are written when the node stops.
func TestReview_UsesAreWrittenAtTheStop(t *testing.T) {
	h := newHarness(t)
	user := h.user(access.Customer)
	h.want(200, "", user, "GET", "/v1/payers", nil)
	if err := h.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	var n int
	if err := h.DB.QueryRow(t.Context(), `SELECT COUNT(*) FROM right_uses WHERE right_id = $1`, user+":"+access.Customer).Scan(&n); err != nil || n != 1 {
		t.Errorf("%d uses, %v", n, err)
	}
}
