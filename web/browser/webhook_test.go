package browser_test

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

// The form of a new webhook sends a test to the typed address before it is saved.
func TestWebhooks_AnAddressIsTestedBeforeItIsSaved(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--webhooks.allowed_networks", "127.0.0.0/8")
	var calls, answer atomic.Int64
	answer.Store(http.StatusNoContent)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		w.WriteHeader(int(answer.Load()))
	}))
	t.Cleanup(receiver.Close)
	v := signedInAt(t, s, desk, firstAdmin, "/admin/webhooks")
	v.expect("400")
	v.see(v.text("webhooks.none_text"))
	v.clickText(v.text("webhooks.new"))
	v.until(`document.querySelector('.try-address button').disabled`)
	v.write(`dialog input[name=url]`, "https://10.0.0.1/")
	v.click(`.try-address button`)
	v.until(`document.querySelector('dialog input[name=url]').getAttribute('aria-invalid') === 'true'`)
	v.write(`dialog input[name=url]`, receiver.URL)
	v.click(`.try-address button`)
	v.see(v.text("webhooks.try_accepted"))
	v.see("204")
	v.examine(view{name: "webhook_tried", drawn: `dialog .notice.good`})
	v.picture("webhook_tried")
	answer.Store(http.StatusInternalServerError)
	v.click(`.try-address button`)
	v.see(v.text("webhooks.try_failed"))
	v.see("500")
	if n := calls.Load(); n != 2 {
		t.Errorf("the receiver got %d calls", n)
	}
	if list := s.call(s.token(firstAdmin), http.MethodGet, "/v1/webhooks", nil); list["total"] != float64(0) {
		t.Errorf("a test has created %v", list)
	}
}
