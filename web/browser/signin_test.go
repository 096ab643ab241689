package browser_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

func TestSignIn_RejectsAWrongPasswordAndOpensTheOverview(t *testing.T) {
	s := sharedServer(t)
	me := s.newPerson("Advisor")
	v := newVisitor(t, s, desk)
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
	v.pressSignOut()
	v.until(`location.pathname === '/signin' && !localStorage.getItem('kontor.session')`)
}

// countdownStep is the time between two numbers of a countdown, in milliseconds.
const countdownStep = 1000

func TestSignIn_CountsDownTheLockout(t *testing.T) {
	v := newVisitor(t, sharedServer(t), desk)
	v.expect("401")
	v.expect("429")
	v.openSignedOut("/signin")
	v.holdTimers(countdownStep)
	for range 20 { // The lockout doubles with each guess, until it is longer than a slow machine needs for the next one.
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
	v.until(`(window.held.splice(0).forEach((run) => run()), !document.querySelector('button[type=submit]').disabled)`) // without a reload
}

func TestRegister_WithTheBanksLinkAndACode(t *testing.T) {
	s := sharedServer(t)
	v := newVisitor(t, s, desk)
	v.openSignedOut("/register#key=" + apiKey)
	v.see("Open an account")
	v.until(`location.hash === '' && !document.querySelector('input[name=api_key]')`)
	v.expect("400")
	v.click(`button[type=submit]`)
	v.until(`document.querySelectorAll('[aria-invalid=true]').length >= 3`) // Every required field shows an error.
	v.write(`input[name=credential_value]`, "nina@example.ch")
	v.write(`input[name=password]`, "four words in a row")
	v.click(`input[name=terms_accepted]`)
	v.click(`input[name=privacy_policy_accepted]`)
	v.click(`button[type=submit]`)
	v.see("Enter the code")
	v.write(`input[name=otp]`, "000000")
	v.click(`button[type=submit]`)
	v.until(`document.querySelector('[role=alert], [aria-invalid=true]')`)
	v.write(`input[name=otp]`, s.code(s.token(firstAdmin), "nina@example.ch"))
	v.click(`button[type=submit]`)
	v.until(`location.pathname === '/' && document.querySelector('.shell h1')`)
	v.until(`!document.querySelector('nav a[href="/admin/users"]')`) // Customers have no administration.
}

// An applicant who reloads the page, or opens the link in the message on another device, continues at the code.
func TestRegister_ContinuesAfterAReloadAndByTheLink(t *testing.T) {
	s := sharedServer(t)
	apply := func(v *visitor, address string) {
		v.openSignedOut("/register#key=" + apiKey)
		v.write(`input[name=credential_value]`, address)
		v.write(`input[name=password]`, "four words in a row")
		v.click(`input[name=terms_accepted]`)
		v.click(`input[name=privacy_policy_accepted]`)
		v.click(`button[type=submit]`)
		v.see("Enter the code")
	}
	complete := func(v *visitor, address string) {
		v.see(address)
		v.write(`input[name=otp]`, s.code(s.token(firstAdmin), address))
		v.write(`input[name=password]`, "four words in a row")
		v.click(`button[type=submit]`)
		v.until(`location.pathname === '/' && document.querySelector('.shell h1')`)
	}
	v := newVisitor(t, s, desk)
	apply(v, "reload@example.ch")
	v.open("/register")
	v.clickText("Send a new code")
	v.see("If a registration with these details waits for a code")
	complete(v, "reload@example.ch")
	if ask[bool](v, `JSON.stringify(sessionStorage).includes('reload@example.ch')`) {
		t.Error("the address is still remembered")
	}

	apply(newVisitor(t, s, desk), "link@example.ch")
	other := newVisitor(t, s, desk)
	sent := s.call(s.token(firstAdmin), http.MethodGet, "/v1/notifications/deliveries?limit=1&sort=-created_at&search.to=link@example.ch", nil)["data"].([]any)
	link := regexp.MustCompile(`/register#confirm=\S+`).FindString(sent[0].(map[string]any)["text"].(string))
	if link != "/register#confirm=link%40example.ch" {
		t.Fatalf("the message links to %q", link)
	}
	other.openSignedOut(link)
	other.until(`location.hash === ''`)
	complete(other, "link@example.ch")
	other.open("/register") // Somebody else may register in this browser.
	other.until(`!document.querySelector('input[name=otp]')`)
}

func TestRecovery_SetsANewPasswordWithACode(t *testing.T) {
	s := sharedServer(t)
	me := s.newPerson("Customer")
	v := newVisitor(t, s, desk)
	v.expect("400")
	v.openSignedOut("/signin")
	v.clickText("Forgotten password")
	v.see("We will send you a code")
	v.write(`input[name=credential_value]`, me.login) // No key of a program is needed.
	v.click(`button[type=submit]`)
	v.see("If an account exists for " + me.login)
	v.open("/recover") // A reload keeps the step.
	v.see("If an account exists for " + me.login)
	code := s.code(s.token(firstAdmin), me.login)
	wrong := strings.Map(func(r rune) rune { return '0' + ('9' - r) }, code)
	v.write(`input[name=otp]`, wrong)
	v.write(`input[name=password]`, "another four good words")
	v.click(`button[type=submit]`)
	v.until(`document.querySelector('[role=alert], [aria-invalid=true]')`)
	v.until(`document.querySelector('input[name=password]').value === 'another four good words'`) // A wrong code keeps the other fields.
	v.write(`input[name=otp]`, code[:3]+" "+code[3:])                                             // Spaces in a code are ignored.
	v.click(`button[type=submit]`)
	v.until(`location.pathname === '/' && document.querySelector('.shell h1')`)

	v.pressSignOut()
	v.until(`location.pathname === '/signin'`)
	v.write(`input[name=login]`, me.login)
	v.write(`input[name=password]`, "another four good words")
	v.click(`button[type=submit]`)
	v.until(`location.pathname === '/' && document.querySelector('.shell h1')`)
}

// An unknown address gets the same answer as a known one.
func TestRecovery_DoesNotRevealWhetherAnAccountExists(t *testing.T) {
	v := newVisitor(t, sharedServer(t), desk)
	v.openSignedOut("/recover")
	v.write(`input[name=credential_value]`, "nobody-at-all@example.ch")
	v.click(`button[type=submit]`)
	v.see("If an account exists for nobody-at-all@example.ch")
	v.clickText("Start over")
	v.until(`document.querySelector('input[name=credential_value]')`)
}
