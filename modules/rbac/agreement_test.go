package rbac_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"kontor/modules/kit/list"
	"kontor/modules/rbac"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

// world is a set of users, roles and records of one round, with grants on them as a test remembers them.
type world struct {
	users, roles, things []string
	owner                map[string]string
	holds                map[string][]string // user → roles, ordered as the sessions order them
	onType               map[string]access.Permission
	onThing              map[[2]string]access.Permission // principal, thing
}

var single = []access.Permission{access.Create, access.Read, access.Update, access.Delete, access.ReadAll}

// newWorld makes users, roles and records, and some grants through the service.
func newWorld(t *rapid.T, b *bank) *world {
	w := &world{owner: map[string]string{}, holds: map[string][]string{}, onType: map[string]access.Permission{}, onThing: map[[2]string]access.Permission{}}
	for range 2 {
		id := store.NewID()
		b.exec("INSERT INTO roles (id, name, name_key, created_at, created_by, modified_at, modified_by) VALUES ($1, $1, $1, 0, $1, 0, $1)", id)
		w.roles = append(w.roles, id)
	}
	for range 2 {
		roles := slices.DeleteFunc(slices.Clone(w.roles), func(string) bool { return rapid.Bool().Draw(t, "without role") })
		id := b.user(roles...)
		w.users, w.holds[id] = append(w.users, id), roles
	}
	for range 3 {
		owner := rapid.SampledFrom(append(w.users, b.root)).Draw(t, "owner")
		id := b.thing(owner)
		w.things, w.owner[id] = append(w.things, id), owner
	}
	for range rapid.IntRange(0, 8).Draw(t, "grants") {
		w.grant(t, b)
	}
	return w
}

func (w *world) grant(t *rapid.T, b *bank) {
	in := rbac.GrantInput{RecType: "customers"}
	principal := rapid.SampledFrom(append(slices.Clone(w.users), w.roles...)).Draw(t, "principal")
	if slices.Contains(w.users, principal) {
		in.UserID = principal
	} else {
		in.RoleID = principal
	}
	possible := single
	if rapid.IntRange(0, 2).Draw(t, "on a record") > 0 {
		in.RecID, possible = rapid.SampledFrom(w.things).Draw(t, "record"), []access.Permission{access.Read, access.Update, access.Delete}
	}
	permission := rapid.SampledFrom(possible).Draw(t, "permission")
	in.Permissions = []string{permission.String()}
	_, err := b.rbac.CreateGrant(access.With(context.Background(), &access.Caller{UserID: b.root}), in)
	if err != nil && !errors.Is(err, apierr.GrantExists) {
		t.Fatal(err)
	}
	if in.RecID == "" {
		w.onType[principal] |= permission
	} else {
		w.onThing[[2]string{principal, in.RecID}] |= permission
	}
}

// decide is the rule in its own words.
func (w *world) decide(user string, permission access.Permission, thing string) rbac.Decision {
	yes := func(source, id string) rbac.Decision {
		return rbac.Decision{Allowed: true, Source: source, SourceID: id}
	}
	if thing != "" {
		if w.owner[thing] == user && permission&(access.Read|access.Update|access.Delete) != 0 {
			return yes("owner", thing)
		}
		if w.onThing[[2]string{user, thing}]&permission != 0 {
			return yes("user", user)
		}
		for _, role := range w.holds[user] {
			if w.onThing[[2]string{role, thing}]&permission != 0 {
				return yes("role", role)
			}
		}
	}
	allows := func(held access.Permission) bool {
		return held&permission != 0 || permission == access.Read && held&access.ReadAll != 0
	}
	for _, role := range w.holds[user] {
		if allows(w.onType[role]) {
			return yes("role", role)
		}
	}
	if allows(w.onType[user]) {
		return yes("user", user)
	}
	return rbac.Decision{SourceID: store.NilID}
}

// listed tells whether a list shows the record: read_all opens the list as a whole, read on the type only single records.
func (w *world) listed(user, thing string) bool {
	readsAll := w.onType[user].Has(access.ReadAll)
	for _, role := range w.holds[user] {
		readsAll = readsAll || w.onType[role].Has(access.ReadAll)
	}
	own := w.decide(user, access.Read, thing)
	return readsAll || own.Source == "owner" || w.onThing[[2]string{own.SourceID, thing}].Has(access.Read)
}

