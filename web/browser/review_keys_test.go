package browser_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"testing"
)

// scan is a small picture of a document.
func scan(t *testing.T) []byte {
	t.Helper()
	picture := image.NewRGBA(image.Rect(0, 0, 120, 80))
	for x := range 120 {
		for y := range 80 {
			picture.Set(x, y, color.RGBA{uint8(x * 2), uint8(y * 3), 120, 255})
		}
	}
	var out bytes.Buffer
	if err := png.Encode(&out, picture); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// addScan uploads a picture to the first document of a customer.
func (s *testServer) addScan(token, customer string) {
	s.t.Helper()
	document := s.call(token, http.MethodGet, "/v1/customers/"+customer+"/kyc", nil)["documents"].([]any)[0].(map[string]any)["id"].(string)
	request, err := http.NewRequest(http.MethodPost, s.url("/v1/customers/"+customer+"/kyc/documents/"+document+"/files"), bytes.NewReader(scan(s.t)))
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "image/png")
	request.Header.Set("Content-Disposition", `attachment; filename="passport.png"`)
	answer, err := apiClient.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusCreated {
		s.t.Fatalf("upload: %d", answer.StatusCode)
	}
}

// decidable waits until the keys of a case decide.
func (v *visitor) decidable(id string) {
	v.t.Helper()
	v.until(`document.querySelector('.review-grid')?.dataset.case === '` + id + `' && document.querySelector('.review-grid').dataset.keys === 'on'
		&& document.querySelector('.evidence .files li')`)
}

// answers waits until the API answers a member with a value: a decision is sent ten seconds after it was made.
func (v *visitor) answers(token, path, member string, want any) {
	v.t.Helper()
	encoded, err := json.Marshal(want)
	if err != nil {
		v.t.Fatal(err)
	}
	v.gone(`.toast .undo`)
	v.until(fmt.Sprintf(`(() => { const all = window.answers ??= {}; const one = all[%[1]q] ??= {};
		one.asked ??= fetch(%[1]q, { headers: { Authorization: 'Bearer %[2]s' } }).then((r) => r.json())
			.then((answer) => { one.value = answer[%[3]q]; setTimeout(() => { one.asked = undefined }, 300) }); // fewer requests than the limit
		return one.value === %[4]s })()`, path, token, member, encoded))
}

// restTime is how long the keys of a case rest after it was painted.
const restTime = 1000

// Keys in quick succession decide nothing about a case that was not looked at. A decision can be undone for ten seconds.
func TestReviewKeys_DecideOnlyWhatWasSeenAndCanBeUndone(t *testing.T) {
	s := newServer(t)
	admin := s.token(firstAdmin)
	first, second := s.waitingCase(admin, "First", "Eins"), s.waitingCase(admin, "Second", "Zwei")
	for _, id := range []string{first, second} {
		s.addScan(admin, id)
	}
	status := func(id string) any { return s.call(admin, http.MethodGet, "/v1/customers/"+id, nil)["kyc_status"] }
	v := signedIn(t, s, desk, s.newPerson("Advisor"))
	v.holdNextTimers(restTime)
	v.open("/review/" + first)
	v.until(`document.querySelector('.review-grid')?.dataset.keys === 'rest'`)
	v.keys("a")
	v.keys(enter)
	v.until(`window.held.length`) // The case has been painted.
	v.runTimers()
	v.decidable(first)
	v.holdTimers(undoTime)
	if ask[bool](v, `Boolean(document.querySelector('.review-decision :checked'))`) {
		t.Error("a key has chosen something while the keys rested")
	}
	v.keys("a")
	v.until(`document.querySelector('.review-decision [value=verified]:checked')`)
	v.keys(enter)
	v.seeMessage("Open each scan before you decide")
	v.keys("o")
	v.until(`document.querySelector('dialog[open] .sheet canvas')`)
	v.keys("a")
	v.gone(`dialog[open]`)
	v.eval(`for (const key of ['Enter', 'Enter']) dispatchEvent(new KeyboardEvent('keydown', { key }))`) // both before the next frame
	v.keys("a")
	v.keys(enter)
	v.until(`location.pathname === '/review/` + second + `' && document.querySelector('.toast .undo')`)
	if n := ask[int](v, `document.querySelectorAll('.toast .undo').length`); n != 1 {
		t.Errorf("%d decisions wait, want one", n)
	}
	v.decidable(second)
	if ask[bool](v, `Boolean(document.querySelector('.review-decision :checked'))`) || status(second) != "pending" {
		t.Error("the keys for the first case have decided about the second one")
	}
	v.picture("review-undo")
	v.keys("u")
	v.until(`location.pathname === '/review/` + first + `' && !document.querySelector('.toast .undo')`)
	if got := status(first); got != "in_review" {
		t.Errorf("after the undo the first case is %v, want in_review", got)
	}
	v.decidable(first)
	v.keys("a")
	v.until(`document.querySelector('.review-decision [value=verified]:checked')`)
	v.keys(enter)
	v.until(`location.pathname === '/review/` + second + `'`)
	v.runTimers()
	v.answers(admin, "/v1/customers/"+first, "kyc_status", "verified")
}

// A decision that the server refuses is shown with a link to its case.
func TestReviewKeys_ARefusedDecisionIsShown(t *testing.T) {
	s := newServer(t)
	admin := s.token(firstAdmin)
	id := s.waitingCase(admin, "Refused", "Decision")
	s.addScan(admin, id)
	v := signedInAt(t, s, desk, s.newPerson("Advisor"), "/review/"+id)
	v.expect("412")
	v.decidable(id)
	v.holdTimers(undoTime)
	v.keys("o")
	v.until(`document.querySelector('dialog[open] .sheet canvas')`)
	v.keys("r")
	v.keys("1")
	v.until(`document.querySelector('textarea[name=reason]')?.value`)
	v.keys(enter)
	v.until(`document.querySelector('.toast .undo')`)
	s.call(admin, http.MethodPatch, "/v1/customers/"+id+"/kyc/status", map[string]any{"kyc_status": "action_required", "reason": "Another reviewer was faster."})
	v.runTimers()
	v.see("the decision was not accepted")
	v.until(`document.querySelector('.toast.bad a[href^="/review/` + id + `"]')`)
	v.picture("review-refused")
}
