package browser_test

import (
	"net/http"
	"slices"
	"testing"

	"kontor/store/testenv"
)

const everyone = "0193b000-0000-7000-8000-000000000005" // the role that every active user holds

// everyoneLacks gives everyone all endpoints for own data but some.
func (s *testServer) everyoneLacks(token string, all []any, missing ...string) {
	s.t.Helper()
	rest := slices.DeleteFunc(slices.Clone(all), func(key any) bool { return slices.Contains(missing, key.(string)) })
	s.call(token, http.MethodPut, "/v1/rbac/roles/"+everyone+"/permissions", map[string]any{"endpoints": rest})
}

func (s *testServer) everyoneMay(token string) []any {
	s.t.Helper()
	return s.call(token, http.MethodGet, "/v1/rbac/roles/"+everyone+"/permissions", nil)["endpoints"].([]any)
}

// The page of the role says what it is, offers endpoints alone, and takes one from everyone. The console offers no more what everyone has
// lost, and requests nothing that would be refused.
func TestEveryone_LosesNotificationsInTheConsole(t *testing.T) {
	s := newServer(t)
	admin := s.token(firstAdmin)
	holder := s.newPerson("Customer")
	v := signedInAt(t, s, desk, firstAdmin, "/admin/roles/"+everyone)
	v.see("Every active user has this role")
	v.until(`document.querySelectorAll('details').length > 0 && !document.querySelector('table.matrix')`)
	v.eval(`document.querySelectorAll('details').forEach((one) => { one.open = true })`)
	v.eval(`[...document.querySelectorAll('.code')].find((one) => one.innerText === 'GET /v1/notifications').closest('label').querySelector('input').click()`)
	v.clickText("Save")
	v.gone(`.save-bar`)
	v.picture("everyone")
	left := s.everyoneMay(admin)
	if slices.Contains(left, "GET /v1/notifications") {
		t.Fatalf("everyone may still call %v", left)
	}
	s.everyoneLacks(admin, left, "GET /v1/notifications/sse", "GET /v1/notifications/unread-count", "GET /v1/profile/views")

	h := newVisitor(t, s, desk)
	h.open("/healthz")
	h.enter(holder)
	h.until(`document.querySelector('.side-menu a[href="/chats"]')`)
	h.until(`!document.querySelector('a[href="/notifications"]')`)
	h.open("/notifications")
	h.see("None of your roles includes this screen.")
	h.open("/chats")
	h.until(`document.querySelector('main h1')`)
	h.open("/profile")
	h.until(`document.querySelector('main h1')`)
}

// The console names the endpoint that it cannot do without, and the user can leave. Signing out ends the session in the browser at least.
func TestEveryone_TheConsoleSaysWhatIsMissing(t *testing.T) {
	s := newServer(t)
	admin := s.token(firstAdmin)
	all := s.everyoneMay(admin)
	holder := s.newPerson("Customer")
	for _, missing := range []string{"GET /v1/users/me", "POST /v1/rbac/check"} {
		s.everyoneLacks(admin, all, missing)
		h := newVisitor(t, s, desk)
		h.ignoring = true
		h.open("/healthz")
		h.keepSession(holder)
		h.open("/")
		h.see("None of your roles includes this operation.")
		h.see(missing)
		h.clickText("Sign out")
		h.until(`location.pathname === '/signin'`)
	}
	s.everyoneLacks(admin, all, "POST /v1/logout", "GET /v1/profile/preferences", "PUT /v1/profile/preferences", "GET /v1/profile", "POST /v1/notifications/{notification_id}/hide")
	h := newVisitor(t, s, desk)
	h.ignoring = true
	h.open("/healthz")
	h.enter(holder)
	h.open("/profile")
	h.until(`document.querySelector('main input[name=theme]')`)
	h.click(`main input[name=theme][value=dark]`)
	h.see("None of your roles includes this operation.")
	h.click(`.top button[title]:last-of-type`)
	h.see("You are signed out in this browser only")
	h.until(`location.pathname === '/signin'`)
}

// Hiding a notification can be undone for ten seconds. Then it has left the list.
func TestNotifications_AreHidden(t *testing.T) {
	s := sharedServer(t)
	me := s.newPerson("Customer")
	s.call("", http.MethodPost, "/v1/notifications/trigger", map[string]any{"title_key": "Hello", "content": "Read me", "user_ids": []string{me.id}}, "X-API-Key", apiKey)
	token := s.token(me)
	total := func() float64 {
		return s.call(token, http.MethodGet, "/v1/notifications?search.content=Read%20me", nil)["total"].(float64)
	}
	v := signedInAt(t, s, desk, me, "/notifications")
	v.see("Read me")
	v.holdTimers(undoTime)
	const hide, shown = `.inbox li:has(p.fine) button[aria-label="Hide: Hello"]`, `document.querySelector('.inbox').innerText.includes('Read me')`
	v.click(hide)
	v.until(`!document.querySelector('.inbox')?.innerText.includes('Read me')`)
	v.clickText("Undo")
	v.until(shown)
	if total() != 1 {
		t.Error("the notification is hidden before its time")
	}
	v.click(hide)
	v.until(`!document.querySelector('.inbox')?.innerText.includes('Read me')`)
	v.runTimers()
	testenv.Wait(t, "the end of the notification", func() bool { return total() == 0 })
}
