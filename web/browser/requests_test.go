package browser_test

import (
	"testing"
)

// An administrator finds a request that was refused, reads why, and copies it as a command; new requests appear while the list
// follows them. The request id of an error on any screen leads there.
func TestRequests_FromAnErrorToItsReason(t *testing.T) {
	s := newServer(t, "--sandbox")
	me := s.newPerson("Administrator")
	v := signedIn(t, s, desk, me)
	v.expect("404")
	const unknown = "0193a7c4-5e2f-7b1a-9c3d-8f6e2a4b7c10"
	v.open("/customers/" + unknown)
	v.until(`document.querySelector('.notice.bad a[href^="/admin/requests?request_id="]')`)
	v.picture("request_link")
	v.click(`.notice.bad a[href^="/admin/requests?request_id="]`)
	v.until(`document.querySelectorAll('main table.data tbody tr').length === 1`)
	v.see("GET /v1/customers/{id}")
	v.picture("request_found")
	v.click(`main .row-link`)
	v.see("There is no record " + unknown + " of the type customers.")
	v.until(`document.querySelector('pre.command').innerText.includes('/v1/customers/` + unknown + `') && document.querySelector('pre.command').innerText.includes('$KONTOR_TOKEN')`)
	v.picture("request_detail")
	v.examine(view{name: "request", drawn: "ol.checks"})

	v.goTo("/admin/requests?class=4xx&caller_kind=anonymous")
	v.clickText("Follow live")
	v.until(`document.querySelector('button.follow[aria-pressed=true]')`)
	answer, err := apiClient.Get("http://" + s.address + "/v1/nothing-here")
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	v.until(`[...document.querySelectorAll('main .row-link')].some((row) => row.innerText.includes('/v1/nothing-here'))`)
	v.goTo("/admin/requests")
	v.until(`document.querySelectorAll('main table.data tbody tr').length > 5`)
	v.picture("requests")
	v.examine(view{name: "requests", drawn: "table.data"})
}

// Without the log, the screen says how to switch it on, and an error names its request without a link.
func TestRequests_AreOffByDefault(t *testing.T) {
	s := sharedServer(t)
	me := s.newPerson("Administrator")
	v := signedInAt(t, s, desk, me, "/admin/requests")
	v.see("requests.keep")
	v.expect("404")
	v.open("/customers/0193a7c4-5e2f-7b1a-9c3d-8f6e2a4b7c10")
	v.until(`document.querySelector('.notice.bad .fine')?.innerText.includes('Request ')`)
	v.until(`!document.querySelector('.notice.bad a')`)
}
