package browser_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

func TestLanguages_SwitchWithoutAReload(t *testing.T) {
	s := sharedServer(t)
	v := signedIn(t, s, desk, s.newPerson("Advisor"))
	v.click(`nav a[href="/customers"]`)
	v.see("Customers")
	v.eval(`window.notReloaded = true`)
	for language, heading := range map[string]string{"de": "Kunden", "fr": "Clients", "it": "Clienti", "en": "Customers"} {
		v.choose(`select.language`, language)
		v.until(fmt.Sprintf(`document.querySelector('h1').innerText === %q && document.documentElement.lang === %q`, heading, language))
	}
	v.until(`window.notReloaded`)
}

func TestInvoices_ShowThePaymentPart(t *testing.T) {
	s := sharedServer(t)
	v := signedIn(t, s, desk, s.newPerson("Advisor"))
	bill, err := filepath.Abs("../../testdata/qr/files/dmg-badcurrency.pdf")
	if err != nil {
		t.Fatal(err)
	}
	v.open("/invoices")
	v.do(chromedp.SetUploadFiles(chromedp.CSS(`input[type=file]`), []string{bill}, chromedp.NodeReady))
	v.until(`document.querySelector('.paper')?.innerText.includes('CH')`)
	v.until(`document.querySelectorAll('.paper button.copy').length > 0 && document.querySelector('.findings')`)
	v.expect("400")
	v.click(`.invoice-options .check:nth-of-type(2) input[type=checkbox]`) // The strict check rejects the bill.
	v.until(`document.querySelector('[role=alert]') && document.querySelector('.findings') && !document.querySelector('.paper')`)
}

func TestChats_AreLiveBetweenTwoBrowsers(t *testing.T) {
	s := sharedServer(t)
	reto, rahel := s.newPerson("Administrator"), s.newPerson("Advisor")
	here := signedIn(t, s, desk, reto)
	there := signedIn(t, s, look{width: 360, height: 740, dark: true}, rahel)
	for _, v := range []*visitor{here, there} {
		v.until(`document.querySelector('.connection.live')`)
	}
	here.open("/chats?new=1")
	here.choosePerson(`dialog`, rahel)
	here.clickText("Start chat")
	here.until(`location.pathname.startsWith('/chats/')`)
	here.write(`#composer`, "Grüezi Rahel")
	here.keys(kb.Enter)
	here.see("Grüezi Rahel")
	there.until(`document.querySelector('.icon-button .count')`) // The badge appears without a reload.
	there.open("/chats")
	there.click(`.chats .row-link`)
	there.see("Grüezi Rahel")
	there.write(`#composer`, "Guten Tag!")
	there.click(`.composer button[type=submit]`)
	here.see("Guten Tag!")
	here.see("Read")
}

// choosePerson chooses a person by id in the field for users within an element. The field first suggests others.
func (v *visitor) choosePerson(within string, p person) {
	v.t.Helper()
	v.write(within+` input[role=combobox]`, p.id)
	v.until(fmt.Sprintf(`document.querySelector(%q)?.innerText.includes(%q)`, within+` [role=option]`, p.id))
	v.click(within + ` [role=option]`)
}

// A field whose text the user changes after a choice no longer stands for that choice.
func TestPicker_AnotherTextEndsTheChoice(t *testing.T) {
	s := sharedServer(t)
	me := s.newPerson("Administrator")
	s.newCustomer(s.token(me), "Ladina", "Camenzind")
	v := signedInAt(t, s, desk, me, "/tasks?new=1")
	v.write(`dialog input[name=title]`, "Call back")
	v.write(`dialog input[name=customer_id]`, "Camenzind")
	v.until(`document.querySelector('dialog [role=option]')?.innerText.includes('Ladina')`)
	v.click(`dialog [role=option]`)
	v.until(`document.querySelector('dialog input[name=customer_id]').value === 'Ladina Camenzind'`)
	v.until(`document.querySelector('dialog button[type=submit]:not(:disabled)')`)
	v.write(`dialog input[name=customer_id]`, "Someone else")
	v.until(`document.querySelector('dialog button[type=submit]:disabled')`)
	v.until(`document.querySelector('dialog input[name=customer_id]').value === 'Someone else'`)
}

