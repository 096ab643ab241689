package browser_test

import (
	"net/http"
	"testing"
)

// A reviewer sees who holds what, and removes all rights of a user.
func TestAccessReview_RemovesTheRightsOfAUser(t *testing.T) {
	s := sharedServer(t)
	me, advisor := s.newPerson("Administrator"), s.newPerson("Advisor")
	token := s.token(me)
	v := signedInAt(t, s, desk, me, "/admin/review?user_id="+advisor.id)
	v.until(`document.querySelectorAll('main table.data tbody tr').length === 1`)
	v.picture("access_review")
	v.click(`main table.data tbody button.link`)
	v.see(v.text("access_review.never"))
	v.eval(`document.querySelector('dialog button.danger').click()`)
	v.until(`document.querySelectorAll('dialog').length === 2`)
	v.eval(`[...document.querySelectorAll('dialog')].at(-1).querySelector('.actions button:not(.quiet)').click()`)
	v.seeMessage(v.text("access_review.done"))
	if n := s.call(token, http.MethodGet, "/v1/rbac/review?search.user_id="+advisor.id, nil)["total"]; n != 0.0 {
		t.Errorf("%v rights are left", n)
	}
}
