package browser_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

func TestSignIn_TellsAWrongPasswordAndOpensTheOverview(t *testing.T) {
	v := newVisitor(t, openBank(t), desk)
	v.expect("401")
	v.open("/")
	v.until(`location.pathname === '/signin'`)
	v.write(`input[name=login]`, adminLogin)
	v.write(`input[name=password]`, "not this one at all")
	v.click(`button[type=submit]`)
	v.until(`document.querySelector('[role=alert]')`)
	v.write(`input[name=password]`, adminPassword)
	v.click(`button[type=submit]`)
	v.until(`location.pathname === '/' && document.querySelector('.figures')`)
	v.do(chromedp.Reload())
	v.until(`document.querySelector('.figures')`)
	v.click(`.top button[title]:last-of-type`)
	v.until(`location.pathname === '/signin' && !localStorage.getItem('kontor.session')`)
}

func TestSignIn_CountsDownThePause(t *testing.T) {
	v := newVisitor(t, openBank(t), desk)
	v.expect("401")
	v.expect("429")
	v.open("/signin")
	v.eval(`localStorage.setItem('kontor.language', 'en')`)
	v.open("/signin")
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
	b := openBank(t)
	v := newVisitor(t, b, desk)
	v.open("/signin")
	v.eval(`localStorage.setItem('kontor.language', 'en')`)
	v.open("/register#key=" + apiKey)
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
	v.write(`input[name=otp]`, b.code(b.signIn(adminLogin, adminPassword), "nina@example.ch"))
	v.click(`button[type=submit]`)
	v.until(`location.pathname === '/' && document.querySelector('.shell h1')`)
	v.until(`!document.querySelector('nav a[href="/admin/users"]')`) // A customer administers nothing.
}

func TestLanguages_SwitchWithoutAReload(t *testing.T) {
	b := openBank(t)
	v := signedIn(t, b, desk, adminLogin, adminPassword)
	v.click(`nav a[href="/customers"]`)
	v.see("Customers")
	v.eval(`window.stillHere = true`)
	for language, heading := range map[string]string{"de": "Kunden", "fr": "Clients", "it": "Clienti", "en": "Customers"} {
		v.choose(`select.language`, language)
		v.until(fmt.Sprintf(`document.querySelector('h1').innerText === %q && document.documentElement.lang === %q`, heading, language))
	}
	v.until(`window.stillHere`)
}

func TestCustomers_ErrorsStandBesideTheirFields(t *testing.T) {
	v := signedIn(t, openBank(t), desk, adminLogin, adminPassword)
	v.expect("400")
	v.open("/customers?new=1")
	v.write(`input[name=first_name]`, "Noëmi")
	v.write(`input[name="address.country"]`, "QQ")
	v.click(`dialog button[type=submit]`)
	for _, field := range []string{"last_name", "email", "address.country"} {
		v.until(fmt.Sprintf(`document.getElementById(document.getElementsByName(%q)[0].getAttribute('aria-describedby')?.split(' ')[0])?.innerText`, field))
	}
	v.until(`document.activeElement.name === 'last_name'`) // The first wrong field has the focus.
	v.write(`input[name=last_name]`, "Häfliger")
	v.write(`input[name=email]`, "noemi@example.ch")
	v.write(`input[name="address.country"]`, "CH")
	v.click(`dialog button[type=submit]`)
	v.until(`document.querySelector('h1').innerText === 'Noëmi Häfliger' && !document.querySelector('dialog')`)

	v.click(`.tabs a[href$="/kyc"]`)
	v.see("No documents")
	v.clickText("Add document")
	v.write(`dialog input[name=number]`, "X1234567")
	v.eval(`const f = document.querySelector('dialog input[name=expiry_date]'); f.value = '2099-01-31'; f.dispatchEvent(new Event('input', { bubbles: true }))`)
	v.click(`dialog button[type=submit]`)
	v.see("X1234567")
	v.see("Pending")
	v.clickText("Decide")
	v.choose(`dialog select[name=kyc_status]`, "in_review")
	v.write(`dialog textarea[name=reason]`, "The passport was seen")
	v.click(`dialog button[type=submit]`)
	v.see("The passport was seen") // It is in the history.
	v.until(`document.querySelector('.steps [aria-current=step]').innerText.includes('In review')`)
}

func TestInvoices_ShowThePaymentPart(t *testing.T) {
	v := signedIn(t, openBank(t), desk, adminLogin, adminPassword)
	bill, err := filepath.Abs("../../testdata/qr/files/dmg-badcurrency.pdf")
	if err != nil {
		t.Fatal(err)
	}
	v.open("/invoices")
	v.do(chromedp.SetUploadFiles(chromedp.CSS(`input[type=file]`), []string{bill}, chromedp.NodeReady))
	v.until(`document.querySelector('.paper')?.innerText.includes('CH')`)
	v.until(`document.querySelectorAll('.paper button.copy').length > 0 && document.querySelector('.findings')`)
	v.expect("400")
	v.click(`.invoice-options input[type=checkbox]`) // The bill breaks a rule: strictly, it is refused.
	v.until(`document.querySelector('[role=alert]') && document.querySelector('.findings') && !document.querySelector('.paper')`)
}

