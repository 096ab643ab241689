package browser_test

import "testing"

// Endpoints are described in the user's language, in their list and in the permissions of a role, and found by these words.
func TestEndpoints_AreDescribedInTheLanguageOfTheUser(t *testing.T) {
	s := sharedServer(t)
	me := s.newPerson("Administrator")
	role := s.call(s.token(me), "POST", "/v1/rbac/roles", map[string]any{"name": "Words for " + me.login})["id"].(string)
	v := signedIn(t, s, desk, me)
	v.setLanguage("de")
	v.open("/admin/endpoints")
	v.see("Einen Zahler lesen.")
	v.write(`main input[type=search]`, "Zahler auflisten")
	v.until(`document.querySelectorAll('table.data tbody tr').length === 1 && document.querySelector('table.data').innerText.includes('/v1/payers')`)
	v.picture("endpoints_de")
	v.setLanguage("fr")
	v.open("/admin/roles/" + role)
	v.until(`[...document.querySelectorAll('summary')].some((one) => one.innerText.startsWith('Payeurs'))`)
	v.until(`document.body.textContent.includes('Lire un payeur.') && !document.body.textContent.includes('Get a payer')`)
	v.picture("role_fr")
}
