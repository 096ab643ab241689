package browser_test

import (
	"net/http"
	"slices"
	"testing"

	"kontor/store"
)

// A role that is made in the console brings the endpoints of its permissions, which are shown before they are saved. Its holders can
// sign in, read their profile and notifications, and work with the records of the role. The console offers what they may call, and
// requests nothing else.
func TestOwnRole_ItsHoldersCanWork(t *testing.T) {
	s := sharedServer(t)
	me := s.newPerson("Administrator")
	admin := s.token(me)
	name := "Desk of " + me.login
	v := signedInAt(t, s, desk, me, "/admin/roles")
	v.clickText("New role")
	v.write(`dialog input[name=name]`, name)
	v.submit(`dialog input[name=name]`)
	v.until(`location.pathname.startsWith('/admin/roles/') && document.querySelector('table.matrix')`)
	v.click(`input[aria-label="Read all: Customers"]`)
	v.see("They are added, and marked below.")
	v.until(`[...document.querySelectorAll('details[open] .changed .code')].some((one) => one.innerText === 'GET /v1/customers')`)
	v.picture("role_endpoints")
	v.clickText("Save")
	v.gone(`.save-bar`)

	holder := s.newPerson("Customer")
	s.call(admin, http.MethodPut, "/v1/users/"+holder.id+"/roles", map[string]any{"roles": []string{name}})
	id := s.newCustomer(admin, "Rolf", "Rollenprobe")
	h := newVisitor(t, s, desk)
	h.open("/healthz")
	h.enter(holder)
	h.until(`document.querySelectorAll('.figure').length === 2`) // customers and notifications
	offered := ask[[]string](h, `[...document.querySelectorAll('.side-menu a:not(.brand)')].map((one) => one.getAttribute('href'))`)
	if want := []string{"/", "/customers", "/notifications"}; !slices.Equal(offered, want) {
		t.Errorf("the menu has %q, want %q", offered, want)
	}
	h.picture("own_role")
	h.goTo("/customers")
	h.until(`document.querySelector('main table.data')`)
	h.open("/customers/" + id)
	h.see("Rollenprobe")
	h.open("/tasks")
	h.see("None of your roles includes this screen.")
	h.goTo("/profile")
	h.until(`document.querySelector('main h1')`)
	h.goTo("/notifications")
	h.until(`document.querySelector('main h1')`)
}

// A holder of a role without any permission can sign in, and each refusal says its reason.
func TestOwnRole_ARefusalSaysItsReason(t *testing.T) {
	s := sharedServer(t)
	me := s.newPerson("Administrator")
	admin := s.token(me)
	name := "Empty of " + me.login
	s.call(admin, http.MethodPost, "/v1/rbac/roles", map[string]any{"name": name})
	holder := s.newPerson("Customer")
	s.call(admin, http.MethodPut, "/v1/users/"+holder.id+"/roles", map[string]any{"roles": []string{name}})
	h := newVisitor(t, s, desk)
	h.ignoring = true
	h.open("/healthz")
	h.enter(holder)
	h.until(`document.querySelector('.shell') && !document.body.innerText.includes('Almost there')`)
	h.open("/customers/" + store.NewID())
	h.see("None of your roles includes this operation.")
}