// Enter chooses only from suggestions for the text in the field, not from those for an earlier one.
func TestPicker_EnterChoosesNoFormerSuggestion(t *testing.T) {
	s := sharedServer(t)
	wanted := s.newPerson("Advisor")
	v := signedInAt(t, s, desk, s.newPerson("Administrator"), "/chats?new=1")
	v.click(`dialog input[role=combobox]`)
	v.until(`document.querySelectorAll('dialog [role=option]').length > 1`)
	v.eval(fmt.Sprintf(`const field = document.querySelector('dialog input[role=combobox]'); field.value = %q;
		field.dispatchEvent(new Event('input', { bubbles: true }));
		field.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true, cancelable: true }))`, wanted.id))
	v.until(fmt.Sprintf(`document.querySelector('dialog [role=option]')?.innerText.includes(%q)`, wanted.id))
	if chosen := ask[int](v, `document.querySelectorAll('dialog .chip').length`); chosen != 0 {
		t.Errorf("%d people are chosen before they were found", chosen)
	}
	v.keys(kb.Enter) // It chooses; it does not submit the form.
	v.until(`document.querySelector('dialog .chip') && document.querySelector('dialog input[role=combobox]').value === ''`)
}

// countRequests is JavaScript that counts the requests to the API from now on in window.requests, and in window.pending those without
// an answer.
const countRequests = `{ window.requests = []; window.pending = 0; const original = window.fetch;
	window.fetch = (url, init) => {
		window.requests.push((init?.method ?? 'GET') + ' ' + url);
		window.pending++;
		return original(url, init).finally(() => window.pending--);
	} }`

// A message for the open thread is shown from its frame. The console sends at most two requests for it.
func TestChats_ANewMessageTakesAtMostTwoRequests(t *testing.T) {
	s := sharedServer(t)
	me, other := s.newPerson("Advisor"), s.newPerson("Customer")
	token := s.token(other)
	chat := "/chats/" + s.call(token, http.MethodPost, "/v1/chats", map[string]any{"participants": []string{me.id}})["id"].(string)
	send := func(text string) {
		s.call(token, http.MethodPost, "/v1"+chat+"/messages", map[string]any{"content": text})
	}
	v := newVisitor(t, s, desk)
	v.prepare(countRequests)
	v.open("/healthz")
	v.keepSession(me)
	v.open(chat)
	v.until(`document.querySelector('.connection.live') && document.querySelector('.thread .none')`)
	v.settle() // The requests of opening the chat do not count.
	v.eval(`window.requests.length = 0`)
	send("Hello?")
	v.until(`document.querySelector('.message')?.innerText.includes('Hello?') `)
	v.until(`window.requests.some((one) => one === 'POST /v1' + location.pathname + '/read')`)
	if unread := ask[bool](v, `Boolean(document.querySelector('.chats .count'))`); unread {
		t.Error("the chat that is open counts as unread")
	}
	v.settle()
	if requests := ask[[]string](v, `window.requests`); len(requests) > 2 {
		t.Errorf("a new message took %d requests, want at most 2: %q", len(requests), requests)
	}
}

// settle waits until the page has sent no request for half a second, longer than the console's timers, and waits for no answer. Requests
// must be counted, see countRequests.
func (v *visitor) settle() {
	v.t.Helper()
	v.eval(`window.settled = false; let before = -1; const timer = setInterval(() => {
		if (before === window.requests.length && window.pending === 0) { window.settled = true; clearInterval(timer); }
		before = window.requests.length;
	}, 500)`)
	v.until(`window.settled`)
}

// No entry of the menu leads to a screen that the user may not use.
func TestMenu_ShowsOnlyAllowedScreens(t *testing.T) {
	s := sharedServer(t)
	for _, role := range []string{"Advisor", "Customer"} {
		t.Run(role, func(t *testing.T) {
			v := signedIn(t, s, desk, s.newPerson(role))
			if ask[bool](v, `Boolean(document.querySelector('nav a[href^="/admin/"]'))`) && role == "Customer" {
				t.Error("a customer sees the administration")
			}
			links := ask[[]string](v, `[...document.querySelectorAll('.shell > .side li a')].map((one) => one.getAttribute('href'))`)
			for _, link := range append(links, "/profile") {
				if link == "/" {
					v.until(`!document.querySelector('.skeleton')`) // The first screen has a greeting as its heading.
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
