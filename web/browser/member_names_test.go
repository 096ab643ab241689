package browser_test

import "testing"

// An error about a member that no field shows names it in the words of the form, and a country that does not exist is not sent.
func TestForms_NameMembersInTheirWords(t *testing.T) {
	s := sharedServer(t)
	me := s.newPerson("Administrator")
	v := signedIn(t, s, desk, me)
	v.expect("400")
	account := s.call(s.token(me), "POST", "/v1/service-accounts", map[string]any{"name": "Words of " + me.login, "roles": []string{"Advisor"}})["id"].(string)
	v.goTo("/admin/services/" + account)
	v.see(v.text("services.no_tokens_text"))
	v.clickText(v.text("services.token_new"))
	v.write(`dialog input[name=name]`, "Nightly")
	v.write(`dialog textarea[name=networks]`, "192.0.2.0/24, 300.1")
	v.click(`dialog button[type=submit]`)
	v.until(`document.querySelector('dialog .notice.bad li')?.innerText.startsWith('` + v.text("services.networks") + `: ')`)
	v.picture("member_names")

	v.goTo("/admin/nothing")
	v.until(`!document.querySelector('dialog')`)
	v.goTo("/customers?new=1")
	v.write(`dialog input[name=first_name]`, "Lara")
	v.write(`dialog input[name=last_name]`, "Land")
	v.write(`dialog input[name=email]`, "lara@example.ch")
	v.write(`dialog input[name=nationality]`, "Atlantis")
	v.click(`dialog button[type=submit]`)
	v.see(v.text("country.unknown"))
	v.until(`document.activeElement === document.querySelector('dialog input[name=nationality]')`)
}

// Empty lists say what they are for, and offer the first step.
func TestEmptyLists_OfferTheFirstStep(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--requests.keep", "100")
	v := signedIn(t, s, desk, firstAdmin)
	for path, want := range map[string][2]string{
		"/admin/deliveries": {"deliveries.none_text", `main .empty a[href="/admin/users"]`},
		"/admin/webhooks":   {"webhooks.none_text", `main .empty button`},
		"/personas":         {"personas.none_text", `main .empty button`},
		"/payers":           {"payers.none_text", `main .empty button`},
		"/customers":        {"customers.none_text", `main .empty :is(a, button)`},
		"/tasks":            {"tasks.none_text", `main .empty`},
		"/notifications":    {"notifications.none_text", `main .empty`},
		"/admin/services":   {"services.none_text", `main .empty button`},
	} {
		v.goTo(path)
		v.until(`document.querySelector('` + want[1] + `')`)
		v.see(v.text(want[0]))
	}
}
