package browser_test

import (
	"os"
	"path/filepath"
	"testing"
)

const bankLogo = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><circle cx="16" cy="16" r="15" fill="#8a3ffc"/></svg>`

// Customers see the bank's name, logo, colour and links before and after they sign in, and in messages. Staff see Kontor.
func TestBank_IsWhatCustomersSee(t *testing.T) {
	t.Parallel()
	logo := filepath.Join(t.TempDir(), "logo.svg")
	if err := os.WriteFile(logo, []byte(bankLogo), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newServer(t, "--bank.name", "Bank <am> See", "--bank.logo", logo, "--bank.color", "#8a5a00",
		"--bank.terms_url", "https://bank.example/terms", "--bank.privacy_url", "https://bank.example/privacy")
	const isLogo = `document.querySelector('.brand img.mark').naturalWidth > 0`
	const links = `[...document.querySelectorAll('footer a')].filter((link) => link.href.startsWith('https://bank.example/')).length === 2`
	out := newVisitor(t, s, desk)
	out.expect("40")
	out.open("/signin")
	out.until(isLogo + ` && document.title.endsWith(' · Bank <am> See') && ` + links)
	out.examine(view{name: "bank_signin", drawn: `.auth-side .brand`})
	out.until(`!document.body.innerText.includes('Kontor')`)
	out.picture("bank_signin")
	out.goTo("/register")
	out.until(`document.querySelectorAll('form a[href^="https://bank.example/"]').length === 2 && !document.body.innerText.includes('Kontor')`)
	out.examine(view{name: "bank_register", drawn: `form`})
	out.picture("bank_register")

	me := s.newPerson("Customer")
	v := signedIn(t, s, desk, me)
	v.until(isLogo + ` && document.title.endsWith(' · Bank <am> See') && ` + links)
	v.examine(view{name: "bank_home", drawn: `main h1`})
	v.until(`!document.body.innerText.includes('Kontor')`)
	v.picture("bank_home")

	v = signedIn(t, s, look{width: 360, height: 740, dark: true}, me)
	v.until(links)
	v.examine(view{name: "bank_narrow", drawn: `.bottom-bar`})
	v.picture("bank_narrow")

	staff := signedIn(t, s, desk, firstAdmin)
	staff.until(`document.querySelector('.side .brand').innerText === 'Kontor' && document.title.endsWith(' · Kontor')`)
}
