package browser_test

import (
	"net/http"
	"testing"
)

// A customer writes to the bank with one button, on a telephone. The staff see the message in the inbox, beside the customer's record,
// write an internal note and answer from a template. The customer sees the answer alone.
func TestInbox_FromTheCustomerToTheAnswer(t *testing.T) {
	s := sharedServer(t)
	me := s.newPerson("Customer")
	record := s.newCustomer(s.token(me), "Nina", "Posteingang")
	customer := signedInAt(t, s, look{width: 360, height: 740}, me, "/chats")
	customer.clickText("Write to the bank")
	customer.until(`location.pathname.startsWith('/chats/') && document.querySelector('h1').innerText === 'The bank'`)
	customer.write(`#composer`, "My card is lost")
	customer.click(`.composer button[type=submit]`)
	customer.see("My card is lost")
	customer.picture("write-to-the-bank")
	thread := ask[string](customer, `location.pathname.slice('/chats/'.length)`)

	v := signedIn(t, s, desk, s.newPerson("Advisor"))
	v.goTo("/customers/" + record) // The stream of the customer has the message, too, for staff who do not take part in the chat.
	v.until(`document.querySelector('.stream a[href="/inbox/` + thread + `"]')?.innerText === 'My card is lost'`)
	v.click(`nav a[href="/inbox"]`)
	v.click(`.row-link[href="/inbox/` + thread + `"]`)
	v.see("My card is lost")
	v.see("Nina Posteingang")
	v.until(`document.querySelector('.bench-list [aria-current=page]') && document.querySelector('.inbox-customer a')`) // the list stays
	v.clickText("Internal note")
	v.write(`.writer textarea`, "Third loss this year")
	v.clickText("Save the note")
	v.until(`[...document.querySelectorAll('.internal-note')].some((one) => one.innerText.includes('Third loss this year'))`)
	v.clickText("Answer")
	v.until(`document.querySelector('.writer select option[value="received"]')`)
	v.eval(`const s = document.querySelector('.writer select'); s.value = 'received'; s.dispatchEvent(new Event('change', { bubbles: true }))`)
	v.until(`document.querySelector('.writer textarea').value.startsWith('Thank you for your message.')`)
	v.clickText("Send")
	v.see("Waiting")
	v.until(`document.querySelector('.message.mine')`)
	v.picture("inbox")
	customer.see("Thank you for your message.")
	customer.until(`!document.body.innerText.includes('Third loss')`)
	v.clickText("Close")
	v.see("Open again")
	if state := s.call(s.token(firstAdmin), http.MethodGet, "/v1/inbox/"+thread, nil)["state"]; state != "closed" {
		t.Errorf("the thread is %v, want closed", state)
	}
}

// Chats are a view of the one surface: the list stays while a chat is open, J opens the next one, and the Back button returns.
func TestChats_OpenBesideTheirList(t *testing.T) {
	s := sharedServer(t)
	me, other, client := s.newPerson("Advisor"), s.newPerson("Advisor"), s.newPerson("Customer")
	s.newCustomer(s.token(client), "Nina", "Nebenan")
	for _, with := range []person{other, client} {
		chat := s.call(s.token(me), http.MethodPost, "/v1/chats", map[string]any{"participants": []string{with.id}})["id"].(string)
		s.call(s.token(with), http.MethodPost, "/v1/chats/"+chat+"/messages", map[string]any{"content": "Good morning from " + with.id})
	}
	v := signedInAt(t, s, desk, me, "/chats")
	v.until(`document.querySelectorAll('.chats .row-link').length === 2 && document.querySelector('.chat-last').innerText.includes('` + client.id + `')`)
	if high := ask[float64](v, `document.querySelector('.chats tbody tr').getBoundingClientRect().height`); high > 37 {
		t.Errorf("a row is %.0f px high, want 36", high)
	}
	v.click(`.chats .row-link`)
	v.see("Nina Nebenan")
	v.until(`document.querySelectorAll('.bench-list .row-link').length === 2 && document.activeElement.id !== 'composer'`)
	first := ask[string](v, `location.pathname`)
	v.keys("j")
	v.until(`location.pathname !== '` + first + `' && document.querySelector('.message')?.innerText.includes('` + other.id + `')`)
	v.until(`!document.querySelector('.inbox-customer')`) // A colleague is no customer.
	v.keys("k")
	v.until(`location.pathname === '` + first + `'`)
	v.eval(`history.go(-3)`)
	v.until(`location.pathname === '/chats' && !document.querySelector('.thread')`)
}
