package browser_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

const longTown = "Llanfairpwllgwyngyllgogerychwyrndrobwllllantysiliogogogoch"

// No name makes a list wider than its page, whatever its length: neither a table nor a card at the width of a telephone.
func TestLists_HoldLongNames(t *testing.T) {
	s := sharedServer(t)
	me := s.newPerson("Administrator")
	token := s.token(me)
	long := strings.Repeat("Donaudampfschifffahrt", 4)
	customer := s.newCustomerIn(token, long, long, longTown)
	send := func(path string, body map[string]any) { s.call(token, http.MethodPost, path, body) }
	send("/v1/payers", map[string]any{"customer_id": customer, "name": long, "company": long, "country": "CHE"})
	send("/v1/customers/"+customer+"/tasks", map[string]any{"title": long, "category": "sign", "weight": 1})
	send("/v1/personas", map[string]any{"first_name": long, "last_name": long, "date_of_birth": "1980-02-29", "nationality": "CHE"})
	send("/v1/rbac/roles", map[string]any{"name": long[:40] + me.login, "description": long})
	s.call(token, http.MethodPut, "/v1/users/"+s.newPerson("Customer").id+"/roles", map[string]any{"roles": []string{long[:40] + me.login}})
	send("/v1/api-keys", map[string]any{"name": long + long[:10]})
	s.setName(me, long[:60])
	v := signedIn(t, s, desk, me)
	for _, l := range []look{{width: 1440, height: 900}, {width: 1024, height: 768}, {width: 360, height: 740}} {
		v.do(chromedp.EmulateViewport(l.width, l.height))
		for _, path := range []string{"/customers", "/personas", "/payers", "/customers/" + customer + "/tasks", "/customers/" + customer + "/payers",
			"/customers/" + customer, "/review/" + customer,
			"/admin/users", "/admin/roles", "/admin/keys", "/admin/audit", "/tasks"} {
			v.leaveFor(path)
			v.until(`document.querySelector('main table.data tbody tr, main .board, main .facts') && !document.querySelector('main .skeleton')`)
			if over := ask[int](v, `Math.max(document.documentElement.scrollWidth - innerWidth,
				...[...document.querySelectorAll('.table-box')].map((box) => box.scrollWidth - box.clientWidth))`); over > 0 {
				t.Errorf("%s at %d: %d pixels too wide", path, l.width, over)
			}
		}
	}
}

// The town with the longest name fits on a telephone: in the home of the customer, in its data and in the form for them.
func TestMyData_HoldsALongTown(t *testing.T) {
	s := sharedServer(t)
	me := s.newPerson("Customer")
	id := s.newCustomerIn(s.token(me), "Nina", "Keller", longTown)
	v := signedIn(t, s, look{width: 360, height: 740}, me)
	for _, path := range []string{"/", "/me/data", "/customers/" + id} {
		v.leaveFor(path)
		v.until(`document.querySelector('main h1') && !document.querySelector('main .skeleton')`)
		v.picture("town" + strings.ReplaceAll(path, "/", "-"))
		if over := ask[int](v, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
			t.Errorf("%s: %d pixels too wide", path, over)
		}
	}
}
