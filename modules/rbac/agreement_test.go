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

// model holds the users, roles, records and grants of one round. It decides checks independently of the service.
type model struct {
	users, roles, things []string
	owner                map[string]string
	holds                map[string][]string // user → roles, in the order of the sessions
	onType               map[string]access.Permission
	onThing              map[[2]string]access.Permission // principal, thing
}

var single = []access.Permission{access.Create, access.Read, access.Update, access.Delete, access.ReadAll}

// newModel creates users, roles and records, and some grants through the service.
func newModel(t *rapid.T, b *bank) *model {
	m := &model{owner: map[string]string{}, holds: map[string][]string{}, onType: map[string]access.Permission{}, onThing: map[[2]string]access.Permission{}}
	for range 2 {
		id := store.NewID()
		b.exec("INSERT INTO roles (id, name, name_key, created_at, created_by, modified_at, modified_by) VALUES ($1, $1, $1, 0, $1, 0, $1)", id)
		m.roles = append(m.roles, id)
	}
	for range 2 {
		roles := slices.DeleteFunc(slices.Clone(m.roles), func(string) bool { return rapid.Bool().Draw(t, "without role") })
		id := b.user(roles...)
		m.users, m.holds[id] = append(m.users, id), roles
	}
	for range 3 {
		owner := rapid.SampledFrom(append(m.users, b.root)).Draw(t, "owner")
		id := b.thing(owner)
		m.things, m.owner[id] = append(m.things, id), owner
	}
	for range rapid.IntRange(0, 8).Draw(t, "grants") {
		m.grant(t, b)
	}
	return m
}

func (m *model) grant(t *rapid.T, b *bank) {
	in := rbac.GrantInput{RecType: "customers"}
	principal := rapid.SampledFrom(append(slices.Clone(m.users), m.roles...)).Draw(t, "principal")
	if slices.Contains(m.users, principal) {
		in.UserID = principal
	} else {
		in.RoleID = principal
	}
	possible := single
	if rapid.IntRange(0, 2).Draw(t, "on a record") > 0 {
		in.RecID, possible = rapid.SampledFrom(m.things).Draw(t, "record"), []access.Permission{access.Read, access.Update, access.Delete}
	}
	permission := rapid.SampledFrom(possible).Draw(t, "permission")
	in.Permissions = []string{permission.String()}
	_, err := b.rbac.CreateGrant(access.With(context.Background(), &access.Caller{UserID: b.root}), in)
	if err != nil && !errors.Is(err, apierr.GrantExists) {
		t.Fatal(err)
	}
	if in.RecID == "" {
		m.onType[principal] |= permission
	} else {
		m.onThing[[2]string{principal, in.RecID}] |= permission
	}
}

// decide is the expected decision.
func (m *model) decide(user string, permission access.Permission, thing string) rbac.Decision {
	yes := func(source, id string) rbac.Decision {
		return rbac.Decision{Allowed: true, Source: source, SourceID: id}
	}
	if thing != "" {
		if m.owner[thing] == user && permission&(access.Read|access.Update|access.Delete) != 0 {
			return yes("owner", thing)
		}
		if m.onThing[[2]string{user, thing}]&permission != 0 {
			return yes("user", user)
		}
		for _, role := range m.holds[user] {
			if m.onThing[[2]string{role, thing}]&permission != 0 {
				return yes("role", role)
			}
		}
	}
	allows := func(held access.Permission) bool {
		return held&permission != 0 || permission == access.Read && held&access.ReadAll != 0
	}
	for _, role := range m.holds[user] {
		if allows(m.onType[role]) {
			return yes("role", role)
		}
	}
	if allows(m.onType[user]) {
		return yes("user", user)
	}
	return rbac.Decision{SourceID: store.NilID}
}

// listed reports whether a list contains the record. A list contains all records only with read_all, not with read on the type.
func (m *model) listed(user, thing string) bool {
	readsAll := m.onType[user].Has(access.ReadAll)
	for _, role := range m.holds[user] {
		readsAll = readsAll || m.onType[role].Has(access.ReadAll)
	}
	own := m.decide(user, access.Read, thing)
	return readsAll || own.Source == "owner" || m.onThing[[2]string{own.SourceID, thing}].Has(access.Read)
}

// TestCheck_AgreesWithStatements compares the check with the model, and both with the statements that read and list records.
func TestCheck_AgreesWithStatements(t *testing.T) {
	b := newBank(t)
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t, b)
		user := rapid.SampledFrom(m.users).Draw(t, "user")
		caller := access.Caller{UserID: user, Roles: m.holds[user]}.WithPolicy(b.policy.Load())
		var checks []rbac.Check
		for _, permission := range single {
			for _, thing := range append(slices.Clone(m.things), "") {
				checks = append(checks, rbac.Check{RecType: "customers", Permission: permission.String(), RecID: thing})
			}
		}
		decisions, err := b.rbac.Decide(context.Background(), caller, checks)
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range checks {
			permission, _ := access.ParsePermission(c.Permission)
			if want := m.decide(user, permission, c.RecID); decisions[i] != want {
				t.Fatalf("%+v: got %+v, want %+v", c, decisions[i], want)
			}
			onOne := permission == access.Read || permission == access.Update || permission == access.Delete
			if c.RecID == "" || !onOne {
				continue
			}
			_, err := things.Get(access.With(context.Background(), caller), b.db, c.RecID, permission)
			if (err == nil) != decisions[i].Allowed || err != nil && !errors.Is(err, apierr.NoAccess) {
				t.Fatalf("%+v: reading returned %v, the check %+v", c, err, decisions[i])
			}
		}
		for _, id := range m.things {
			query, err := list.Parse(map[string][]string{"search.id": {id}})
			if err != nil {
				t.Fatal(err)
			}
			page, err := thingList.Page(context.Background(), b.db, query, things.Visible(caller))
			if want := m.listed(user, id); err != nil || (page.Total == 1) != want {
				t.Fatalf("the list shows %d of %s, %v; want it shown: %v", page.Total, id, err, want)
			}
		}
	})
}

// TestCheck_AgreesWithThePipeline compares checks over HTTP with the requests they are about.
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

// TestGrants_InForceUnderLoad grants, uses, revokes and checks from 64 goroutines at once. Each change must be in force for
// the next request of its goroutine.
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