// TestCheck_AgreesWithWhatIsDone compares the check with the rule, and both with the statements that read one record
// and that list them.
func TestCheck_AgreesWithWhatIsDone(t *testing.T) {
	b := newBank(t)
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, b)
		user := rapid.SampledFrom(w.users).Draw(t, "user")
		caller := access.Caller{UserID: user, Roles: w.holds[user]}.WithPolicy(b.policy.Load())
		var checks []rbac.Check
		for _, permission := range single {
			for _, thing := range append(slices.Clone(w.things), "") {
				checks = append(checks, rbac.Check{RecType: "customers", Permission: permission.String(), RecID: thing})
			}
		}
		decisions, err := b.rbac.Decide(context.Background(), caller, checks)
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range checks {
			permission, _ := access.ParsePermission(c.Permission)
			if want := w.decide(user, permission, c.RecID); decisions[i] != want {
				t.Fatalf("%+v: got %+v, want %+v", c, decisions[i], want)
			}
			onOne := permission == access.Read || permission == access.Update || permission == access.Delete
			if c.RecID == "" || !onOne {
				continue
			}
			_, err := things.Get(access.With(context.Background(), caller), b.db, c.RecID, permission)
			if (err == nil) != decisions[i].Allowed || err != nil && !errors.Is(err, apierr.NoAccess) {
				t.Fatalf("%+v: reading says %v; the check %+v", c, err, decisions[i])
			}
		}
		for _, id := range w.things {
			query, err := list.Parse(map[string][]string{"search.id": {id}})
			if err != nil {
				t.Fatal(err)
			}
			page, err := thingList.Page(context.Background(), b.db, query, things.Visible(caller))
			if want := w.listed(user, id); err != nil || (page.Total == 1) != want {
				t.Fatalf("the list shows %d of %s, %v; want it shown: %v", page.Total, id, err, want)
			}
		}
	})
}

// TestCheck_AgreesWithThePipeline asks over HTTP for what a user may do, and then does it.
func TestCheck_AgreesWithThePipeline(t *testing.T) {
	b := newBank(t)
	advisor, customer := b.user(access.Advisor), b.user(access.Customer)
	own, foreign := b.thing(customer), b.thing(b.root)
	b.grant(object{"role_id": access.Customer, "rec_type": "customers", "permissions": []string{"update"}, "rec_id": foreign})
	methods := map[string]string{"read": "GET", "update": "PUT", "delete": "DELETE"}
	for _, user := range []string{b.root, advisor, customer} {
		for _, thing := range []string{own, foreign} {
			for permission, method := range methods {
				allowed := b.check(user, object{"rec_type": "customers", "permission": permission, "rec_id": thing}) != "no"
				if status := b.do(user, method, "/v1/customers/"+thing, nil).status; (status == 200) != allowed {
					t.Errorf("%s %s: check says %v, the request got %d", user, method, allowed, status)
				}
			}
		}
		allowed := b.check(user, object{"rec_type": "customers", "permission": "create"}) != "no"
		if status := b.do(user, "POST", "/v1/customers", nil).status; (status == 200) != allowed {
			t.Errorf("%s create: check says %v, the request got %d", user, allowed, status)
		}
	}
}

// TestGrants_InForceUnderLoad lets 64 administrators grant, use, revoke and check at once. Each must find his own
// change in force with his next request, whatever the others do.
func TestGrants_InForceUnderLoad(t *testing.T) {
	b := newBank(t)
	const workers, rounds = 64, 4
	var wait sync.WaitGroup
	for i := range workers {
		role := b.role(fmt.Sprintf("Worker %d", i))
		user, thing := b.user(role), b.thing(b.root)
		b.grant(object{"user_id": user, "endpoint": "GET /v1/customers/{id}"})
		b.grant(object{"user_id": user, "endpoint": "POST /v1/rbac/check"})
		grants := []object{
			{"role_id": role, "rec_type": "customers", "permissions": []string{"read"}},
			{"user_id": user, "rec_type": "customers", "permissions": []string{"read"}, "rec_id": thing},
		}
		wait.Go(func() {
			for round := range rounds {
				if err := b.grantUseRevoke(user, thing, grants[(i+round)%len(grants)]); err != nil {
					t.Errorf("worker %d, round %d: %v", i, round, err)
					return
				}
			}
		})
	}
	wait.Wait()
}

func (b *bank) grantUseRevoke(user, thing string, grant object) error {
	asked := object{"checks": []object{{"rec_type": "customers", "permission": "read", "rec_id": thing}}}
	expect := func(status int, user, method, path string, body any) (answer, error) {
		a, err := b.try(user, method, path, body)
		if err == nil && a.status != status {
			err = fmt.Errorf("%s %s: got %d, want %d: %s", method, path, a.status, status, a.text)
		}
		return a, err
	}
	allowed := func(want bool) error {
		status := 403
		if want {
			status = 200
		}
		if _, err := expect(status, user, "GET", "/v1/customers/"+thing, nil); err != nil {
			return err
		}
		a, err := expect(200, user, "POST", "/v1/rbac/check", asked)
		if err != nil {
			return err
		}
		if got := a.body["results"].([]any)[0].(map[string]any)["allowed"]; got != want {
			return fmt.Errorf("the check says %v, want %v", got, want)
		}
		return nil
	}
	made, err := expect(201, b.root, "POST", "/v1/rbac/grants", grant)
	if err == nil {
		err = allowed(true)
	}
	if err == nil {
		_, err = expect(200, b.root, "DELETE", "/v1/rbac/grants/"+made.id(), nil)
	}
	if err == nil {
		err = allowed(false)
	}
	return err
}
