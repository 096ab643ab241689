package directory_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"kontor/modules/kit/evidence"
	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/store"
	"kontor/store/testenv"
)

// as returns a context whose caller holds the roles.
func (h *harness) as(m testUser, roles ...string) context.Context {
	return access.With(h.t.Context(), access.Caller{UserID: m.id, Roles: roles}.WithPolicy(h.policy.Load()))
}

func (h *harness) people(ctx context.Context, ids ...string) map[string]endpoint.Person {
	h.t.Helper()
	people, err := h.service.People(ctx, ids)
	if err != nil {
		h.t.Fatal(err)
	}
	return people
}

func TestPeople(t *testing.T) {
	h := newHarness(t)
	anna, m, admin := h.namedUser("anna.k", "Anna Keller", "Advisor"), h.customer(email(1)), h.admin()
	h.addEmail(anna, "anna@bank.example")
	h.rename(m, m, "Peter Müller").want(t, 200, "")
	pending := h.registrant(email(2))
	ids := []string{anna.id, m.id, admin.id, pending.id, anna.id, "", store.NilID, store.NewID(), "no id"}
	want := map[string]endpoint.Person{
		anna.id: {DisplayName: "Anna Keller", UserName: "anna.k", Staff: true}, m.id: {DisplayName: "Peter Müller", UserName: email(1)},
		admin.id: {UserName: "root@bank.example", Staff: true}, pending.id: {},
	}
	for range 2 { // from the database, then from the cache
		if got := h.people(h.as(anna, access.Advisor), ids...); !maps.Equal(got, want) {
			t.Errorf("staff read %+v, want %+v", got, want)
		}
	}
	for id, p := range want {
		p.UserName = ""
		want[id] = p
	}
	for name, ctx := range map[string]context.Context{
		"a customer": h.as(m, access.Customer), "a registrant": h.as(pending, access.Registrant), "nobody": t.Context(),
		"an API key": access.With(t.Context(), access.Caller{KeyID: store.NewID()}.WithPolicy(h.policy.Load())),
	} {
		if got := h.people(ctx, ids...); !maps.Equal(got, want) {
			t.Errorf("%s reads %+v, want %+v", name, got, want)
		}
	}
	if got := h.people(t.Context()); len(got) != 0 {
		t.Errorf("no ids were requested, got %v", got)
	}
}

// The next look-up returns every change, also of cached people.
func TestPeople_SeesChanges(t *testing.T) {
	h := newHarness(t)
	admin, m := h.admin(), h.customer(email(1))
	staff := h.as(admin, access.Administrator)
	check := func(what string, want endpoint.Person) {
		t.Helper()
		if got := h.people(staff, m.id)[m.id]; got != want {
			t.Errorf("%s: got %+v, want %+v", what, got, want)
		}
	}
	p := endpoint.Person{UserName: email(1)}
	check("registered", p)
	h.rename(m, m, "Anna Müller").want(t, 200, "")
	p.DisplayName = "Anna Müller"
	check("renamed", p)
	h.call(m.token, "POST", m.path("/credentials"), map[string]any{"credential_type": "username", "credential_value": "anna", "password": password}).want(t, 201, "")
	p.UserName = "anna"
	check("with a user name", p)
	credential := h.call(m.token, "GET", m.path("/credentials?search.type=username"), nil).Body["data"].([]any)[0].(map[string]any)["id"].(string)
	h.call(m.token, "DELETE", "/v1/users/credentials/"+credential, nil).want(t, 200, "")
	p.UserName = email(1)
	check("without it", p)
	h.call(admin.token, "PUT", m.path("/roles"), roles("Advisor")).want(t, 200, "")
	p.Staff = true
	check("with a role of staff", p)
	h.exec(func(ctx context.Context, tx *store.Tx) error { return h.service.RemoveRole(ctx, tx, access.Advisor) })
	p.Staff = false
	check("after the role was deleted", p)
	h.policy.Store(access.NewPolicy(access.PolicyData{Types: map[string]map[string]access.Permission{m.id: {"tasks": access.ReadAll}}}))
	p.Staff = true
	check("with a grant of their own", p)
}

