package browser_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/chromedp/chromedp"
)

// view is a screen, a tab or a dialog of the console.
type view struct {
	name, path string // an empty path continues from the former view
	steps      []step // from the screen to the view
	drawn      string // a selector that matches once the view is complete
	narrow     bool   // only on a narrow display
}

// step is an action of a visitor.
type step func(v *visitor)

// press clicks the button with the text of a key in the visitor's language.
func press(key string) step { return func(v *visitor) { v.clickText(v.text(key)) } }

func click(selector string) step { return func(v *visitor) { v.click(selector) } }

// tap clicks an element that is outside of the window or moves.
func tap(selector string) step {
	return func(v *visitor) {
		v.until(fmt.Sprintf(`document.querySelector(%q)`, selector))
		v.eval(fmt.Sprintf(`document.querySelector(%q).click()`, selector))
	}
}

func write(selector, text string) step { return func(v *visitor) { v.write(selector, text) } }

func choose(selector, value string) step { return func(v *visitor) { v.choose(selector, value) } }

func see(selector string) step {
	return func(v *visitor) { v.until(fmt.Sprintf(`document.querySelector(%q)`, selector)) }
}

// scroll brings an element into view, for what is loaded when it is seen.
func scroll(selector string) step {
	return func(v *visitor) {
		v.until(fmt.Sprintf(`(document.querySelector(%[1]q)?.scrollIntoView({ block: 'center' }), document.querySelector(%[1]q))`, selector))
	}
}

// upload chooses a sample file in a field.
func upload(selector, name string) step {
	return func(v *visitor) {
		v.t.Helper()
		path, err := filepath.Abs(filepath.Join("../../testdata/qr/files", name))
		if err != nil {
			v.t.Fatal(err)
		}
		v.do(chromedp.SetUploadFiles(chromedp.CSS(selector), []string{path}, chromedp.NodeReady))
	}
}

const (
	form         = "dialog[open] form"
	confirmation = "dialog[open] button.danger" // the button of a question
	removeButton = "main .items > li > button.bare"
	unknownID    = "0193a000-0000-7000-8000-000000000001" // the id of no record
)

// signedOutViews returns the views before sign-in.
func signedOutViews() []view {
	application := func(kind, value string) []step {
		return []step{choose(`select[name=credential_type]`, kind), write(`input[name=credential_value]`, value), write(`input[name=password]`, "four words in a row"),
			click(`input[name=terms_accepted]`), click(`input[name=privacy_policy_accepted]`), click(`button[type=submit]`)}
	}
	unique := registered.Add(1)
	return []view{
		{name: "sign in", path: "/signin", drawn: `input[name=login]`},
		{name: "sign in rejected", path: "/signin", steps: []step{write(`input[name=login]`, fmt.Sprintf("x%d", unique)), write(`input[name=password]`, "x"), click(`button[type=submit]`)}, drawn: `[role=alert]`},
		{name: "sign in for the first time", path: "/signin", steps: []step{see(`.auth-more`), tap(`summary`)}, drawn: `details[open]`},
		{name: "register without a key", path: "/register", drawn: `input[name=api_key]`},
		{name: "register", path: "/register#key=" + apiKey, drawn: `input[name=credential_value]`},
		{name: "register with errors", path: "/register", steps: []step{click(`button[type=submit]`)}, drawn: `[aria-invalid=true]`},
		{name: "register: the code", path: "/register", steps: application("email", fmt.Sprintf("view-%d@example.ch", unique)), drawn: `input[name=otp]`},
		{name: "register: the code again", path: "/register", drawn: `input[name=otp] ~ *, input[name=password]`},
		{name: "register: waiting", path: "/register", steps: append([]step{see(`input[name=otp]`), press("register.restart"), see(`input[name=credential_value]`)}, application("username", fmt.Sprintf("view-%d", unique))...), drawn: `a.button[href="/signin"]`},
		{name: "an invitation that is not valid", path: "/invitation#x", drawn: `a.button[href="/signin"]`},
		{name: "recover", path: "/recover", drawn: `input[name=credential_value]`},
		{name: "recover: the code", path: "/recover", steps: []step{write(`input[name=credential_value]`, fmt.Sprintf("x%d@example.ch", unique)), click(`button[type=submit]`)}, drawn: `input[name=otp]`},
	}
}

