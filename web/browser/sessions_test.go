package browser_test

import (
	"net/http"
	"testing"

	"github.com/chromedp/chromedp"
)

// age makes the access token of a visitor look as if its hour were over; the server still takes the refresh token.
func (v *visitor) age() {
	v.t.Helper()
	v.eval(`const s = JSON.parse(localStorage.getItem('kontor.session')); s.expires_at = 0; localStorage.setItem('kontor.session', JSON.stringify(s))`)
}

func TestExpiredSession_LosesNothingTyped(t *testing.T) {
	b := sharedBank(t)
	me := b.newPerson("Administrator")
	v := signedIn(t, b, desk, me)
	v.expect("401")
	v.open("/customers?new=1")
	v.write(`input[name=first_name]`, "Sophie")
	v.write(`input[name=last_name]`, "Rochat")
	v.write(`input[name=email]`, "sophie@example.ch")
	b.endSessions(me)
	v.click(`dialog button[type=submit]`)
	v.see("Please sign in again")
	v.until(`document.querySelector('input[name=last_name]').value === 'Rochat'`)
	v.write(`dialog input[name=password]`, "not the right one")
	v.eval(`document.querySelector('dialog input[name=password]').form.requestSubmit()`)
	v.until(`document.querySelector('dialog [role=alert]')`)
	v.write(`dialog input[name=password]`, me.password)
	v.eval(`document.querySelector('dialog input[name=password]').form.requestSubmit()`)
	v.until(`document.querySelector('h1').innerText === 'Sophie Rochat' && !document.querySelector('dialog')`)
}

// Somebody whose session was ended elsewhere is told so by what he does next, and comes back to where he was.
func TestRevokedSession_AsksAgainAndGoesOn(t *testing.T) {
	b := sharedBank(t)
	me := b.newPerson("Advisor")
	v := signedIn(t, b, desk, me)
	v.expect("401")
	b.endSessions(me)
	v.eval(`document.querySelector('nav a[href="/customers"]').click()`) // The stream may have noticed before, and the dialog be there.
	v.see("Please sign in again")
	v.see(me.login)
	v.write(`dialog input[name=password]`, me.password)
	v.click(`dialog button[type=submit]`)
	v.gone(`dialog`)
	v.until(`location.pathname === '/customers' && document.querySelector('table.data, .empty')`)
	v.until(`document.querySelector('.signal.live')`)
}

// The answer to a refresh comes after the page that asked was reloaded: the session must live on.
func TestReload_DuringARefreshKeepsTheSession(t *testing.T) {
	g := newGate(t, sharedBank(t))
	v := signedIn(t, g.bank, desk, g.newPerson("Advisor"))
	v.until(`navigator.serviceWorker.getRegistrations().then((all) => { window.ready = all.some((one) => one.active); }) && window.ready`)
	v.open("/healthz")
	v.age()
	rotated, release := make(chan struct{}), make(chan struct{})
	g.next(http.MethodPost, "/v1/token/refresh", hold(rotated, release))
	v.open("/customers")
	<-rotated // The old refresh token is dead, and nobody has the new one.
	v.do(chromedp.Reload())
	close(release)
	v.until(`document.querySelector('h1')?.innerText === 'Customers' && document.querySelector('table.data, .empty')`)
	v.gone(`dialog`)
	v.age()
	v.do(chromedp.Reload()) // The pair that was kept is the one that serves.
	v.until(`document.querySelector('table.data, .empty')`)
	v.gone(`dialog`)
	v.until(`caches.has('kontor.refresh').then((kept) => { window.kept = kept; }) && window.kept === false`) // No token lies about.
}

func TestTwoTabs_RefreshOnce(t *testing.T) {
	b := sharedBank(t)
	first := signedIn(t, b, desk, b.newPerson("Advisor"))
	second := first.secondTab()
	second.open("/customers")
	second.see("Customers")
	// The hour is over for both at once: each asks for something with a token that no longer serves.
	for _, v := range []*visitor{first, second} {
		v.open("/healthz") // A page of the same origin on which nothing refreshes yet.
	}
	first.age()
	for _, v := range []*visitor{first, second} {
		v.eval(`location.href = '/customers'`)
	}
	for _, v := range []*visitor{first, second} {
		v.until(`document.querySelector('.shell h1') && document.readyState === 'complete'`)
	}
	for _, v := range []*visitor{first, second} {
		v.open("/profile")
		v.until(`document.querySelector('.badge.good')`)
		v.until(`!document.querySelector('dialog')`)
	}
}

