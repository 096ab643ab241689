package browser_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/chromedp/chromedp"

	"kontor/store/testenv"
)

// expireToken makes the console believe that the access token has expired; the refresh token stays valid.
func (v *visitor) expireToken() {
	v.t.Helper()
	v.eval(`const s = JSON.parse(localStorage.getItem('kontor.session')); s.expires_at = 0; localStorage.setItem('kontor.session', JSON.stringify(s))`)
}

func TestExpiredSession_KeepsTheInput(t *testing.T) {
	s := sharedServer(t)
	me := s.newPerson("Administrator")
	v := signedInAt(t, s, desk, me, "/customers?new=1")
	v.expect("401")
	v.write(`input[name=first_name]`, "Sophie")
	v.write(`input[name=last_name]`, "Rochat")
	v.write(`input[name=email]`, "sophie@example.ch")
	s.endSessions(me)
	v.submit(`input[name=last_name]`) // The dialog that asks for the password may be open already because of the stream.
	v.see("Please sign in again")
	v.until(`document.querySelector('input[name=last_name]').value === 'Rochat'`)
	v.write(`dialog input[name=password]`, "not the right one")
	v.eval(`document.querySelector('dialog input[name=password]').form.requestSubmit()`)
	v.until(`document.querySelector('dialog [role=alert]')`)
	v.write(`dialog input[name=password]`, me.password)
	v.eval(`document.querySelector('dialog input[name=password]').form.requestSubmit()`)
	v.until(`document.querySelector('h1').innerText === 'Sophie Rochat' && !document.querySelector('dialog')`)
}

// A user whose session was ended elsewhere signs in again and continues on the same screen.
func TestRevokedSession_SignsInAgainAndContinues(t *testing.T) {
	s := sharedServer(t)
	me := s.newPerson("Advisor")
	v := signedIn(t, s, desk, me)
	v.expect("401")
	s.endSessions(me)
	v.eval(`document.querySelector('nav a[href="/customers"]').click()`) // The dialog may be open already because of the stream.
	v.see("Please sign in again")
	v.see(me.login)
	v.write(`dialog input[name=password]`, me.password)
	v.click(`dialog button[type=submit]`)
	v.gone(`dialog`)
	v.until(`location.pathname === '/customers' && document.querySelector('table.data, .empty')`)
	v.until(`document.querySelector('.connection.live')`)
}

// A request of the old session is still being refused when the user has signed in again: it continues in the new session, and the
// user is not asked a second time.
func TestRevokedSession_ALateRefusalAsksNoSecondTime(t *testing.T) {
	p := newProxy(t, sharedServer(t))
	me := p.newPerson("Advisor")
	v := signedIn(t, p.testServer, desk, me)
	v.expect("401")
	p.endSessions(me)
	v.eval(`document.querySelector('nav a[href="/customers"]').click()`)
	v.until(`document.querySelector('dialog[open] input[type=password]')`)
	refused, release := make(chan struct{}), make(chan struct{})
	p.onNext(http.MethodPost, "/v1/token/refresh", delayResponse(refused, release))
	v.eval(`document.querySelector('nav a[href="/personas"]').click()`)
	happens(t, "the refresh to be refused", refused)
	v.write(`dialog input[name=password]`, me.password)
	v.submit(`dialog input[name=password]`)
	v.gone(`dialog`)
	v.eval(`window.asked = false; new MutationObserver(() => { window.asked ||= Boolean(document.querySelector('dialog')); })
		.observe(document.body, { childList: true, subtree: true })`)
	close(release)
	v.until(`document.querySelector('h1').innerText === 'Personas' && document.querySelector('table.data, .empty')`)
	v.until(`window.asked === false && document.querySelector('.connection.live')`)
}

// A page is reloaded before the response to its token refresh arrives: the session must survive.
func TestReload_DuringARefreshKeepsTheSession(t *testing.T) {
	p := newProxy(t, sharedServer(t))
	v := signedIn(t, p.testServer, desk, p.newPerson("Advisor"))
	v.until(`navigator.serviceWorker.getRegistrations().then((all) => { window.ready = all.some((one) => one.active); }) && window.ready`)
	v.open("/healthz")
	v.expireToken()
	rotated, release := make(chan struct{}), make(chan struct{})
	p.onNext(http.MethodPost, "/v1/token/refresh", delayResponse(rotated, release))
	v.open("/customers")
	happens(t, "the token to be refreshed", rotated) // The old refresh token is invalid, and no page has the new one.
	v.do(chromedp.Reload())
	close(release)
	v.until(`document.querySelector('h1')?.innerText === 'Customers' && document.querySelector('table.data, .empty')`)
	v.gone(`dialog`)
	v.expireToken()
	v.do(chromedp.Reload()) // The tokens that the worker kept are valid.
	v.until(`document.querySelector('table.data, .empty')`)
	v.gone(`dialog`)
	v.signOut()
	v.until(`caches.has('kontor.refresh').then((kept) => { window.kept = kept; }) && window.kept === false`) // No token outlives the session.
}

