package browser_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"os/exec"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// The list beside the explorer finds operations by words of their group, path and summary, and opens them by the keyboard.
func TestDocs_SidebarFindsAndOpensOperations(t *testing.T) {
	s := sharedServer(t)
	v := newVisitor(t, s, desk)
	v.open("/docs")
	v.until(`document.querySelectorAll('.side-group').length > 10`)
	v.keys("/")
	v.until(`document.activeElement.type === 'search'`)
	v.keys("customers create")
	v.until(`[...document.querySelectorAll('.side li:not([hidden])')].some((one) => one.dataset.search.includes('customers.create'))`)
	enter := kb.Encode('\r') // pressed, repeated, released
	v.key(enter[0])
	v.until(`location.hash.startsWith('#/Customers/') && document.querySelector('.opblock.is-open .examples pre')`)
	v.until(`document.activeElement.closest('.opblock')`)
	v.key(enter[1]) // A key that is held does not close the operation, which has the focus.
	v.key(enter[2])
	v.until(`location.hash.startsWith('#/Customers/') && document.querySelector('.opblock.is-open .examples pre')`)
	v.write(`.side input`, "no such operation")
	v.see("No operation fits.")
	for _, language := range []string{"curl", "JavaScript", "Go", "Python"} {
		v.clickText(language)
		v.until(fmt.Sprintf(`document.querySelector('.examples [aria-pressed=true]').innerText === %q && document.querySelector('.examples pre').innerText.includes('/v1/customers')`, language))
	}
}

// The session of the console is used only after the reader has said so, and the page says what that means.
func TestDocs_UseTheConsolesSessionWhenWanted(t *testing.T) {
	s := sharedServer(t)
	me := s.newPerson("Advisor")
	v := signedIn(t, s, desk, me)
	v.expect("401")
	v.open("/docs")
	v.see("Requests are sent without a token.")
	v.see(me.login)
	try := func() {
		v.until(`(document.querySelector('[id$=".me"] .try-out__btn:not(.cancel)')?.click(), document.querySelector('[id$=".me"] .execute'))`)
		v.eval(`document.querySelector('[id$=".me"] .execute').click()`)
	}
	v.write(`.side input`, "users.me")
	v.keys(kb.Enter)
	v.until(`document.querySelector('[id$=".me"].is-open')`)
	try()
	v.until(`document.querySelector('.live-responses-table tbody .response-col_status')?.innerText.startsWith('401')`)
	v.click(`#session input`)
	v.see("Requests are real")
	try()
	v.until(`document.querySelector('.live-responses-table tbody .response-col_status')?.innerText.startsWith('200')`)
	v.open("/docs")
	v.until(`document.querySelector('#session input') && !document.querySelector('#session input').checked`)
}

// Every operation has an example in each language; those in Go and for the shell are valid.
func TestDocs_ExamplesAreValid(t *testing.T) {
	s := sharedServer(t)
	v := newVisitor(t, s, desk)
	v.open("/docs")
	v.until(`document.querySelector('.side-group')`)
	examples := ask[[]map[string]string](v, `(async () => {
		const base = document.querySelector('script[type=module]').src;
		const { callOf, LANGUAGES } = await import(new URL('./examples.js', base));
		const spec = await (await fetch('/openapi.json')).json();
		return Object.entries(spec.paths).flatMap(([path, methods]) => Object.keys(methods).map((method) => {
			const call = callOf(spec, location.origin, path, method);
			return { name: method + ' ' + path, ...Object.fromEntries(LANGUAGES.map(([key, , write]) => [key, write(call)])) };
		}));
	})()`)
	if len(examples) < 100 {
		t.Fatalf("there are %d operations", len(examples))
	}
	for _, one := range examples {
		if _, err := parser.ParseFile(token.NewFileSet(), "main.go", one["go"], parser.AllErrors); err != nil {
			t.Errorf("%s in Go: %v", one["name"], err)
		}
		if out, err := exec.Command("sh", "-n", "-c", one["curl"]).CombinedOutput(); err != nil {
			t.Errorf("%s for the shell: %v %s", one["name"], err, out)
		}
		for _, language := range []string{"javascript", "python"} {
			if !strings.Contains(one[language], s.url("/")) {
				t.Errorf("%s: the example in %s does not name the address", one["name"], language)
			}
		}
	}
}
