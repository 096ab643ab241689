package browser_test

import (
	"net/http"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// newChat creates a chat of the user with another one, and returns its path.
func (s *testServer) newChat(me person) string {
	s.t.Helper()
	other := s.newPerson("Customer")
	return "/chats/" + s.call(s.token(me), http.MethodPost, "/v1/chats", map[string]any{"participants": []any{other.id}})["id"].(string)
}

// A message that fails late goes back into the field, and what the user has typed since stays.
func TestChats_AMessageThatFailsLateKeepsWhatIsTypedSince(t *testing.T) {
	p := newProxy(t, sharedServer(t))
	me := p.newPerson("Advisor")
	chat := p.newChat(me)
	v := signedInAt(t, p.testServer, desk, me, chat)
	v.expect("503")
	arrived, release := make(chan struct{}), make(chan struct{})
	p.onNext(http.MethodPost, "/v1"+chat+"/messages", func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		close(arrived)
		released(r, release)
		respond(http.StatusServiceUnavailable, `{"message":"not now"}`)(w, r, pass)
	})
	v.write(`#composer`, "The first one")
	v.keys(kb.Enter)
	happens(t, "the request to arrive at the proxy", arrived)
	v.write(`#composer`, "The second one")
	close(release)
	v.until(`document.querySelector('.thread [role=alert]')`)
	v.until(`document.querySelector('#composer').value === 'The first one\nThe second one' && !document.querySelector('.message')`)
}

// Messages that are written one soon after the other arrive in that order.
func TestChats_MessagesKeepTheirOrder(t *testing.T) {
	p := newProxy(t, sharedServer(t))
	me := p.newPerson("Advisor")
	chat := p.newChat(me)
	v := signedInAt(t, p.testServer, desk, me, chat)
	arrived, release := make(chan struct{}), make(chan struct{})
	p.onNext(http.MethodPost, "/v1"+chat+"/messages", holdRequest(arrived, release))
	for _, text := range []string{"The first one", "The second one"} {
		v.write(`#composer`, text)
		v.keys(kb.Enter)
	}
	happens(t, "the request to arrive at the proxy", arrived)
	v.until(`document.querySelectorAll('.message').length === 2`)
	close(release)
	v.until(`[...document.querySelectorAll('.message .stamp')].every((one) => !one.innerText.includes('Sending'))`)
	v.open(chat)
	v.until(`[...document.querySelectorAll('.message p')].map((one) => one.innerText).join() === 'The first one,The second one'`)
}

// A text that was typed and not sent is not shown to the next user of the page.
func TestChats_ADraftIsForgottenAfterSigningOut(t *testing.T) {
	s := sharedServer(t)
	me, other := s.newPerson("Advisor"), s.newPerson("Advisor")
	chat := "/chats/" + s.call(s.token(me), http.MethodPost, "/v1/chats", map[string]any{"participants": []any{other.id}})["id"].(string)
	v := signedInAt(t, s, desk, me, chat)
	v.write(`#composer`, "Only a draft")
	v.goTo("/chats")
	v.gone(`#composer`)
	v.goTo(chat)
	v.until(`document.querySelector('#composer')?.value === 'Only a draft'`)
	v.signOut()
	v.typePassword(other)
	v.isIn()
	v.goTo(chat)
	v.until(`document.querySelector('#composer')?.value === ''`)
}

// A record may change after it was read and before its changes are followed: the screen shows that too.
func TestCustomer_ShowsAChangeBeforeItIsFollowed(t *testing.T) {
	p := newProxy(t, sharedServer(t))
	me := p.newPerson("Advisor")
	token := p.token(me)
	customer := p.newCustomer(token, "Luca", "Bernasconi")
	v := signedIn(t, p.testServer, desk, me)
	asked, release := make(chan struct{}), make(chan struct{})
	p.onNext(http.MethodGet, "/v1/events", holdRequest(asked, release))
	v.goTo("/customers/" + customer)
	happens(t, "the request to arrive at the proxy", asked)
	v.see("Bernasconi")
	p.call(token, http.MethodPut, "/v1/customers/"+customer, map[string]any{"last_name": "Rossi"})
	close(release)
	v.until(`document.querySelector('main h1').innerText.includes('Rossi')`)
}

// The dialog that signs in again appears also if its module could not be loaded at first.
func TestRevokedSession_ADialogThatFailsToLoadIsTriedAgain(t *testing.T) {
	p := newProxy(t, sharedServer(t))
	me := p.newPerson("Advisor")
	v := signedIn(t, p.testServer, desk, me)
	v.expect("401")
	v.expect("503")
	base := ask[string](v, `new URL(document.querySelector('script[type=module]').src).pathname.replace(/app\/.*/, '')`)
	p.onNext(http.MethodGet, base+"app/ui/reauthenticate.js", respond(http.StatusServiceUnavailable, "{}"))
	p.endSessions(me)
	v.eval(`document.querySelector('nav a[href="/customers"]').click()`)
	v.write(`dialog input[name=password]`, me.password)
	v.submit(`dialog input[name=password]`)
	v.gone(`dialog`)
	v.until(`document.querySelector('h1').innerText === 'Customers' && document.querySelector('table.data, .empty')`)
}