func TestKeyboard_ReachesEverything(t *testing.T) {
	v := newVisitor(t, openBank(t), desk)
	v.open("/signin")
	v.eval(`localStorage.setItem('kontor.language', 'en')`)
	v.open("/signin")
	v.until(`document.activeElement.name === 'login'`)
	v.keys(adminLogin + kb.Tab + adminPassword + kb.Enter)
	v.until(`document.querySelector('.shell h1')`)
	v.tabTo(`document.activeElement.classList.contains('skip')`)
	v.keys(kb.Enter)
	v.until(`document.activeElement.id === 'main'`) // Past the menu, into the content.
	v.tabTo(`document.activeElement.getAttribute('href') === '/customers'`)
	v.keys(kb.Enter)
	v.until(`document.querySelector('h1').innerText === 'Customers' && document.activeElement.tagName === 'H1'`)
	v.tabTo(`document.activeElement.innerText?.trim() === 'New customer'`)
	v.keys(kb.Enter)
	v.until(`document.querySelector('dialog[open]') && document.activeElement.name === 'first_name'`)
	v.keys("Reto" + kb.Tab + "Favre" + kb.Tab + "reto@example.ch" + kb.Enter)
	v.until(`document.querySelector('h1').innerText === 'Reto Favre'`)
	v.tabTo(`document.activeElement.innerText?.trim() === 'Edit'`)
	v.keys(kb.Enter)
	v.until(`document.querySelector('dialog[open]')`)
	v.keys(kb.Escape)
	v.gone(`dialog`)
	v.until(`document.activeElement.innerText?.trim() === 'Edit'`) // The focus goes back to where it was.
}

func TestExpiredSession_LosesNothingTyped(t *testing.T) {
	b := openBank(t)
	v := signedIn(t, b, desk, adminLogin, adminPassword)
	v.expect("401")
	v.open("/customers?new=1")
	v.write(`input[name=first_name]`, "Sophie")
	v.write(`input[name=last_name]`, "Rochat")
	v.write(`input[name=email]`, "sophie@example.ch")
	b.endSessions()
	v.click(`dialog button[type=submit]`)
	v.see("Please sign in again")
	v.until(`document.querySelector('input[name=last_name]').value === 'Rochat'`)
	v.write(`dialog input[name=password]`, adminPassword)
	v.eval(`document.querySelector('dialog input[name=password]').form.requestSubmit()`)
	v.until(`document.querySelector('h1').innerText === 'Sophie Rochat' && !document.querySelector('dialog')`)
}

