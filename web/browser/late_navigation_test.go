package browser_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// A notification opens at once. Its mark as read may take long: the user must not be taken back to it afterwards.
func TestNotifications_ALateMarkLeadsNowhere(t *testing.T) {
	p := newProxy(t, sharedServer(t))
	me, other := p.newPerson("Advisor"), p.newPerson("Customer")
	chat := "/chats/" + p.call(p.token(other), http.MethodPost, "/v1/chats", map[string]any{"participants": []any{me.id}})["id"].(string)
	p.call(p.token(other), http.MethodPost, "/v1"+chat+"/messages", map[string]any{"content": "Good morning"})
	v := signedInAt(t, p.testServer, desk, me, "/notifications?event=message_received")
	link := `document.querySelector('.inbox .unread a[href="` + chat + `"]')`
	v.until(link)
	marked, release := make(chan struct{}), make(chan struct{})
	p.onNext(http.MethodPatch, "/v1/notifications/", delayResponse(marked, release))
	v.eval(link + `.click()`)
	happens(t, "the notification to be marked", marked)
	v.until(`location.pathname === '` + chat + `' && document.querySelector('#composer')`)
	v.eval(`document.querySelector('nav a[href="/customers"]').click()`)
	v.until(`document.querySelector('h1').innerText === 'Customers'`)
	v.deliver("/read", release)
	v.until(`location.pathname === '/customers' && document.querySelector('h1').innerText === 'Customers'`)
}

// A decision that is answered late does not take the reviewer away from the case that they have opened since.
func TestReview_ALateDecisionLeadsNowhere(t *testing.T) {
	p := newProxy(t, newServer(t))
	admin := p.token(firstAdmin)
	var cases []string
	for _, name := range []string{"One", "Two", "Three"} {
		cases = append(cases, p.waitingCase(admin, "Case", name))
	}
	v := signedInAt(t, p.testServer, desk, p.newPerson("Advisor"), "/review/"+cases[0])
	v.until(`document.querySelector('.review-decision [value=rejected]')`)
	decided, release := make(chan struct{}), make(chan struct{})
	p.onNext(http.MethodPatch, "/v1/customers/"+cases[0]+"/kyc/status", delayResponse(decided, release))
	v.click(`.review-decision [value=rejected]`)
	v.write(`.review-decision textarea`, "The document is not readable.")
	v.click(`.review-decision button[type=submit]`)
	happens(t, "the decision to be sent", decided)
	v.goTo("/review/" + cases[2])
	v.until(`document.querySelector('.review-grid')?.dataset.case === '` + cases[2] + `' && document.querySelector('.review-decision [value=verified]')`)
	v.click(`.review-decision [value=verified]`)
	v.deliver("/kyc/status", release)
	v.until(`location.pathname === '/review/` + cases[2] + `' && document.querySelector('.review-decision [value=verified]').checked`)
}

// Text that the user types while the newer values of a record are being loaded stays, as text that they typed before.
func TestConflict_KeepsWhatIsTypedWhileTheNewerValuesLoad(t *testing.T) {
	p := newProxy(t, sharedServer(t))
	me := p.newPerson("Administrator")
	token := p.token(me)
	v := signedIn(t, p.testServer, desk, me)
	v.expect("412")
	customer := "/v1/customers/" + customerForm(p.testServer, v, token)
	v.write(`input[name=phone]`, "+41791234567")
	changed := p.call(token, http.MethodGet, customer, nil)
	changed["last_name"] = "Brunner-Wyss"
	p.call(token, http.MethodPut, customer, changed)
	v.save()
	v.until(`document.querySelector('dialog [role=alert]').innerText.includes('your input is kept')`)
	v.until(`document.querySelector('h1').innerText.includes('Brunner-Wyss')`) // The screen has read the change, and the next reading is the form's.
	read, release := make(chan struct{}), make(chan struct{})
	p.onNext(http.MethodGet, customer, delayResponse(read, release))
	v.clickText("Load the newer values")
	happens(t, "the answer to be read", read)
	v.write(`input[name=last_name]`, "Brunner-Frei")
	v.deliver(strings.TrimPrefix(customer, "/v1"), release)
	v.see("New value: Brunner-Wyss")
	v.until(`document.querySelector('input[name=last_name]').value === 'Brunner-Frei'`)
}