func TestTwoTabs_SignInAgainTogether(t *testing.T) {
	b := sharedBank(t)
	me := b.newPerson("Advisor")
	first := signedIn(t, b, desk, me)
	second := first.secondTab()
	second.open("/personas")
	second.until(`document.querySelector('.shell h1')`)
	for _, v := range []*visitor{first, second} {
		v.expect("401")
	}
	b.endSessions(me)
	for _, v := range []*visitor{first, second} {
		v.goTo("/customers")
		v.until(`document.querySelector('dialog[open] input[type=password]')`)
	}
	second.write(`dialog input[name=password]`, me.password)
	second.click(`dialog button[type=submit]`)
	for _, v := range []*visitor{first, second} {
		v.gone(`dialog`)
		v.until(`document.querySelector('table.data, .empty') && !document.querySelector('[role=alert]')`)
	}
}

func TestTwoTabs_SignOutTogether(t *testing.T) {
	b := sharedBank(t)
	me, other := b.newPerson("Advisor"), b.newPerson("Advisor")
	first := signedIn(t, b, desk, me)
	second := first.secondTab()
	second.expect("401") // It may have taken over the stream before it heard of the end.
	second.open("/customers")
	second.until(`document.querySelector('.shell h1')`)
	first.click(`.top button[title]:last-of-type`)
	second.until(`location.pathname === '/signin' && !document.querySelector('.shell')`)
	first.until(`location.pathname === '/signin'`)

	// Who signs in in one tab is signed in in the other, too.
	first.write(`input[name=login]`, other.login)
	first.write(`input[name=password]`, other.password)
	first.click(`button[type=submit]`)
	for _, v := range []*visitor{first, second} {
		v.until(`location.pathname === '/' && document.querySelector('.shell h1')`)
		v.open("/profile")
		v.see(other.login)
	}
}

func TestDeepLink_OpensAfterSigningIn(t *testing.T) {
	b := sharedBank(t)
	me := b.newPerson("Advisor")
	customer := b.newCustomer(b.token(me), "Selina", "Amstutz")
	v := newVisitor(t, b, desk)
	v.door("/customers/" + customer + "/kyc?from=mail")
	v.until(`location.pathname === '/signin'`)
	v.write(`input[name=login]`, me.login)
	v.write(`input[name=password]`, me.password)
	v.click(`button[type=submit]`)
	v.until(`document.querySelector('h1')?.innerText === 'Selina Amstutz' && document.querySelector('.steps')`)
	v.until(`location.pathname.endsWith('/kyc') && location.search === '?from=mail'`)

	// Nobody is led away from the house by a link with a foreign place to go on to.
	v.click(`.top button[title]:last-of-type`)
	v.until(`location.pathname === '/signin'`)
	v.open("/signin?next=" + "%2F%2Fexample.org%2Fx")
	v.write(`input[name=login]`, me.login)
	v.write(`input[name=password]`, me.password)
	v.click(`button[type=submit]`)
	v.until(`location.pathname === '/' && document.querySelector('.figures')`)
}

func TestHistory_BackAndForwardShowWhatWasThere(t *testing.T) {
	b := sharedBank(t)
	me := b.newPerson("Advisor")
	customer := b.newCustomer(b.token(me), "Jonas", "Wüthrich")
	v := signedIn(t, b, desk, me)
	v.click(`nav a[href="/customers"]`)
	v.click(`a[href="/customers/` + customer + `"]`)
	v.until(`document.querySelector('h1').innerText === 'Jonas Wüthrich'`)
	v.click(`.tabs a[href$="/kyc"]`)
	v.until(`document.querySelector('.steps')`)
	v.clickText("Add document")
	v.until(`document.querySelector('dialog[open]')`)
	v.eval(`history.back()`)
	v.until(`document.querySelector('.facts') && !document.querySelector('dialog')`) // A dialog does not stay over another screen.
	v.eval(`history.back()`)
	v.until(`location.pathname === '/customers' && document.querySelector('h1').innerText === 'Customers' && document.querySelector('table.data')`)
	v.eval(`history.back()`)
	v.until(`location.pathname === '/' && document.querySelector('.figures')`)
	v.eval(`history.forward()`)
	v.until(`document.querySelector('h1').innerText === 'Customers' && document.title.startsWith('Customers')`)
	v.open("/customers?new=1")
	v.until(`document.querySelector('dialog[open]')`)
	v.click(`dialog header button`)
	v.until(`location.search === '' && !document.querySelector('dialog')`)
	v.do(chromedp.Reload())
	v.until(`document.querySelector('table.data') && !document.querySelector('dialog')`)
}

func TestStream_ComesBackAfterARestart(t *testing.T) {
	b := ownBank(t)
	v := signedIn(t, b, desk, boss)
	v.until(`document.querySelector('.signal.live')`)
	v.expect("503")
	v.expect("ERR_")
	b.stop()
	v.until(`document.querySelector('.signal.waiting')`) // The lamp tells the truth.
	b.start()
	v.until(`document.querySelector('.signal.live')`)
	b.call("", http.MethodPost, "/v1/notifications/trigger", map[string]any{"event": "maintenance", "content": "The stream lives"}, "X-API-Key", apiKey)
	v.see("The stream lives")
}