// explorer returns the views of the API explorer.
func explorer() []view {
	const tag = `#operations-tag-Customers button`
	const operation = `.opblock[id*="customers"][id$=".create"] `
	return []view{ // One page: each view continues from the former one.
		{name: "explorer", path: "/docs", drawn: ".opblock-tag"},
		{name: "explorer: an operation", steps: []step{tap(tag), tap(operation + ".opblock-summary-control")}, drawn: operation + ".responses-table"},
		{name: "explorer: trying it", steps: []step{tap(operation + ".try-out__btn"), tap(operation + ".execute")}, drawn: operation + ".live-responses-table"},
		{name: "explorer: search", steps: []step{func(v *visitor) { v.eval(`document.querySelector('#side-box').open = true`) }, write(`.side input`, "customers"), see(`.side-group[open]`)}, drawn: ".side-group[open] li"},
		{name: "explorer: tokens", steps: []step{tap(".btn.authorize")}, drawn: ".auth-container"},
	}
}

// views creates records of every type and returns all views of the console for them.
func (s *testServer) views(me person) []view {
	s.t.Helper()
	token := s.token(me)
	send := func(method, path string, body any) map[string]any { return s.call(token, method, path, body) }
	id := func(record map[string]any) string { return record["id"].(string) }

	customer := "/customers/" + s.newCustomer(token, "Luca", "Bernasconi")
	send(http.MethodPut, "/v1"+customer+"/kyc", map[string]any{"documents": []any{map[string]any{"type": "passport", "number": "X123", "expiry_date": "2099-01-01", "country": "CHE"}}})
	pending := s.waitingCase(token, "Mara", "Wartet")
	proposal := "/review/" + s.waitingCase(token, "Nils", "Zwei")
	for _, body := range []map[string]any{{"kyc_status": "in_review"}, {"kyc_status": "verified", "verification_level": "enhanced", "reason": "Funds documented."}} {
		s.call(s.token(s.newPerson("Advisor")), http.MethodPatch, "/v1/customers/"+proposal[len("/review/"):]+"/kyc/status", body)
	}
	payer := "/payers/" + id(send(http.MethodPost, "/v1/payers", map[string]any{"customer_id": customer[len("/customers/"):], "name": "Anna Müller", "company": "Müller AG", "country": "CHE"}))
	task := customer + "/tasks/" + id(send(http.MethodPost, "/v1"+customer+"/tasks", map[string]any{"title": "Sign the contract", "category": "sign", "weight": 1, "is_urgent": true, "assignees": []any{map[string]any{"user_id": me.id, "name": "Anna Müller", "weight": 2}}}))
	persona := "/personas/" + id(send(http.MethodPost, "/v1/personas", map[string]any{"first_name": "Luca", "last_name": "Bernasconi", "date_of_birth": "1980-02-29", "nationality": "CHE"}))
	spouse := id(send(http.MethodPost, "/v1/personas", map[string]any{"first_name": "Mia", "last_name": "Bernasconi", "date_of_birth": "1981-03-01", "nationality": "CHE"}))
	send(http.MethodPost, "/v1"+persona+"/links", map[string]any{"linked_persona_id": spouse, "relation": "spouse"})
	send(http.MethodPost, "/v1"+persona+"/users", map[string]any{"user_id": me.id})
	other := s.newPerson("Advisor")
	chat := "/chats/" + id(send(http.MethodPost, "/v1/chats", map[string]any{"participants": []any{other.id}}))
	for _, words := range []string{"Grüezi", "Is the contract there?"} {
		send(http.MethodPost, "/v1"+chat+"/messages", map[string]any{"content": words})
	}
	s.call(s.token(other), http.MethodPost, "/v1"+chat+"/messages", map[string]any{"content": "It is."})
	send(http.MethodPost, "/v1/users/"+me.id+"/credentials", map[string]any{"credential_type": "email", "credential_value": "more-" + me.login, "password": me.password})
	role := id(send(http.MethodPost, "/v1/rbac/roles", map[string]any{"name": "Auditor " + me.login, "description": "Reads everything"}))
	for _, grant := range []map[string]any{{"rec_type": "customers", "permissions": []any{"read", "read_all"}}, {"endpoint": "GET /v1/customers"},
		{"rec_type": "customers", "rec_id": customer[len("/customers/"):], "permissions": []any{"update"}}} {
		grant["role_id"] = role
		send(http.MethodPost, "/v1/rbac/grants", grant)
	}
	send(http.MethodPut, "/v1"+customer, map[string]any{"last_name": "Bernasconi-Müller", "address": map[string]any{"city": "Lugano", "country": "CHE"}})
	send(http.MethodPost, "/v1/invitations", map[string]any{"email": "invited-" + me.login, "roles": []any{"Advisor"}})
	send(http.MethodPut, "/v1/rate-limits", map[string]any{"endpoint": "GET /v1/audit", "per_minute": 600})
	send(http.MethodPost, "/v1/api-keys", map[string]any{"name": "Branch " + time.Now().Format(time.TimeOnly)})

	return []view{
		{name: "overview", path: "/", drawn: ".figures"},
		{name: "menu", path: "/", steps: []step{click(`.only-narrow`)}, drawn: "dialog[open].drawer", narrow: true},
		{name: "palette", path: "/", steps: []step{click(`.palette-button`), write(`dialog input[role=combobox]`, "luc")}, drawn: "dialog.palette [role=option]"},
		{name: "finder", path: "/", steps: []step{click(`.palette-button`), write(`dialog input[role=combobox]`, "bernasconi")}, drawn: `dialog.palette [role=group] mark`},
		{name: "palette without results", path: "/", steps: []step{click(`.palette-button`), write(`dialog input[role=combobox]`, "nobody-is-called-so")}, drawn: ".palette-none"},
		{name: "customers", path: "/customers", drawn: "table.data"},
		{name: "columns of a list", path: "/customers", steps: []step{press("list.columns")}, drawn: ".menu-panel label"},
		{name: "saved views of a list", path: "/customers", steps: []step{press("list.views")}, drawn: ".menu-form"},
		{name: "selected rows", path: "/payers", steps: []step{see("tbody .select"), tap("tbody .select input")}, drawn: ".bulk"},
		{name: "country by name", path: "/customers?new=1", steps: []step{see(form), click(`input[name=nationality]`)}, drawn: `dialog [role=option]`},
		{name: "unsaved input", path: "/customers?new=1", steps: []step{write(`input[name=first_name]`, "Anna"), click(`dialog header button`)}, drawn: `article > p + .actions .danger`},
		{name: "no customers", path: "/customers?q=nobody-is-called-so", drawn: ".empty"},
		{name: "new customer", path: "/customers?new=1", drawn: form},
		{name: "new customer with errors", path: "/customers?new=1", steps: []step{click(form + ` button[type=submit]`)}, drawn: form + ` [aria-invalid=true]`},
		{name: "customer", path: customer, drawn: ".facts"},
		{name: "customer editing", path: customer, steps: []step{press("do.edit")}, drawn: form},
		{name: "verification", path: customer + "/kyc", drawn: ".steps"},
		{name: "evidence", path: customer + "/kyc", steps: []step{upload(fileField, "qr-only-b27-05.png"), scroll(".files li .thumbnail")}, drawn: ".files li .thumbnail canvas"},
		{name: "evidence of another type", path: customer + "/kyc", steps: []step{upload(fileField, "formats-b27-04.gif")}, drawn: ".files li.failed"},
		{name: "evidence in a viewer", path: customer + "/kyc", steps: []step{upload(fileField, "qr-only-b27-05.png"), scroll(".files li .thumbnail"), tap(".files li button:has(canvas)")}, drawn: "dialog[open] .sheet canvas"},
		{name: "evidence deleting", path: customer + "/kyc", steps: []step{see(".files li"), tap(".files li > button.bare:last-child")}, drawn: confirmation},
		{name: "document", path: customer + "/kyc", steps: []step{press("kyc.add")}, drawn: form},
		{name: "decision", path: customer + "/kyc", steps: []step{press("kyc.decide")}, drawn: form},
		{name: "decision with a warning", path: customer + "/kyc", steps: []step{press("kyc.decide"), click(form + ` [value=rejected]`)}, drawn: `.template`},
		{name: "review", path: "/review", drawn: "table.data"},
		{name: "review of nothing", path: "/review?country=ABW", drawn: ".empty"},
		{name: "case", path: "/review/" + pending, drawn: ".review-decision fieldset"},
		{name: "case: verifying", path: "/review/" + pending, steps: []step{click(`.review-decision [value=verified]`)}, drawn: ".derivation"},
		{name: "case: asking for more", path: "/review/" + pending, steps: []step{click(`.review-decision [value=action_required]`), see(".template"), tap(`.decision button[type=submit]`)}, drawn: ".decision [aria-invalid=true]"},
		{name: "case for a second person", path: proposal, drawn: ".confirm-decision"},
		{name: "keys of the review", path: "/review/" + pending, steps: []step{press("review.keys")}, drawn: "dialog[open] kbd"},
		{name: "customer's tasks", path: customer + "/tasks", drawn: "table.data"},
		{name: "customer's new task", path: customer + "/tasks", steps: []step{press("tasks.new")}, drawn: form},
		{name: "customer's payers", path: customer + "/payers", drawn: "table.data"},
		{name: "customer's new payer", path: customer + "/payers", steps: []step{press("payers.new")}, drawn: form},
		{name: "customer's notifications", path: customer + "/notifications", drawn: "main .card"},
		{name: "customer's data protection", path: customer + "/privacy", drawn: "main .card .facts"},
		{name: "legal hold", path: customer + "/privacy", steps: []step{press("privacy.hold_set")}, drawn: form},
		{name: "end of a relationship", path: customer + "/privacy", steps: []step{press("privacy.end")}, drawn: form},
		{name: "erasing", path: customer + "/privacy", steps: []step{press("privacy.erase")}, drawn: form},
		{name: "missing customer", path: "/customers/" + unknownID, drawn: "[role=alert]"},
		{name: "personas", path: "/personas", drawn: "table.data"},
		{name: "new persona", path: "/personas?new=1", drawn: form},
		{name: "persona", path: persona, drawn: ".graph"},
		{name: "persona editing", path: persona, steps: []step{press("do.edit")}, drawn: form},
		{name: "persona link", path: persona, steps: []step{press("personas.link"), see(form), click(`dialog input[role=combobox]`)}, drawn: `dialog [role=option]`},
		{name: "persona unlinking", path: persona, steps: []step{see(".graph"), click(".graph ~ .items button.bare")}, drawn: confirmation},
		{name: "payers", path: "/payers", drawn: "table.data"},
		{name: "new payer", path: "/payers?new=1", steps: []step{see(form), click(`dialog input[role=combobox]`)}, drawn: `dialog [role=option]`},
		{name: "payer", path: payer, drawn: ".facts"},
		{name: "payer editing", path: payer, steps: []step{press("do.edit")}, drawn: form},
		{name: "payer deactivating", path: payer, steps: []step{press("payers.deactivate")}, drawn: confirmation},
		{name: "tasks", path: "/tasks", drawn: ".board"},
		{name: "board with filters", path: "/tasks?scope=all&status=pending&assignee=" + me.id + "&" + strings.Replace(customer[1:], "customers/", "customer=", 1), drawn: ".filter .chip"},
		{name: "tasks as a list", path: "/tasks?view=list", drawn: "table.data"},
		{name: "new task", path: "/tasks?new=1", drawn: form},
		{name: "task", path: task, drawn: ".timeline"},
		{name: "task editing", path: task, steps: []step{press("do.edit")}, drawn: form},
		{name: "assignee", path: task, steps: []step{press("tasks.assign")}, drawn: form},
		{name: "chats", path: "/chats", drawn: ".chats .row-link"},
		{name: "chat", path: chat, drawn: ".message"},
		{name: "new chat", path: "/chats?new=1", steps: []step{write(`dialog input[role=combobox]`, other.id), click(`dialog [role=option]`)}, drawn: "dialog .chip"},
		{name: "notifications", path: "/notifications", drawn: ".card"},
		{name: "notifications, some selected", path: "/notifications", steps: []step{click(`.inbox .pick input`)}, drawn: ".bulk"},
		{name: "invoices", path: "/invoices", drawn: ".drop"},
		{name: "camera", path: "/invoices", steps: []step{press("invoices.camera")}, drawn: ".camera button:not(:disabled)"},
		{name: "payment part", path: "/invoices", steps: []step{upload(`input[type=file]`, "qr-only-b27-05.png")}, drawn: ".paper"},
		{name: "payment part with violations", path: "/invoices", steps: []step{upload(`input[type=file]`, "dmg-badcurrency.pdf")}, drawn: ".findings"},
		{name: "unreadable invoice", path: "/invoices", steps: []step{upload(`input[type=file]`, "noqr-white.png")}, drawn: "[role=alert]"},
		{name: "profile", path: "/profile", drawn: ".segments"},
		{name: "password with errors", path: "/profile/security", steps: []step{see(`input[name=old_password]`), func(v *visitor) { v.eval(`document.querySelector('input[name=old_password]').form.requestSubmit()`) }}, drawn: "[aria-invalid=true]"},
		{name: "new credential", path: "/profile/security", steps: []step{press("credentials.add")}, drawn: form},
		{name: "credential's code", path: "/profile/security", steps: []step{press("otp.do")}, drawn: form},
		{name: "credential removing", path: "/profile/security", steps: []step{click(removeButton)}, drawn: confirmation},
		{name: "session ending", path: "/profile/security", steps: []step{press("sessions.end")}, drawn: confirmation},
		{name: "users", path: "/admin/users", drawn: "table.data"},
		{name: "user", path: "/admin/users/" + other.id, drawn: ".facts"},
		{name: "own user", path: "/admin/users/" + me.id, drawn: "fieldset[disabled]"},
		{name: "user disabling", path: "/admin/users/" + other.id, steps: []step{press("admin.disable")}, drawn: confirmation},
		{name: "explain access", path: "/admin/users/" + other.id, steps: []step{press("access.check")}, drawn: "[aria-live] .badge"},
		{name: "inviting", path: "/admin/users", steps: []step{press("invite.new")}, drawn: form + ` input[type=checkbox]`},
		{name: "invitations", path: "/admin/users", drawn: `main section.card table.data button.danger`},
		{name: "withdrawing an invitation", path: "/admin/users", steps: []step{click(`main table.data button.danger`)}, drawn: confirmation},
		{name: "who may see this", path: customer, steps: []step{press("access.who_sees")}, drawn: "dialog[open] .reasons"},
		{name: "who may see a chat", path: chat, steps: []step{press("access.who_sees")}, drawn: "dialog[open] .reasons"},
		{name: "roles", path: "/admin/roles", drawn: "table.data"},
		{name: "new role", path: "/admin/roles", steps: []step{press("roles.new")}, drawn: form},
		{name: "role", path: "/admin/roles/" + role, drawn: ".matrix"},
		{name: "role with changes", path: "/admin/roles/" + role, steps: []step{tap(`.matrix tbody tr:nth-child(2) input`), tap(`main details summary`)}, drawn: ".save-bar"},
		{name: "a role that cannot be changed", path: "/admin/roles/0193b000-0000-7000-8000-000000000001", drawn: ".matrix input:disabled"},
		{name: "role editing", path: "/admin/roles/" + role, steps: []step{press("do.edit")}, drawn: form},
		{name: "role removing", path: "/admin/roles/" + role, steps: []step{press("roles.remove")}, drawn: confirmation},
		{name: "grant on a record", path: "/admin/roles/" + role, steps: []step{press("matrix.new_on_record")}, drawn: form},
		{name: "grant removing", path: "/admin/roles/" + role, steps: []step{tap(removeButton)}, drawn: confirmation},
		{name: "endpoints", path: "/admin/endpoints", drawn: "table.data"},
		{name: "limits", path: "/admin/limits", drawn: "table.data"},
		{name: "new limit", path: "/admin/limits", steps: []step{press("limits.set")}, drawn: form},
		{name: "limit editing", path: "/admin/limits", steps: []step{press("do.edit")}, drawn: form},
		{name: "keys", path: "/admin/keys", drawn: "table.data"},
		{name: "service accounts", path: "/admin/services", drawn: "main"},
		{name: "new service account", path: "/admin/services", steps: []step{press("services.new")}, drawn: form},
		{name: "the new service account", path: "/admin/services", steps: []step{press("services.new"), write(`dialog input[name=name]`, "Back office"), click(form + ` button[type=submit]`)}, drawn: "dl.facts"},
		{name: "webhooks", path: "/admin/webhooks", drawn: "main"},
		{name: "new webhook", path: "/admin/webhooks", steps: []step{press("webhooks.new")}, drawn: form},
		{name: "the secret of a webhook", path: "/admin/webhooks", steps: []step{press("webhooks.new"), write(`dialog input[name=url]`, "https://hooks.example/kontor"), click(form + ` button[type=submit]`)}, drawn: "dialog p.secret"},
		{name: "a webhook", path: "/admin/webhooks", steps: []step{press("webhooks.new"), write(`dialog input[name=url]`, "https://hooks.example/kontor"),
			click(form + ` button[type=submit]`), see("dialog p.secret"), press("webhooks.saved")}, drawn: "dl.facts"},
		{name: "new key", path: "/admin/keys", steps: []step{press("keys.new")}, drawn: form},
		{name: "the new key", path: "/admin/keys", steps: []step{press("keys.new"), write(`dialog input[name=name]`, "Intranet"), click(form + ` button[type=submit]`)}, drawn: "dialog .secret"},
		{name: "key revoking", path: "/admin/keys", steps: []step{press("keys.revoke")}, drawn: confirmation},
		{name: "deliveries", path: "/admin/deliveries", drawn: "table.data"},
		{name: "delivery", path: "/admin/deliveries", steps: []step{click(`table.data button.link`)}, drawn: "dialog[open] .facts"},
		{name: "audit", path: "/admin/audit", drawn: "table.data"},
		{name: "audit verify", path: "/admin/audit/verify", drawn: "main textarea"},
		{name: "audit of one record", path: "/admin/audit?rec_id=" + customer[len("/customers/"):] + "&from=2020-01-01", drawn: ".chosen"},
		{name: "changed fields", path: "/admin/audit?kind=change&rec_id=" + customer[len("/customers/"):], steps: []step{click(`table.data button.link`)}, drawn: "dialog[open] table.changes"},
		{name: "audit entry", path: "/admin/audit", steps: []step{click(`table.data button.link`)}, drawn: "dialog[open] .facts"},
		{name: "health", path: "/admin/health", drawn: ".tiles"},
		{name: "health: all counters", path: "/admin/health", steps: []step{see(".tiles"), tap(`main details summary`)}, drawn: "details[open] table.data"},
		{name: "not found", path: "/customers/x/y/z", drawn: ".empty"},
		{name: "malformed escape", path: "/customers/%", drawn: ".empty"},
		{name: "saved", path: "/profile", steps: []step{see(`.segments`), func(v *visitor) { v.holdTimers(messageTime) }, func(v *visitor) { v.eval(`document.querySelector('input[name=date_format]:not(:checked)').click()`) }}, drawn: ".toast"},
		{name: "sign in again", path: "/profile", steps: []step{(*visitor).runTimers, func(v *visitor) { v.server.endSessions(me) }, func(v *visitor) { v.goTo("/customers") }}, drawn: `dialog[open] input[type=password]`},
	}
}
