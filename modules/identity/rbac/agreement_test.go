package rbac_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"kontor/modules/identity/rbac"
	"kontor/modules/kit/list"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
	"kontor/store/testenv"
)

// model holds the users, roles, records and grants of one round. It decides checks independently of the service.
type model struct {
	users, roles, personas []string
	owner                  map[string]string
	holds                  map[string][]string // user → roles, in the order of the sessions
	onType                 map[string]access.Permission
	onPersona              map[[2]string]access.Permission // principal, persona
}

var single = []access.Permission{access.Create, access.Read, access.Update, access.Delete, access.ReadAll}

// newModel creates users, roles and records, and some grants through the service.
func newModel(t *rapid.T, h *harness) *model {
	m := &model{owner: map[string]string{}, holds: map[string][]string{}, onType: map[string]access.Permission{}, onPersona: map[[2]string]access.Permission{}}
	for range 2 {
		m.roles = append(m.roles, h.role("Role of "+strings.ReplaceAll(store.NewID(), "-", "")))
	}
	for range 2 {
		roles := slices.DeleteFunc(slices.Clone(m.roles), func(string) bool { return rapid.Bool().Draw(t, "without role") })
		id := h.user(roles...)
		m.users, m.holds[id] = append(m.users, id), roles
	}
	for range 3 {
		owner := rapid.SampledFrom(append(m.users, h.root)).Draw(t, "owner")
		id := h.persona(owner)
		m.personas, m.owner[id] = append(m.personas, id), owner
	}
	for range rapid.IntRange(0, 8).Draw(t, "grants") {
		m.grant(t, h)
	}
	return m
}

func (m *model) grant(t *rapid.T, h *harness) {
	in := rbac.GrantInput{RecType: "personas"}
	principal := rapid.SampledFrom(append(slices.Clone(m.users), m.roles...)).Draw(t, "principal")
	if slices.Contains(m.users, principal) {
		in.UserID = principal
	} else {
		in.RoleID = principal
	}
	possible := single
	if rapid.IntRange(0, 2).Draw(t, "on a record") > 0 {
		in.RecID, possible = rapid.SampledFrom(m.personas).Draw(t, "record"), []access.Permission{access.Read, access.Update, access.Delete}
	}
	permission := rapid.SampledFrom(possible).Draw(t, "permission")
	in.Permissions = []string{permission.String()}
	_, err := h.RBAC.CreateGrant(h.as(h.root), in)
	if err != nil && !errors.Is(err, apierr.GrantExists) {
		t.Fatal(err)
	}
	if in.RecID == "" {
		m.onType[principal] |= permission
	} else {
		m.onPersona[[2]string{principal, in.RecID}] |= permission
	}
}

// decide is the expected decision.
func (m *model) decide(user string, permission access.Permission, persona string) access.Decision {
	yes := func(source, id string) access.Decision {
		return access.Decision{Allowed: true, Source: source, SourceID: id}
	}
	if persona != "" {
		if m.owner[persona] == user && permission&(access.Read|access.Update|access.Delete) != 0 {
			return yes("owner", persona)
		}
		if m.onPersona[[2]string{user, persona}]&permission != 0 {
			return yes("user", user)
		}
		for _, role := range m.holds[user] {
			if m.onPersona[[2]string{role, persona}]&permission != 0 {
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
	return access.Decision{SourceID: store.NilID}
}

// listed reports whether a list contains the record. A list contains all records only with read_all, not with read on the type.
func (m *model) listed(user, persona string) bool {
	readsAll := m.onType[user].Has(access.ReadAll)
	for _, role := range m.holds[user] {
		readsAll = readsAll || m.onType[role].Has(access.ReadAll)
	}
	own := m.decide(user, access.Read, persona)
	return readsAll || own.Source == "owner" || m.onPersona[[2]string{own.SourceID, persona}].Has(access.Read)
}

// TestCheck_AgreesWithStatements compares the check with the model, and both with the statements that read and list records.
func TestCheck_AgreesWithStatements(t *testing.T) {
	testenv.Checks(t, 30, 100, 1000)
	h := newHarness(t)
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t, h)
		user := rapid.SampledFrom(m.users).Draw(t, "user")
		caller := access.Caller{UserID: user, Roles: m.holds[user]}.WithPolicy(h.Policy.Load())
		var checks []access.Check
		for _, permission := range single {
			for _, persona := range append(slices.Clone(m.personas), "") {
				checks = append(checks, access.Check{RecType: "personas", Permission: permission.String(), RecID: persona})
			}
		}
		decisions, err := h.RBAC.Decide(context.Background(), caller, checks)
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
			_, err := personaTable.Get(access.With(context.Background(), caller), h.DB, c.RecID, permission)
			if (err == nil) != decisions[i].Allowed || err != nil && !errors.Is(err, apierr.NoAccess) {
				t.Fatalf("%+v: reading returned %v, the check %+v", c, err, decisions[i])
			}
		}
		for _, id := range m.personas {
			query, err := list.Parse(map[string][]string{"search.id": {id}})
			if err != nil {
				t.Fatal(err)
			}
			page, err := personaList.Page(context.Background(), h.DB, query, personaTable.Visible(caller))
			if want := m.listed(user, id); err != nil || (page.Total == 1) != want {
				t.Fatalf("the list shows %d of %s, %v; want it shown: %v", page.Total, id, err, want)
			}
		}
	})
}

// TestCheck_AgreesWithThePipeline compares checks over HTTP with the requests they are about.
func TestCheck_AgreesWithThePipeline(t *testing.T) {
	h := newHarness(t)
	advisor, customer := h.user(access.Advisor), h.user(access.Customer)
	own, foreign := h.persona(customer), h.persona(h.root)
	h.grant(object{"role_id": access.Customer, "rec_type": "personas", "permissions": []string{"update"}, "rec_id": foreign})
	methods := map[string]string{"read": "GET", "update": "PUT", "delete": "DELETE"}
	for _, user := range []string{h.root, advisor, customer} {
		for _, persona := range []string{own, foreign} {
			for permission, method := range methods {
				allowed := h.check(user, object{"rec_type": "personas", "permission": permission, "rec_id": persona}) != "no"
				if status := h.do(user, method, "/v1/personas/"+persona, nil).status; (status == 200) != allowed {
					t.Errorf("%s %s: check says %v, the request got %d", user, method, allowed, status)
				}
			}
		}
		allowed := h.check(user, object{"rec_type": "personas", "permission": "create"}) != "no"
		if status := h.do(user, "POST", "/v1/personas", nil).status; (status == 201) != allowed {
			t.Errorf("%s create: check says %v, the request got %d", user, allowed, status)
		}
	}
}

// A grant of read on a type opens each of its records. Lists show them only with a grant of read_all.
func TestGrant_OfReadOnATypeDoesNotFillLists(t *testing.T) {
	h := newHarness(t)
	user, persona := h.user(access.Customer), h.persona(h.root)
	listed := func() any { return h.want(200, "", user, "GET", "/v1/personas", nil).body["total"] }
	for _, step := range []struct {
		grant string
		total float64
	}{{"read", 0}, {"read_all", 1}} {
		h.grant(object{"user_id": user, "rec_type": "personas", "permissions": []string{step.grant}})
		h.want(200, "", user, "GET", "/v1/personas/"+persona, nil)
		if got := listed(); got != step.total {
			t.Errorf("with %s the list has %v personas, want %v", step.grant, got, step.total)
		}
	}
}
