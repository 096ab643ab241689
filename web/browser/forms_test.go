package browser_test

import (
	"fmt"
	"testing"
)

func TestCustomers_ErrorsStandBesideTheirFields(t *testing.T) {
	b := sharedBank(t)
	v := signedIn(t, b, desk, b.newPerson("Administrator"))
	v.expect("400")
	v.open("/customers?new=1")
	v.write(`input[name=first_name]`, "Noëmi")
	v.write(`input[name="address.country"]`, "QQ")
	v.click(`dialog button[type=submit]`)
	for _, field := range []string{"last_name", "email", "address.country"} {
		v.until(fmt.Sprintf(`document.getElementById(document.getElementsByName(%q)[0].getAttribute('aria-describedby')?.split(' ')[0])?.innerText`, field))
	}
	v.until(`document.activeElement.name === 'last_name'`) // The first wrong field has the focus.
	v.write(`input[name=last_name]`, "Häfliger")
	v.write(`input[name=email]`, "noemi@example.ch")
	v.write(`input[name="address.country"]`, "CH")
	v.click(`dialog button[type=submit]`)
	v.until(`document.querySelector('h1').innerText === 'Noëmi Häfliger' && !document.querySelector('dialog')`)

	v.click(`.tabs a[href$="/kyc"]`)
	v.see("No documents")
	v.clickText("Add document")
	v.write(`dialog input[name=number]`, "X1234567")
	v.eval(`const f = document.querySelector('dialog input[name=expiry_date]'); f.value = '2099-01-31'; f.dispatchEvent(new Event('input', { bubbles: true }))`)
	v.click(`dialog button[type=submit]`)
	v.see("X1234567")
	v.see("Pending")
	v.clickText("Decide")
	v.choose(`dialog select[name=kyc_status]`, "in_review")
	v.write(`dialog textarea[name=reason]`, "The passport was seen")
	v.click(`dialog button[type=submit]`)
	v.see("The passport was seen") // It is in the history.
	v.until(`document.querySelector('.steps [aria-current=step]').innerText.includes('In review')`)
}