// A browser copies localStorage to its other tabs with a delay. A tab that still has the old tokens when another one has refreshed
// them gets the same answer: a second use of the refresh token would end the session.
func TestTwoTabs_ATabWithTheOldTokensKeepsTheSession(t *testing.T) {
	s := sharedServer(t)
	v := signedIn(t, s, desk, s.newPerson("Advisor"))
	v.until(`navigator.serviceWorker.getRegistrations().then((all) => { window.ready = all.some((one) => one.active); }) && window.ready`)
	v.open("/healthz")
	v.expireToken()
	old := ask[string](v, `localStorage.getItem('kontor.session')`)
	v.open("/customers")
	v.until(fmt.Sprintf(`localStorage.getItem('kontor.session') !== %q && document.querySelector('table.data, .empty')`, old))
	refreshed := ask[string](v, `JSON.parse(localStorage.getItem('kontor.session')).refresh_token`)
	v.open("/healthz")
	v.eval(fmt.Sprintf(`localStorage.setItem('kontor.session', %q)`, old))
	v.open("/customers")
	v.until(`document.querySelector('table.data, .empty')`)
	v.until(fmt.Sprintf(`JSON.parse(localStorage.getItem('kontor.session')).refresh_token === %q`, refreshed))
	v.gone(`dialog`)
}

func TestTwoTabs_RefreshOnce(t *testing.T) {
	s := sharedServer(t)
	first := signedIn(t, s, desk, s.newPerson("Advisor"))
	second := first.secondTab()
	second.open("/customers")
	second.see("Customers")
	// The token expires for both tabs at once: each sends a request with it.
	for _, v := range []*visitor{first, second} {
		v.open("/healthz") // a page of the same origin without the console
	}
	first.expireToken()
	for _, v := range []*visitor{first, second} {
		v.eval(`location.href = '/customers'`)
	}
	for _, v := range []*visitor{first, second} {
		v.until(`document.querySelector('.shell h1') && document.readyState === 'complete'`)
	}
	for _, v := range []*visitor{first, second} {
		v.open("/profile/security")
		v.until(`document.querySelector('.badge.good')`)
		v.until(`!document.querySelector('dialog')`)
	}
}

func TestTwoTabs_SignInAgainTogether(t *testing.T) {
	s := sharedServer(t)
	me := s.newPerson("Advisor")
	first := signedIn(t, s, desk, me)
	second := first.secondTab()
	second.open("/personas")
	second.until(`document.querySelector('.shell h1')`)
	for _, v := range []*visitor{first, second} {
		v.expect("401")
	}
	s.endSessions(me)
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
	s := sharedServer(t)
	me, other := s.newPerson("Advisor"), s.newPerson("Advisor")
	first := signedIn(t, s, desk, me)
	second := first.secondTab()
	second.expect("401") // It may have opened the stream before it noticed the end.
	second.open("/customers")
	second.until(`document.querySelector('.shell h1')`)
	first.pressSignOut()
	second.until(`location.pathname === '/signin' && !document.querySelector('.shell')`)
	first.until(`location.pathname === '/signin'`)

	// A user who signs in in one tab is signed in in the other one too.
	first.write(`input[name=login]`, other.login)
	first.write(`input[name=password]`, other.password)
	first.click(`button[type=submit]`)
	for _, v := range []*visitor{first, second} {
		v.until(`location.pathname === '/' && document.querySelector('.shell h1')`)
		v.open("/profile/security")
		v.see(other.login)
	}
}

// A user signs out in another tab and another one signs in there, before this tab has left the screens of the first user. Leaving them
// must not end the session of the second one.
func TestTwoTabs_ASignOutKeepsTheNextSession(t *testing.T) {
	s := sharedServer(t)
	v := signedIn(t, s, desk, s.newPerson("Advisor"))
	v.expect("401")
	other := s.newPerson("Advisor")
	pair := s.signIn(other)
	ask[string](v, fmt.Sprintf(`(async () => {
		const next = { ...JSON.parse(localStorage.getItem('kontor.session')), access_token: %q, refresh_token: %q, user_id: %q, login: %q };
		const change = () => dispatchEvent(new StorageEvent('storage', { key: 'kontor.session' }));
		localStorage.removeItem('kontor.session');
		change();
		for (let i = 0; i < 100; i++) await null; // the screen is rendered, its effects have not run
		localStorage.setItem('kontor.session', JSON.stringify(next));
		change();
		return '';
	})()`, pair["access_token"], pair["refresh_token"], other.id, other.login))
	v.until(`document.querySelector('.shell h1') && document.querySelector('.connection.live')`)
	v.goTo("/profile/security")
	v.see(other.login)
}

