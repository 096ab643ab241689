package browser_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"kontor/store/testenv"
)

// open loads a path.
func (v *visitor) open(path string) {
	v.t.Helper()
	v.do(chromedp.Navigate(v.server.url(path)))
}

// click waits until the first element that matches a CSS selector rests, and clicks it. A click goes to the place where the element was.
func (v *visitor) click(selector string) {
	v.t.Helper()
	v.until(fmt.Sprintf(`await (async () => {
		const place = () => JSON.stringify(document.querySelector(%q)?.getBoundingClientRect());
		const before = place();
		await new Promise((next) => setTimeout(next, 40));
		return before && before === place();
	})()`, selector))
	ctx, cancel := context.WithTimeout(v.ctx, waitLimit)
	defer cancel()
	for {
		err := chromedp.Do(ctx, chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
		if err == nil {
			return
		}
		if ctx.Err() != nil || !strings.Contains(err.Error(), "Could not find node") { // It was rendered again meanwhile.
			v.t.Fatalf("click %s: %v\n%s", selector, err, v.page())
		}
	}
}

// clickSlowly clicks an element as a person does: the page is painted between press and release.
func (v *visitor) clickSlowly(selector string) {
	v.t.Helper()
	at := ask[[2]float64](v, fmt.Sprintf(`(() => { const one = document.querySelector(%q); one.scrollIntoView({ block: 'center', behavior: 'instant' });
		const box = one.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; })()`, selector))
	mouse := input.DispatchMouseEventParams{Type: "mousePressed", X: at[0], Y: at[1], Button: input.MouseButtonLeft, ClickCount: 1}
	send(v, input.DispatchMouseEvent, mouse)
	v.painted()
	mouse.Type = "mouseReleased"
	send(v, input.DispatchMouseEvent, mouse)
}

// painted waits until the page has painted what an event has changed.
func (v *visitor) painted() {
	v.t.Helper()
	ask[bool](v, `new Promise((painted) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(painted, 0, true))))`)
}

// clickText waits for a button or link with a text and clicks it.
func (v *visitor) clickText(text string) {
	v.t.Helper()
	encoded, _ := json.Marshal(text) // Strings can always be encoded.
	v.until(fmt.Sprintf(`(() => { const all = [...document.querySelectorAll('dialog[open] button, dialog[open] a, button, a')];
		const found = all.find((one) => one.innerText.trim() === %s && !one.disabled); found?.click(); return Boolean(found); })()`, encoded))
}

// write replaces the content of a field with the keyboard.
func (v *visitor) write(selector, text string) {
	v.t.Helper()
	v.do(chromedp.Focus(chromedp.CSS(selector), chromedp.NodeVisible))
	v.eval(fmt.Sprintf(`document.querySelector(%q).select?.()`, selector))
	v.do(chromedp.SendKeys(chromedp.CSS(selector), text))
}

// choose selects an option of a select element.
func (v *visitor) choose(selector, value string) {
	v.t.Helper()
	v.until(fmt.Sprintf(`(() => { const s = document.querySelector(%q); if (!s) return false; s.value = %q;
		s.dispatchEvent(new Event('input', { bubbles: true })); s.dispatchEvent(new Event('change', { bubbles: true })); return s.value === %q; })()`, selector, value, value))
}

// submit sends the form of a field.
func (v *visitor) submit(selector string) {
	v.t.Helper()
	v.until(fmt.Sprintf(`document.querySelector(%q)`, selector))
	v.eval(fmt.Sprintf(`document.querySelector(%q).form.requestSubmit()`, selector))
}

// keys sends key presses to the focused element.
func (v *visitor) keys(keys string, options ...chromedp.KeyOption) {
	v.t.Helper()
	v.do(chromedp.KeyEvent(keys, options...))
}

// key sends one event of the keyboard to the focused element.
func (v *visitor) key(event *input.DispatchKeyEventParams) {
	v.t.Helper()
	send(v, input.DispatchKeyEvent, *event)
}

// send sends a command of the DevTools protocol to the page.
func send[P any](v *visitor, command cdp.Command[P, cdp.Empty], params P) {
	v.t.Helper()
	v.do(func(ctx context.Context, tab *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, tab, command, params)
		return chromedp.Void{}, err
	})
}

// see waits until a text is visible.
func (v *visitor) see(text string) {
	v.t.Helper()
	encoded, _ := json.Marshal(text)
	v.until(fmt.Sprintf(`document.body.innerText.includes(%s)`, encoded))
}