// The answer to a former choice of options does not replace the answer to the latest one.
func TestInvoices_ALateAnswerIsNotShown(t *testing.T) {
	p := newProxy(t, sharedServer(t))
	v := signedInAt(t, p.testServer, desk, p.newPerson("Advisor"), "/invoices")
	v.expect("400")
	read, release := make(chan struct{}), make(chan struct{})
	p.onNext(http.MethodPost, "/v1/invoices/qrcode", delayResponse(read, release))
	v.chooseFile(`input[type=file]`, samplePDF)
	happens(t, "the answer to be read", read)
	v.click(`.invoice-options .check:nth-of-type(2) input[type=checkbox]`) // The strict check rejects the bill.
	v.until(`document.querySelector('[role=alert]') && document.querySelector('.findings')`)
	v.deliver("/v1/invoices/qrcode", release)
	v.until(`document.querySelector('[role=alert]') && !document.querySelector('.paper')`)
}

// The finder that has taken long to load does not open over the screen that the user has opened since.
func TestCommandPalette_DoesNotOpenLate(t *testing.T) {
	p := newProxy(t, sharedServer(t))
	v := signedIn(t, p.testServer, desk, p.newPerson("Advisor"))
	base := ask[string](v, `new URL(document.querySelector('script[type=module]').src).pathname.replace(/app\/.*/, '')`)
	asked, release := make(chan struct{}), make(chan struct{})
	p.onNext(http.MethodGet, base+"app/ui/command_palette.js", holdRequest(asked, release))
	v.click(`.palette-button`)
	happens(t, "the request to arrive at the proxy", asked)
	v.eval(`document.querySelector('nav a[href="/customers"]').click()`)
	v.until(`document.querySelector('h1').innerText === 'Customers'`)
	close(release)
	ask[string](v, `import('`+base+`app/ui/command_palette.js').then(() => new Promise((resolve) => setTimeout(() => resolve(''))))`)
	v.until(`!document.querySelector('dialog')`)
	v.do(chromedp.Reload())
	v.until(`document.querySelector('h1')?.innerText === 'Customers'`)
	v.click(`.palette-button`)
	v.until(`document.querySelector('dialog[open].palette')`)
}

// Changes that an administrator makes while a role is being saved stay, and can be saved next.
func TestMatrix_KeepsWhatIsChangedWhileItIsSaved(t *testing.T) {
	p := newProxy(t, sharedServer(t))
	me := p.newPerson("Administrator")
	role := p.call(p.token(me), http.MethodPost, "/v1/rbac/roles", map[string]any{"name": "Saver " + me.login})["id"].(string)
	v := signedInAt(t, p.testServer, desk, me, "/admin/roles/"+role)
	v.until(`document.querySelector('.matrix tbody input') && document.querySelector('details')`) // with the endpoints that permissions need
	box := func(row string) string {
		return `document.querySelectorAll('.matrix tbody tr:nth-child(` + row + `) td input')[1]`
	}
	v.eval(box("2") + `.click()`)
	v.eval(box("3") + `.click()`)
	v.until(`document.querySelectorAll('.matrix .changed').length === 2`)
	saved, release := make(chan struct{}), make(chan struct{})
	p.onNext(http.MethodPut, "/v1/rbac/roles/"+role+"/permissions", delayResponse(saved, release))
	v.click(`.save-bar button:last-child`)
	happens(t, "the role to be saved", saved)
	v.eval(box("3") + `.click()`)
	v.eval(box("4") + `.click()`)
	v.deliver("/permissions", release)
	v.until(box("2") + `.checked && !` + box("3") + `.checked && ` + box("4") + `.checked`)
	v.until(`document.querySelector('.save-bar button:last-child:not(:disabled)')`)
	v.eval(`document.querySelector('.save-bar button:last-child').click()`) // a message may cover it for a moment
	v.gone(`.save-bar`)
	v.until(box("2") + `.checked && !` + box("3") + `.checked && ` + box("4") + `.checked`)
}
