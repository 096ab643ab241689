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
	s.newCustomer(s.token(me), "Nina", "Posteingang")
	customer := signedIn(t, s, look{width: 360, height: 740}, me)
	customer.goTo("/chats")
	customer.clickText("Write to the bank")
	customer.until(`location.pathname.startsWith('/chats/') && document.querySelector('.thread h2').innerText === 'The bank'`)
	customer.write(`#composer`, "My card is lost")
	customer.click(`.composer button[type=submit]`)
	customer.see("My card is lost")
	customer.picture("write-to-the-bank")
	thread := ask[string](customer, `location.pathname.slice('/chats/'.length)`)

	v := signedIn(t, s, desk, s.newPerson("Advisor"))
	v.click(`nav a[href="/inbox"]`)
	v.click(`.chat-list a[href="/inbox/` + thread + `"]`)
	v.see("My card is lost")
	v.see("Nina Posteingang")
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
