package browser_test

import (
	"testing"

	"github.com/chromedp/chromedp/kb"
)

func TestKeyboard_ReachesEverything(t *testing.T) {
	b := sharedBank(t)
	me := b.newPerson("Advisor")
	v := newVisitor(t, b, desk)
	v.door("/signin")
	v.until(`document.activeElement.name === 'login'`)
	v.keys(me.login + kb.Tab + me.password + kb.Enter)
	v.until(`document.querySelector('.shell h1')`)
	v.tabTo(`document.activeElement.classList.contains('skip')`)
	v.keys(kb.Enter)
	v.until(`document.activeElement.id === 'main'`) // Past the menu, into the content.
	v.tabTo(`document.activeElement.getAttribute('href') === '/customers'`)
	v.keys(kb.Enter)
	v.until(`document.querySelector('h1').innerText === 'Customers' && document.activeElement.tagName === 'H1'`)
	v.tabTo(`document.activeElement.innerText?.trim() === 'New customer'`)
	v.keys(kb.Enter)
	v.until(`document.querySelector('dialog[open]') && document.activeElement.name === 'first_name'`)
	v.keys("Reto" + kb.Tab + "Favre" + kb.Tab + "reto@example.ch" + kb.Enter)
	v.until(`document.querySelector('h1').innerText === 'Reto Favre'`)
	v.tabTo(`document.activeElement.innerText?.trim() === 'Edit'`)
	v.keys(kb.Enter)
	v.until(`document.querySelector('dialog[open]')`)
	v.keys(kb.Escape)
	v.gone(`dialog`)
	v.until(`document.activeElement.innerText?.trim() === 'Edit'`) // The focus goes back to where it was.
}

// tabTo presses Tab until a condition on the focus holds.
func (v *visitor) tabTo(condition string) {
	v.t.Helper()
	for range 80 {
		v.keys(kb.Tab)
		if ask[bool](v, "Boolean("+condition+")") {
			return
		}
	}
	v.t.Fatalf("Tab never reached: %s\n%s", condition, v.page())
}