// An action for several records ends when its user signs out in another tab: the next user does not continue it.
func TestTwoTabs_AnActionIsNotContinuedByTheNextUser(t *testing.T) {
	p := newProxy(t, sharedServer(t))
	me, other := p.newPerson("Administrator"), p.newPerson("Administrator")
	token := p.token(me)
	customer := p.newCustomer(token, "Bruno", "Halbfertig")
	const payers = 6
	for i := range payers {
		p.call(token, http.MethodPost, "/v1/payers", map[string]any{"customer_id": customer, "name": fmt.Sprintf("Halbfertig %d %s", i, me.id), "country": "CHE"})
	}
	v := signedInAt(t, p.testServer, desk, me, "/payers?q="+me.id)
	v.expect("401")
	v.until(fmt.Sprintf(`document.querySelectorAll('table.data tbody tr').length === %d`, payers))
	const atOnce = 4
	arrived, release := make(chan struct{}, atOnce), make(chan struct{})
	for range atOnce {
		p.onNext(http.MethodDelete, "/v1/payers/", func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
			arrived <- struct{}{}
			if released(r, release) {
				pass.ServeHTTP(w, r)
			}
		})
	}
	v.click(`table.data thead input[type=checkbox]`)
	v.click(`.bulk button.danger`)
	v.click(confirmation)
	for range atOnce {
		happens(t, "the request to arrive at the proxy", arrived)
	}
	pair := p.signIn(other)
	v.eval(fmt.Sprintf(`const next = { ...JSON.parse(localStorage.getItem('kontor.session')), access_token: %q, refresh_token: %q, user_id: %q, login: %q };
		localStorage.setItem('kontor.session', JSON.stringify(next)); dispatchEvent(new StorageEvent('storage', { key: 'kontor.session' }))`,
		pair["access_token"], pair["refresh_token"], other.id, other.login))
	seen := record(v)
	close(release)
	testenv.Wait(t, "the answers to the requests of the first user", func() bool { return len(seen.with("200 /v1/payers/")) == atOnce })
	ask[string](v, `fetch('/healthz').then((answer) => answer.text())`) // A further request would have been sent before it.
	list := p.call(p.token(other), http.MethodGet, "/v1/payers?active=true&q="+me.id, nil)
	if list["total"] != float64(payers-atOnce) {
		t.Errorf("%v payers are active, want %d", list["total"], payers-atOnce)
	}
}

func TestDeepLink_OpensAfterSigningIn(t *testing.T) {
	s := sharedServer(t)
	me := s.newPerson("Advisor")
	customer := s.newCustomer(s.token(me), "Selina", "Amstutz")
	v := newVisitor(t, s, desk)
	v.openSignedOut("/customers/" + customer + "/kyc?from=mail")
	v.until(`location.pathname === '/signin'`)
	v.write(`input[name=login]`, me.login)
	v.write(`input[name=password]`, me.password)
	v.click(`button[type=submit]`)
	v.until(`document.querySelector('h1')?.innerText === 'Selina Amstutz' && document.querySelector('.steps')`)
	v.until(`location.pathname.endsWith('/kyc') && location.search === '?from=mail'`)

	// A link must not redirect to another host after signing in.
	v.pressSignOut()
	v.until(`location.pathname === '/signin'`)
	v.open("/signin?next=" + "%2F%2Fexample.org%2Fx")
	v.write(`input[name=login]`, me.login)
	v.write(`input[name=password]`, me.password)
	v.click(`button[type=submit]`)
	v.until(`location.pathname === '/' && document.querySelector('.figures')`)
}

func TestHistory_RestoresScreens(t *testing.T) {
	s := sharedServer(t)
	me := s.newPerson("Advisor")
	customer := s.newCustomer(s.token(me), "Jonas", "Wüthrich")
	v := signedIn(t, s, desk, me)
	v.click(`nav a[href="/customers"]`)
	// Other tests create customers on the same server: they fill the first page, and a row may move while the mouse is on its way.
	v.until(`location.pathname === '/customers'`)
	v.eval(`history.replaceState(null, '', '/customers?q=W%C3%BCthrich'); dispatchEvent(new PopStateEvent('popstate'))`)
	row := `document.querySelector('a[href="/customers/` + customer + `"]')`
	v.until(row)
	v.eval(row + `.click()`)
	v.until(`document.querySelector('h1').innerText === 'Jonas Wüthrich'`)
	v.click(`.tabs a[href$="/kyc"]`)
	v.until(`document.querySelector('.steps')`)
	v.clickText("Add document")
	v.until(`document.querySelector('dialog[open]')`)
	v.eval(`history.back()`)
	v.until(`document.querySelector('.facts') && !document.querySelector('dialog')`) // The dialog closes with its screen.
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

func TestStream_ReconnectsAfterARestart(t *testing.T) {
	s := newServer(t)
	v := signedIn(t, s, desk, firstAdmin)
	v.until(`document.querySelector('.connection.live')`)
	v.expect("503")
	v.expect("ERR_")
	s.stop()
	v.until(`document.querySelector('.connection.waiting')`) // The state of the connection is shown.
	s.start()
	v.until(`document.querySelector('.connection.live')`)
	s.call("", http.MethodPost, "/v1/notifications/trigger", map[string]any{"event": "maintenance", "content": "The stream works"}, "X-API-Key", apiKey)
	v.see("The stream works")
}
