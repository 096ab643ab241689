package rbac_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/store/storetest"
)

const reviewsPath = "/v1/rbac/reviews"

// One removal takes at most 1,000 grants, and says how many rights are left.
func TestReview_RemovesAThousandGrantsAtOnce(t *testing.T) {
	h := newHarness(t)
	h.want(201, "", h.root, "POST", "/v1/rbac/record-types", object{"name": "invoice", "permissions": []string{"read"}})
	user := h.user(access.Customer)
	for i := range 1003 {
		h.grant(object{"user_id": user, "rec_type": "invoice", "rec_id": fmt.Sprint(i), "permissions": []string{"read"}})
	}
	for _, want := range [][2]float64{{1004, 3}, {3, 0}, {0, 0}} {
		a := h.want(201, "", h.root, "POST", reviewsPath, object{"user_id": user, "decision": "remove"})
		if got := [2]any{a.body["rights"], a.body["remaining"]}; got != [2]any{want[0], want[1]} {
			t.Errorf("rights and remaining %v, want %v", got, want)
		}
	}
	if n := h.want(200, "", h.root, "GET", "/v1/audit?search.action=rbac.grants.delete", nil).body["total"]; n != 1003.0 {
		t.Errorf("%v entries about deleted grants", n)
	}
}

// A review cannot remove the last administrator. A refused removal takes nothing and leaves no review.
func TestReview_TheLastAdministratorStays(t *testing.T) {
	h := newHarness(t)
	other := h.user(access.Administrator)
	h.want(200, "", h.root, "PUT", "/v1/users/"+other+"/roles", object{"roles": []string{"Administrator"},
		"terms": []object{{"role": "Administrator", "expires_at": h.in(time.Hour)}}})
	h.want(201, "", other, "POST", "/v1/rbac/grants", object{"user_id": h.root, "rec_type": "audit", "permissions": []string{"read"}})
	h.want(409, "users.last_administrator", other, "POST", reviewsPath, object{"user_id": h.root, "decision": "remove"})
	h.want(409, "rbac.role_built_in", other, "POST", reviewsPath, object{"role_id": access.Administrator, "decision": "remove"})
	if n := h.want(200, "", h.root, "GET", reviewPath+"&search.user_id="+h.root, nil).body["total"]; n != 2.0 {
		t.Errorf("%v rights are left", n)
	}
	if n := h.want(200, "", h.root, "GET", reviewsPath, nil).body["total"]; n != 0.0 {
		t.Errorf("%v reviews", n)
	}
}

// Of two administrators who remove each other at once, one stays. Two removals of the same user take each right once.
func TestReview_TwoAtOnce(t *testing.T) {
	h := newHarness(t)
	other, user := h.user(access.Administrator), h.user(access.Customer)
	h.grant(object{"user_id": user, "rec_type": "audit", "permissions": []string{"read"}})
	both := func(first, second string) (statuses []int, taken float64) {
		t.Helper()
		var mu sync.Mutex
		var reviews sync.WaitGroup
		for who, removed := range map[string]string{h.root: first, other: second} {
			reviews.Go(func() {
				a, err := h.try(who, "POST", reviewsPath, object{"user_id": removed, "decision": "remove"})
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				statuses = append(statuses, a.status)
				if a.status == 201 {
					taken += a.body["rights"].(float64) - a.body["remaining"].(float64)
				}
			})
		}
		reviews.Wait()
		slices.Sort(statuses)
		return statuses, taken
	}
	if statuses, taken := both(user, user); !slices.Equal(statuses, []int{201, 201}) || taken != 2 {
		t.Errorf("of the same user: %v, %v rights were taken", statuses, taken)
	}
	if statuses, taken := both(other, h.root); statuses[0] != 201 || statuses[1] < 400 || taken != 1 {
		t.Errorf("of each other: %v, %v rights were taken", statuses, taken)
	}
	var left int
	if err := h.DB.QueryRow(t.Context(), `SELECT COUNT(*) FROM user_roles WHERE role_id = $1`, access.Administrator).Scan(&left); err != nil || left != 1 {
		t.Errorf("%d administrators are left, %v", left, err)
	}
}

const (
	manyRights  = 100_000
	insertMany  = `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $1) `
	insertRoles = insertMany + `INSERT INTO user_roles (user_id, role_id, created_at, created_by) SELECT 'user ' || i, $2, i, $3 FROM n`
	insertTypes = insertMany + `
		INSERT INTO grant_records (id, user_id, rec_type, permissions, created_at, created_by) SELECT 'grant ' || i, 'user ' || i, 'audit', 'read', i, $2 FROM n`
)

// The newest rights of 200,000 are read by indexes, and those of a user as well. A table says how many rows it omits.
func TestReview_OfManyRights(t *testing.T) {
	h := newHarness(t)
	h.SkipRecordCheck()
	h.exec(insertRoles, manyRights, access.Customer, h.root)
	h.exec(insertTypes, manyRights, h.root)
	if rows := h.want(200, "", h.root, "GET", "/v1/rbac/review?limit=5", nil).data(); len(rows) != 5 {
		t.Errorf("%d rows", len(rows))
	}
	client, _ := h.clients.Load(h.root)
	table, err := client.(*servertest.Client).With("Accept", "text/csv").Try("HEAD", "/v1/rbac/review", nil)
	if total, omitted := table.Header.Get("X-Total-Rows"), table.Header.Get("X-Truncated-Rows"); err != nil || len(total) != 6 || len(omitted) != 6 {
		t.Errorf("%s rows, %s are omitted; %v", total, omitted, err)
	}
	if storetest.SQLiteOnly(t, "query plans are in the words of SQLite") {
		return
	}
	const columns = "SELECT id, kind, created_at, last_used_at, reviewed_at FROM reviewed_rights"
	for sql, args := range map[string][]any{
		columns + " ORDER BY created_at DESC, id DESC LIMIT 10":                     nil,
		columns + " WHERE kind = 'role' ORDER BY created_at DESC, id DESC LIMIT 10": nil,
		columns + " WHERE user_id = $1":                                             {"user 7"},
	} {
		plan := strings.Join(storetest.Plan(t, h.DB, sql, args...), "\n")
		byIndex := strings.Contains(plan, "user_roles_created_at_idx") || strings.Contains(plan, "user_id=?")
		if !byIndex || strings.Contains(plan, "TEMP B-TREE") || strings.Contains(plan, "CO-ROUTINE") {
			t.Errorf("%s\n%s", sql, plan)
		}
	}
}
