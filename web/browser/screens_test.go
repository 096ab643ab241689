package browser_test

import (
	"context"
	_ "embed"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

//go:embed testdata/axe.min.js
var axe string

// screen is one screen, with what shows that it is drawn.
type screen struct {
	name, path, drawn string
}

func screens(b *bank) []screen {
	token := b.token(boss)
	customer := b.newCustomer(token, "Luca", "Bernasconi")
	b.newCustomer(token, "Anna", "Müller")
	me := b.call(token, http.MethodGet, "/v1/users/me", nil)["id"].(string)
	role := b.call(token, http.MethodGet, "/v1/rbac/roles?limit=1&search.name=Advisor", nil)["data"].([]any)[0].(map[string]any)["id"].(string)
	b.call(token, http.MethodPut, "/v1/customers/"+customer+"/kyc", map[string]any{"documents": []any{map[string]any{"type": "passport", "number": "X123", "expiry_date": "2099-01-01", "country": "CHE"}}})
	b.call(token, http.MethodPut, "/v1/rate-limits", map[string]any{"endpoint": "GET /v1/audit", "per_minute": 600})
	return []screen{
		{"overview", "/", ".figures"},
		{"customers", "/customers", "table.data"},
		{"customer", "/customers/" + customer, ".facts"},
		{"customer editing", "/customers?new=1", "dialog form"},
		{"verification", "/customers/" + customer + "/kyc", ".steps"},
		{"personas", "/personas", ".card"},
		{"payers", "/payers", ".card"},
		{"tasks", "/tasks", "main .card, main .board"},
		{"chats", "/chats", ".messenger"},
		{"notifications", "/notifications", ".card"},
		{"invoices", "/invoices", ".drop"},
		{"profile", "/profile", ".segments"},
		{"users", "/admin/users", "table.data"},
		{"user", "/admin/users/" + me, ".facts"},
		{"roles", "/admin/roles", "table.data"},
		{"role", "/admin/roles/" + role, ".items"},
		{"endpoints", "/admin/endpoints", "table.data"},
		{"limits", "/admin/limits", "table.data"},
		{"keys", "/admin/keys", "table.data"},
		{"deliveries", "/admin/deliveries", ".card"},
		{"audit", "/admin/audit", "table.data"},
		{"health", "/admin/health", ".metrics"},
		{"missing", "/customers/x/y/z", ".empty"},
	}
}

var doors = []screen{
	{"sign in", "/signin", "input[name=login]"},
	{"register", "/register", "input[name=credential_value]"},
	{"recover", "/recover", "input[name=credential_value]"},
}

// Every screen, on wide and narrow displays, light and dark: axe finds nothing, nothing sticks
// out at the side, and the browser's console stays silent.
func TestScreens_AreAccessibleAndFit(t *testing.T) {
	b := sharedBank(t)
	all := screens(b)
	for _, l := range []look{{1280, 900, false}, {768, 1000, true}, {360, 740, false}, {360, 740, true}} {
		t.Run(fmt.Sprintf("%d dark=%v", l.width, l.dark), func(t *testing.T) {
			outside := newVisitor(t, b, l)
			for _, door := range doors {
				outside.open(door.path)
				outside.examine(door)
			}
			v := signedIn(t, b, l, boss)
			for _, one := range all {
				v.open(one.path)
				v.examine(one)
			}
		})
	}
}

// examine waits until a screen is drawn and everything is loaded, and looks at it.
func (v *visitor) examine(s screen) {
	v.t.Helper()
	v.until(fmt.Sprintf(`document.querySelector(%q) && !document.querySelector('.skeleton')`, s.drawn))
	if over := ask[int](v, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
		v.t.Errorf("%s: the page is %d px wider than the window", s.name, over)
	}
	v.mutex.Lock()
	v.deaf = true // axe tries out style sheets of its own, which the policy refuses aloud.
	v.mutex.Unlock()
	v.do(func(ctx context.Context, tab *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.Evaluate[bool](axe+"\n;true")(ctx, tab)
		return chromedp.Void{}, err
	})
	found := ask[[]string](v, `axe.run({ runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] }).then(({ violations }) =>
		violations.map((one) => one.id + ': ' + one.nodes.map((node) => node.target.join(' ')).join(' | ')))`)
	if len(found) > 0 {
		v.t.Errorf("%s: axe finds\n  %s", s.name, strings.Join(found, "\n  "))
	}
	v.open("/healthz") // Leaves the page, and with it what axe has provoked.
	v.mutex.Lock()
	v.deaf = false
	v.mutex.Unlock()
}
