package browser_test

import (
	"net/http"
	"testing"
)

// Pickers find people by first names and without accents, report an empty result, and offer to create the record.
func TestPickers_FindByAnyWordAndSayThatNobodyWasFound(t *testing.T) {
	s := sharedServer(t)
	me := s.newPerson("Administrator")
	token := s.token(me)
	s.newCustomer(token, "Philomena", "Mülleraux")
	colleague := s.newPerson("Advisor")
	s.call(token, http.MethodPatch, "/v1/users/"+colleague.id, map[string]any{"display_name": "Wilhelmina Sägesser"})
	v := signedInAt(t, s, desk, me, "/tasks")
	v.clickText("New task")
	for _, typed := range []string{"Philomena", "mulleraux"} {
		v.write(`dialog input[name=customer_id]`, typed)
		v.until(`[...document.querySelectorAll('dialog [role=option]')].some((one) => one.innerText.includes('Philomena Mülleraux'))`)
	}
	v.write(`dialog input[name=customer_id]`, "Xyzzyqwert")
	v.see("Nobody found for “Xyzzyqwert”.")
	v.until(`document.querySelector('dialog .lookup-state a[href="/customers?new=1"][target=_blank]')`)
	v.picture("picker_nobody")
	v.write(`dialog input[name=customer_id]`, "philomena")
	v.until(`document.querySelector('dialog [role=option]')`)
	v.keys(enter)
	v.until(`document.querySelector('dialog input[name=customer_id]').value === 'Philomena Mülleraux'`)
	v.write(`dialog .lookup:not(:has([name=customer_id])) input`, "sagesser")
	v.until(`[...document.querySelectorAll('dialog [role=option]')].some((one) => one.innerText.includes('Wilhelmina Sägesser'))`)
}
