package browser_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

func TestSignIn_TellsAWrongPasswordAndOpensTheOverview(t *testing.T) {
	b := sharedBank(t)
	me := b.newPerson("Advisor")
	v := newVisitor(t, b, desk)
	v.expect("401")
	v.open("/")
	v.until(`location.pathname === '/signin'`)
	v.write(`input[name=login]`, me.login)
	v.write(`input[name=password]`, "not this one at all")
	v.click(`button[type=submit]`)
	v.until(`document.querySelector('[role=alert]')`)
	v.until(`document.querySelector('input[name=password]').value === ''`)
	v.write(`input[name=password]`, me.password)
	v.click(`button[type=submit]`)
	v.until(`location.pathname === '/' && document.querySelector('.figures')`)
	v.do(chromedp.Reload())
	v.until(`document.querySelector('.figures')`)
	v.click(`.top button[title]:last-of-type`)
	v.until(`location.pathname === '/signin' && !localStorage.getItem('kontor.session')`)
}

func TestSignIn_CountsDownThePause(t *testing.T) {
	v := newVisitor(t, sharedBank(t), desk)
	v.expect("401")
	v.expect("429")
	v.door("/signin")
	for range 7 {
		if ask[bool](v, `Boolean(document.querySelector('.notice.warn'))`) {
			break
		}
		v.write(`input[name=login]`, "guesser@example.ch")
		v.write(`input[name=password]`, "guess number one of many")
		v.click(`button[type=submit]`)
		v.until(`document.querySelector('input[name=password]').value === '' || document.querySelector('.notice.warn')`)
	}
	v.see("You can try again in")
	v.until(`document.querySelector('button[type=submit]').disabled`)
	v.until(`!document.querySelector('button[type=submit]').disabled`) // The pause ends by itself.
}

func TestRegister_ByTheBanksLinkAndACode(t *testing.T) {
	b := sharedBank(t)
	v := newVisitor(t, b, desk)
	v.door("/register#key=" + apiKey)
	v.see("Open an account")
	v.until(`location.hash === '' && !document.querySelector('input[name=api_key]')`)
	v.expect("400")
	v.click(`button[type=submit]`)
	v.until(`document.querySelectorAll('[aria-invalid=true]').length >= 3`) // Every field says what is missing.
	v.write(`input[name=credential_value]`, "nina@example.ch")
	v.write(`input[name=password]`, "four words in a row")
	v.click(`input[name=terms_accepted]`)
	v.click(`input[name=privacy_policy_accepted]`)
	v.click(`button[type=submit]`)
	v.see("Confirm that it is you")
	v.write(`input[name=otp]`, "000000")
	v.click(`button[type=submit]`)
	v.until(`document.querySelector('[role=alert], [aria-invalid=true]')`)
	v.write(`input[name=otp]`, b.code(b.token(boss), "nina@example.ch"))
	v.click(`button[type=submit]`)
	v.until(`location.pathname === '/' && document.querySelector('.shell h1')`)
	v.until(`!document.querySelector('nav a[href="/admin/users"]')`) // A customer administers nothing.
}

func TestRecovery_SetsANewPasswordByACode(t *testing.T) {
	b := sharedBank(t)
	me := b.newPerson("Customer")
	v := newVisitor(t, b, desk)
	v.expect("400")
	v.door("/signin")
	v.clickText("Forgotten password")
	v.see("We send you a code")
	v.write(`input[name=api_key]`, apiKey)
	v.write(`input[name=credential_value]`, me.login)
	v.click(`button[type=submit]`)
	v.see("If an account belongs to " + me.login)
	code := b.code(b.token(boss), me.login)
	wrong := strings.Map(func(r rune) rune { return '0' + ('9' - r) }, code)
	v.write(`input[name=otp]`, wrong)
	v.write(`input[name=password]`, "another four good words")
	v.click(`button[type=submit]`)
	v.until(`document.querySelector('[role=alert], [aria-invalid=true]')`)
	v.until(`document.querySelector('input[name=password]').value === 'another four good words'`) // A wrong code costs nothing else.
	v.write(`input[name=otp]`, code[:3]+" "+code[3:])                                             // As one reads it.
	v.click(`button[type=submit]`)
	v.until(`location.pathname === '/' && document.querySelector('.shell h1')`)

	v.click(`.top button[title]:last-of-type`)
	v.until(`location.pathname === '/signin'`)
	v.write(`input[name=login]`, me.login)
	v.write(`input[name=password]`, "another four good words")
	v.click(`button[type=submit]`)
	v.until(`location.pathname === '/' && document.querySelector('.shell h1')`)
}

// Whether somebody has an account is nobody's business: a stranger's address is answered alike.
func TestRecovery_NeverTellsWhoHasAnAccount(t *testing.T) {
	v := newVisitor(t, sharedBank(t), desk)
	v.door("/recover#key=" + apiKey)
	v.write(`input[name=credential_value]`, "nobody-at-all@example.ch")
	v.click(`button[type=submit]`)
	v.see("If an account belongs to nobody-at-all@example.ch")
	v.clickText("Start over")
	v.until(`document.querySelector('input[name=credential_value]')`)
}
