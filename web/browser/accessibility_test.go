package browser_test

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"kontor/store/testenv"
)

//go:embed testdata/axe.min.js
var axe string

// Every screen, tab and dialog, wide in both themes and narrow in one: axe finds no violation, nothing overflows the window, and the
// browser's console has no warnings.
func TestViews_AreAccessibleAndFit(t *testing.T) {
	s := sharedServer(t)
	looks := map[string]look{"en": desk, "fr": {width: 360, height: 740, dark: true}}
	if testenv.Runs(testenv.Soak) { // a large screen, and a desk at 200 %
		looks["de"], looks["it"] = look{width: 1920, height: 1080}, look{width: 640, height: 450, dark: true}
	}
	for language, l := range looks {
		t.Run(fmt.Sprintf("%d", l.width), func(t *testing.T) {
			t.Parallel()
			s := &testServer{t: t, address: s.address}
			outside := newVisitor(t, s, l)
			outside.expect("40") // Some views show errors of the server.
			for _, one := range append(signedOutViews(), explorer()...) {
				if one.path != "" {
					outside.open("/healthz")
					outside.setLanguage(language)
					outside.open(one.path)
				}
				outside.examine(one)
			}
			own := s.newPerson("Customer")
			mine := s.customerViews(own)
			client := signedIn(t, s, l, own)
			client.setLanguage(language)
			client.do(chromedp.Reload())
			for _, one := range mine {
				client.goTo("/profile")
				client.until(`document.querySelector('main .segments') && !document.querySelector('dialog')`)
				client.goTo(one.path)
				client.examine(one)
			}
			me := s.newPerson("Administrator")
			views := s.views(me)
			v := signedIn(t, s, l, me)
			v.expect("40")
			v.expect("415") // the evidence of another type
			v.setLanguage(language)
			v.do(chromedp.Reload())
			for _, one := range views {
				if !one.narrow || l.width < desk.width {
					v.leaveFor(one.path)
					v.examine(one)
				}
			}
		})
	}
}

// leaveFor closes open dialogs by opening another screen first.
func (v *visitor) leaveFor(path string) {
	v.t.Helper()
	v.goTo("/admin/nothing")
	v.until(`document.querySelector('main .empty a[href="/"]') && !document.querySelector('dialog')`)
	v.goTo(path)
}

// goTo opens a path of the console without reloading the page.
func (v *visitor) goTo(path string) {
	v.t.Helper()
	v.eval(fmt.Sprintf(`history.pushState(null, '', %q); dispatchEvent(new PopStateEvent('popstate'))`, path))
}

// text returns the console's text for a key in the current language.
func (v *visitor) text(key string) string {
	v.t.Helper()
	language := ask[string](v, `document.documentElement.lang`)
	texts := map[string]string{}
	for _, part := range []string{"", "security/", "invoices/", "privacy/", "services/", "health/", "webhooks/", "admin/", "invitation/", "work/", "home/", "review/"} {
		raw, err := os.ReadFile("../i18n/" + part + language + ".json")
		if err != nil {
			v.t.Fatal(err)
		}
		if err := json.Unmarshal(raw, &texts); err != nil { // It adds to the former part.
			v.t.Fatal(err)
		}
	}
	if texts[key] == "" {
		v.t.Fatalf("there is no text %q", key)
	}
	return texts[key]
}

// axeRun runs axe on the page, with some rules only if rules are given.
const axeRun = `(async (rules) => {
	scrollTo(0, 0); // An element that the top bar covers would count as too small.
	const { violations, passes } = await axe.run(document, { preload: false, resultTypes: ['violations'],
		runOnly: rules.length ? { type: 'rule', values: rules } : ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] });
	if (passes.length + violations.length === 0) return ['no element was checked'];
	return violations.map((one) => one.id + ': ' + one.nodes.map((node) => node.target.join(' ') + ' ' + (node.any[0]?.message ?? '')).join(' | '));
})`

// examine waits until a view is complete and checks it, in a wide window in both themes.
func (v *visitor) examine(one view) {
	v.t.Helper()
	for _, step := range one.steps {
		step(v)
	}
	v.until(fmt.Sprintf(`document.querySelector(%q) && !(document.querySelector('dialog[open]') ?? document).querySelector('.skeleton')`, one.drawn))
	v.fits(one.name)
	if v.look == desk { // the width of a tablet
		v.do(chromedp.EmulateViewport(768, 1000))
		v.fits(one.name)
		v.do(chromedp.EmulateViewport(desk.width, desk.height))
	}
	if !ask[bool](v, `Boolean(window.axe)`) {
		v.do(func(ctx context.Context, tab *chromedp.Target) (chromedp.Void, error) {
			_, err := chromedp.Evaluate[bool](axe+"\n;true")(ctx, tab)
			return chromedp.Void{}, err
		})
	}
	var found []string
	if v.look == desk {
		found = ask[[]string](v, axeRun+`([])`)
		v.otherTheme(true)
		for _, problem := range ask[[]string](v, axeRun+`(['color-contrast', 'link-in-text-block'])`) {
			found = append(found, "in the other theme: "+problem)
		}
		v.otherTheme(false)
	} else { // what depends on the width
		found = ask[[]string](v, axeRun+`(['target-size', 'scrollable-region-focusable', 'color-contrast'])`)
	}
	if len(found) > 0 {
		v.t.Errorf("%s: axe finds\n  %s", one.name, strings.Join(found, "\n  "))
	}
}

// fits reports elements that are wider than the window or their dialog.
func (v *visitor) fits(name string) {
	v.t.Helper()
	wide := ask[string](v, `[document.documentElement, ...document.querySelectorAll('dialog[open] > article')]
		.filter((box) => box.scrollWidth > box.clientWidth)
		.map((box) => [...box.querySelectorAll('*')]
			.filter((one) => one.getBoundingClientRect().right > box.getBoundingClientRect().left + box.clientWidth)
			.map((one) => one.outerHTML.slice(0, 160)).join('\n  ') || box.tagName).join('\n  ')`)
	if wide != "" {
		v.t.Errorf("%s: the page is wider than the window, by\n  %s", name, wide)
	}
}

// otherTheme switches between light and dark.
func (v *visitor) otherTheme(on bool) {
	v.t.Helper()
	theme := "light"
	if v.look.dark != on {
		theme = "dark"
	}
	v.eval(fmt.Sprintf(`const own = document.getElementById('theme'); if (own) own.click(); else document.documentElement.dataset.theme = %q`, theme))
}