// Uncommitted changes are visible in their transaction and are not cached.
func TestPeople_CachesNothingOfATransaction(t *testing.T) {
	h := newHarness(t)
	m := h.customer(email(1))
	rolledBack := errors.New("rolled back")
	err := h.db.InTx(t.Context(), func(tx *store.Tx) error {
		if _, err := tx.Exec(t.Context(), `UPDATE users SET display_name = 'Nobody' WHERE id = $1`, m.id); err != nil {
			return err
		}
		if got := h.people(store.WithQuerier(t.Context(), tx), m.id)[m.id].DisplayName; got != "Nobody" {
			t.Errorf("the transaction reads %q", got)
		}
		return rolledBack
	})
	if got := h.people(t.Context(), m.id)[m.id].DisplayName; got != "" || !errors.Is(err, rolledBack) {
		t.Errorf("after the transaction: %q, %v", got, err)
	}
}

func TestPeople_LimitsTheCache(t *testing.T) {
	h := newHarness(t)
	const many = 20_000 // more than the cache holds
	ids := make([]string, many)
	for i := range ids {
		ids[i] = fmt.Sprintf("00000000-0000-7000-8000-%012d", 100_000+i)
	}
	h.exec(func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, `WITH RECURSIVE numbers (n) AS (SELECT 100000 UNION ALL SELECT n + 1 FROM numbers WHERE n < 119999),
			made (id) AS (SELECT '00000000-0000-7000-8000-000000' || CAST(n AS TEXT) FROM numbers)
			INSERT INTO users (id, display_name, status, language, created_at, created_by, modified_at, modified_by)
			SELECT id, id, 'active', 'en', 0, '', 0, '' FROM made`)
		return err
	})
	for range 2 {
		people := h.people(t.Context(), ids...)
		for _, id := range ids {
			if people[id].DisplayName != id {
				t.Fatalf("%s: %+v", id, people[id])
			}
		}
	}
}

// A look-up during renames does not cache a replaced name.
func TestPeople_CachesNoStaleName(t *testing.T) {
	h := newHarness(t)
	m := h.customer(email(1))
	var readers sync.WaitGroup
	done := make(chan struct{})
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					h.people(t.Context(), m.id)
				}
			}
		})
	}
	for i := range testenv.Rounds(20, 100, 1000) {
		name := fmt.Sprintf("Name %d", i)
		h.rename(m, m, name).want(t, 200, "")
		if got := h.people(t.Context(), m.id)[m.id].DisplayName; got != name {
			t.Errorf("after the rename to %s: %s", name, got)
		}
	}
	close(done)
	readers.Wait()
}

func TestLookups(t *testing.T) {
	h := newHarness(t)
	admin, m, gone := h.admin(), h.customer(email(1)), h.customer(email(2))
	h.call(admin.token, "PATCH", gone.path(""), map[string]any{"status": "disabled"}).want(t, 200, "")
	ctx, unknown := t.Context(), store.NewID()
	if active, err := h.service.Active(ctx, h.db, m.id, gone.id, unknown); err != nil || !maps.Equal(active, map[string]bool{m.id: true}) {
		t.Errorf("active: %v, %v", active, err)
	}
	addresses, err := h.service.Addresses(ctx, h.db, m.id, gone.id, unknown)
	if err != nil || len(addresses) != 1 || addresses[0].UserID != m.id || addresses[0].Value != email(1) || addresses[0].Channel != "email" || addresses[0].Language != "en" {
		t.Errorf("addresses: %+v, %v", addresses, err)
	}
	for address, want := range map[string][]string{strings.ToUpper(email(1)): {m.id}, "аnna.1@bank.example": {m.id}, email(3): nil} {
		if owners, err := h.service.WithAddress(ctx, h.db, evidence.Validated(address)); err != nil || !slices.Equal(owners, want) {
			t.Errorf("%s belongs to %v, %v", address, owners, err)
		}
	}
	if held, err := h.service.RolesOf(ctx, h.db, admin.id); err != nil || !slices.Equal(held, []string{access.Administrator, access.Everyone}) {
		t.Errorf("roles: %v, %v", held, err)
	}
}
