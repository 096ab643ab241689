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
)

//go:embed testdata/axe.min.js
var axe string

// Every screen, tab and dialog, on wide and narrow displays, light and dark: axe finds nothing, nothing sticks out at
// the side, and the browser's console stays silent.
func TestViews_AreAccessibleAndFit(t *testing.T) {
	b := sharedBank(t)
	for language, l := range map[string]look{"en": desk, "fr": {width: 360, height: 740, dark: true}} {
		t.Run(fmt.Sprintf("%d", l.width), func(t *testing.T) {
			t.Parallel()
			b := &bank{t: t, address: b.address}
			outside := newVisitor(t, b, l)
			outside.expect("40") // Refusals are among what is looked at.
			for _, one := range append(doors(), explorer()...) {
				if one.path != "" {
					outside.open("/healthz")
					outside.speak(language)
					outside.open(one.path)
				}
				outside.examine(one)
			}
			me := b.newPerson("Administrator")
			views := b.views(me)
			v := signedIn(t, b, l, me)
			v.expect("40")
			v.speak(language)
			v.do(chromedp.Reload())
			for _, one := range views {
				if !one.narrow || l != desk {
					v.leaveFor(one.path)
					v.examine(one)
				}
			}
		})
	}
}

// leaveFor closes whatever is open by going to another screen, and goes on from there.
func (v *visitor) leaveFor(path string) {
	v.t.Helper()
	v.goTo("/admin/nothing")
	v.until(`document.querySelector('main .empty a[href="/"]') && !document.querySelector('dialog')`)
	v.goTo(path)
}

// goTo goes to a path of the console without loading the page again.
func (v *visitor) goTo(path string) {
	v.t.Helper()
	v.eval(fmt.Sprintf(`history.pushState(null, '', %q); dispatchEvent(new PopStateEvent('popstate'))`, path))
}

// text is what the console says for a key, in the language it has now.
func (v *visitor) text(key string) string {
	v.t.Helper()
	language := ask[string](v, `document.documentElement.lang`)
	raw, err := os.ReadFile("../i18n/" + language + ".json")
	if err != nil {
		v.t.Fatal(err)
	}
	var texts map[string]string
	if err := json.Unmarshal(raw, &texts); err != nil {
		v.t.Fatal(err)
	}
	if texts[key] == "" {
		v.t.Fatalf("there is no text %q", key)
	}
	return texts[key]
}

// axeRun runs axe over the page as it is now; with rules, only those.
const axeRun = `(async (rules) => {
	scrollTo(0, 0); // What lies half under the bar at the top is no smaller for it.
	const { violations, passes } = await axe.run(document, { preload: false, resultTypes: ['violations'],
		runOnly: rules.length ? { type: 'rule', values: rules } : ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] });
	if (passes.length + violations.length === 0) return ['it has looked at nothing'];
	return violations.map((one) => one.id + ': ' + one.nodes.map((node) => node.target.join(' ') + ' ' + (node.any[0]?.message ?? '')).join(' | '));
})`

// examine waits until a view is drawn and everything is loaded, and looks at it in both themes.
func (v *visitor) examine(one view) {
	v.t.Helper()
	for _, step := range one.steps {
		step(v)
	}
	v.until(fmt.Sprintf(`document.querySelector(%q) && !(document.querySelector('dialog[open]') ?? document).querySelector('.skeleton')`, one.drawn))
	v.fits(one.name)
	if v.look == desk { // Once more as on a tablet.
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
	found := ask[[]string](v, axeRun+`([])`)
	v.otherTheme(true)
	for _, problem := range ask[[]string](v, axeRun+`(['color-contrast', 'link-in-text-block'])`) {
		found = append(found, "in the other theme: "+problem)
	}
	v.otherTheme(false)
	if len(found) > 0 {
		v.t.Errorf("%s: axe finds\n  %s", one.name, strings.Join(found, "\n  "))
	}
}

// fits compares the width of the page, and of an open dialog, with that of the window, and names what is too wide.
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

// otherTheme changes from light to dark or back, as the explorer's button and the preferences do.
func (v *visitor) otherTheme(on bool) {
	v.t.Helper()
	theme := "light"
	if v.look.dark != on {
		theme = "dark"
	}
	v.eval(fmt.Sprintf(`const own = document.getElementById('theme'); if (own) own.click(); else document.documentElement.dataset.theme = %q`, theme))
}