// gone waits until no element matches a selector.
func (v *visitor) gone(selector string) {
	v.t.Helper()
	v.until(fmt.Sprintf(`!document.querySelector(%q)`, selector))
}

// keptMessages has a page keep the messages about finished actions in window.messages: they show for five seconds only, and a busy machine
// may look later.
const keptMessages = `window.messages = []; new MutationObserver((changes) => {
	for (const { addedNodes } of changes) for (const node of addedNodes) if (node.nodeType === Node.ELEMENT_NODE) {
		for (const one of [...(node.matches('.toast') ? [node] : []), ...node.querySelectorAll('.toast')]) window.messages.push(one.textContent);
	}
}).observe(document, { childList: true, subtree: true })`

// seeMessage waits until the page has shown a message with a text. Each message counts once.
func (v *visitor) seeMessage(text string) {
	v.t.Helper()
	encoded, _ := json.Marshal(text) // Strings can always be encoded.
	v.until(fmt.Sprintf(`(() => { const at = window.messages.findIndex((one) => one.includes(%s)); window.messages.splice(0, at + 1); return at >= 0; })()`, encoded))
}

// heldTimers has a page keep the timers of some milliseconds until a test runs them: on a busy machine a test may need longer than that
// for what must come before.
const heldTimers = `(() => { const plain = window.setTimeout; window.held = [];
	window.setTimeout = (f, ms, ...rest) => ms === %d ? -window.held.push(() => f(...rest)) : plain(f, ms, ...rest);
	const { clearTimeout } = window;
	window.clearTimeout = (timer) => timer < 0 ? delete window.held[-timer - 1] : clearTimeout(timer);
	window.runHeld = () => { window.setTimeout = plain; window.held.splice(0).forEach((run) => run()) } })()`

// messageTime is how long a message shows about a finished action, in milliseconds.
const messageTime = 5000

// undoTime is how long a user can undo an action, in milliseconds.
const undoTime = 10_000

// holdTimers has the page keep the timers of some milliseconds until runTimers is called.
func (v *visitor) holdTimers(ms int) {
	v.t.Helper()
	v.eval(fmt.Sprintf(heldTimers, ms))
}

// holdNextTimers is like holdTimers for the pages that are opened from now on.
func (v *visitor) holdNextTimers(ms int) {
	v.t.Helper()
	v.prepare(fmt.Sprintf(heldTimers, ms))
}

// prepare runs JavaScript in the pages that are opened from now on, before their own.
func (v *visitor) prepare(script string) {
	v.t.Helper()
	v.do(func(ctx context.Context, tab *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, tab, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: script})
		return chromedp.Void{}, err
	})
}

// runTimers runs the timers that were kept. Later ones are as always.
func (v *visitor) runTimers() {
	v.t.Helper()
	v.eval(`window.runHeld()`)
}

// waitInPage waits up to a second for a condition, in the page: the processes of the browser need not exchange messages for each look.
const waitInPage = `(async () => {
	for (let looks = 0; looks < 40; looks++) {
		if (%s) return true;
		await new Promise((next) => setTimeout(next, 25));
	}
	return false;
})()`

// until waits for a JavaScript condition.
func (v *visitor) until(condition string) {
	v.t.Helper()
	var reached bool
	var err error
	defer func() {
		if !reached {
			v.t.Logf("%v\n%s", err, v.page())
		}
	}()
	testenv.Wait(v.t, condition, func() bool {
		ctx, cancel := context.WithTimeout(v.ctx, waitLimit)
		defer cancel()
		reached, err = chromedp.Run(ctx, chromedp.Evaluate[bool](fmt.Sprintf(waitInPage, condition), chromedp.EvalAwaitPromise))
		reached = reached && err == nil
		return reached
	})
}

// eval runs JavaScript for its effect.
func (v *visitor) eval(script string) {
	v.t.Helper()
	ask[string](v, "(() => { "+script+"; return ''; })()")
}

// ask evaluates JavaScript and awaits promises.
func ask[T any](v *visitor, expression string) T {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(v.ctx, 2*waitLimit)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		v.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// page returns the visible text, for the message of a failing test.
func (v *visitor) page() string {
	ctx, cancel := context.WithTimeout(v.ctx, waitLimit)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](`location.pathname + '\n' + document.body.innerText`))
	if err != nil {
		return err.Error()
	}
	return text
}