func TestTwoTabs_RefreshOnce(t *testing.T) {
	b := openBank(t)
	first := signedIn(t, b, desk, adminLogin, adminPassword)
	second := first.secondTab()
	second.open("/customers")
	second.see("Customers")
	// The hour is over for both at once: each asks for something with a token that no longer serves.
	for _, v := range []*visitor{first, second} {
		v.open("/healthz") // A page of the same origin on which nothing refreshes yet.
	}
	first.eval(`const s = JSON.parse(localStorage.getItem('kontor.session')); s.expires_at = 0; localStorage.setItem('kontor.session', JSON.stringify(s))`)
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

func TestStream_ComesBackAfterARestart(t *testing.T) {
	b := openBank(t)
	if !b.has("GET /v1/notifications/sse") {
		t.Log("this server has no stream yet")
		return
	}
	v := signedIn(t, b, desk, adminLogin, adminPassword)
	v.until(`document.querySelector('.signal.live')`)
	v.expect("503")
	v.expect("ERR_")
	b.stop()
	v.until(`document.querySelector('.signal.waiting')`) // The lamp tells the truth.
	b.start()
	v.until(`document.querySelector('.signal.live')`)
	if b.has("POST /v1/notifications/trigger") {
		b.call("", http.MethodPost, "/v1/notifications/trigger", map[string]any{"event": "maintenance", "content": "The stream lives"}, "X-API-Key", apiKey)
		v.see("The stream lives")
	}
}

func TestChats_AreLiveBetweenTwoBrowsers(t *testing.T) {
	b := openBank(t)
	if !b.has("POST /v1/chats") {
		t.Log("this server has no chats yet")
		return
	}
	const email, password = "rahel@example.ch", "another four good words"
	rahel := b.newUser(email, password, "Advisor")
	here := signedIn(t, b, desk, adminLogin, adminPassword)
	there := signedIn(t, b, look{width: 360, height: 740, dark: true}, email, password)
	for _, v := range []*visitor{here, there} {
		v.until(`document.querySelector('.signal.live')`)
	}
	here.open("/chats?new=1")
	here.write(`dialog input[role=combobox]`, rahel)
	here.click(`dialog [role=option]`)
	here.clickText("Start chat")
	here.until(`location.pathname.startsWith('/chats/')`)
	here.write(`#composer`, "Grüezi Rahel")
	here.keys(kb.Enter)
	here.see("Grüezi Rahel")
	there.until(`document.querySelector('.icon-button .count')`) // The badge appears by itself.
	there.open("/chats")
	there.click(`.chat-list a`)
	there.see("Grüezi Rahel")
	there.write(`#composer`, "Guten Tag!")
	there.click(`.composer button`)
	here.see("Guten Tag!")
	here.see("Read")
}

func TestFirstScreen_IsThereWithinASecond(t *testing.T) {
	b := openBank(t)
	best := 1e9
	for range 3 { // The best of three: other work on the machine is not the console's.
		v := newVisitor(t, b, desk)
		v.open("/signin")
		v.until(`document.querySelector('input[name=login]')`)
		best = min(best, ask[float64](v, `performance.getEntriesByName('screen')[0].startTime`))
	}
	if limit := float64(time.Second.Milliseconds()); best > limit {
		t.Errorf("the first screen took %.0f ms, want at most %.0f", best, limit)
	}
	t.Logf("first screen after %.0f ms", best)
}

// tabTo presses Tab until a condition on the focus holds.
func (v *visitor) tabTo(condition string) {
	v.t.Helper()
	for range 80 {
		v.keys(kb.Tab)
		if ask[bool](v, "Boolean("+condition+")") {
			return
		}
	}
	v.t.Fatalf("Tab never reached: %s\n%s", condition, v.page())
}

// quietAbout passes over what the console asks of modules that this server does not have.
func (v *visitor) quietAbout() {
	for endpoint, part := range map[string]string{
		"GET /v1/tasks": "/v1/tasks", "GET /v1/chats": "/v1/chats", "GET /v1/notifications": "/v1/notifications", "GET /v1/profile/preferences": "/v1/profile",
	} {
		if !v.bank.has(endpoint) {
			v.expect(part)
		}
	}
}

// endSessions ends all sessions of the administrator but its own, as from another device.
func (b *bank) endSessions() {
	b.t.Helper()
	token := b.signIn(adminLogin, adminPassword)
	me := b.call(token, http.MethodGet, "/v1/users/me", nil)["id"].(string)
	for _, row := range b.call(token, http.MethodGet, "/v1/users/"+me+"/sessions?limit=100", nil)["data"].([]any) {
		session := row.(map[string]any)
		if !session["current"].(bool) {
			b.call(token, http.MethodDelete, "/v1/users/"+me+"/sessions/"+session["id"].(string), nil)
		}
	}
}

// Whoever signs in finds in the menu only what he may use: no entry leads to a refusal.
func TestMenu_ShowsOnlyWhatOneMayDo(t *testing.T) {
	b := openBank(t)
	for _, role := range []string{"Advisor", "Customer"} {
		t.Run(role, func(t *testing.T) {
			email := strings.ToLower(role) + "@example.ch"
			b.newUser(email, "four words in a row", role)
			v := signedIn(t, b, desk, email, "four words in a row")
			if ask[bool](v, `Boolean(document.querySelector('nav a[href^="/admin/"]'))`) && role == "Customer" {
				t.Error("a customer sees the administration")
			}
			links := ask[[]string](v, `[...document.querySelectorAll('.shell > .side li a')].map((one) => one.getAttribute('href'))`)
			for _, link := range append(links, "/profile") {
				if !b.has(serves[link]) {
					continue
				}
				if link == "/" {
					v.until(`!document.querySelector('.skeleton')`) // Where one begins; its heading greets.
				} else {
					v.click(fmt.Sprintf(`a[href=%q]`, link))
					v.until(fmt.Sprintf(`(() => { const entry = document.querySelector('a[href=%q]'); const name = entry.querySelector('span')?.innerText || entry.ariaLabel;
						return document.querySelector('main h1').innerText === name && !document.querySelector('.skeleton'); })()`, link))
				}
				if text := ask[string](v, `document.querySelector('main [role=alert]')?.innerText ?? ''`); text != "" {
					t.Errorf("%s shows: %s", link, text)
				}
			}
		})
	}
}

// serves names the endpoint behind each entry of the menu.
var serves = map[string]string{
	"/": "GET /v1/tasks", "/customers": "GET /v1/customers", "/personas": "GET /v1/personas", "/payers": "GET /v1/payers", "/tasks": "GET /v1/tasks",
	"/chats": "GET /v1/chats", "/notifications": "GET /v1/notifications", "/invoices": "POST /v1/invoices/qrcode", "/profile": "GET /v1/profile",
	"/admin/users": "GET /v1/users",
}
