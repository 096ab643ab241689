package browser_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

const waitLimit = 30 * time.Second // for one change of the page on a busy machine

// visitor is a user with a separate browser profile.
type visitor struct {
	t      *testing.T
	server *testServer
	ctx    context.Context
	look   look

	mutex    sync.Mutex
	problems []string // errors and warnings of the browser's console
	foreign  []string // requests to other origins
	allowed  string   // the other origin that a test uses
	ignoring bool     // later problems are expected
	expected []string // parts of messages that a test causes
}

// look is the size and the theme of a visitor's window.
type look struct {
	width, height int64
	dark          bool
}

var desk = look{width: 1280, height: 900}

// newVisitor opens a browser window. The test fails if the browser's console has errors or warnings, or if a request goes to
// another origin.
func newVisitor(t *testing.T, s *testServer, l look) *visitor {
	t.Helper()
	ctx, closeTab := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	t.Cleanup(closeTab)
	return watch(ctx, t, s, l)
}

// secondTab opens another tab of the same browser profile.
func (v *visitor) secondTab() *visitor {
	v.t.Helper()
	ctx, closeTab := chromedp.NewContext(v.ctx)
	v.t.Cleanup(closeTab)
	return watch(ctx, v.t, v.server, desk)
}

func watch(ctx context.Context, t *testing.T, s *testServer, l look) *visitor {
	t.Helper()
	v := &visitor{t: t, server: s, ctx: ctx, look: l}
	if err := chromedp.Listen(ctx, v.onEvent); err != nil {
		t.Fatal(err)
	}
	scheme := "light"
	if l.dark {
		scheme = "dark"
	}
	v.do(chromedp.EmulateViewport(l.width, l.height), func(ctx context.Context, tab *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}},
		})
		if err != nil {
			return chromedp.Void{}, err
		}
		// Several windows are open; each must behave as the active one.
		_, err = cdp.Call(ctx, tab, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
		return chromedp.Void{}, err
	})
	t.Cleanup(func() {
		v.mutex.Lock()
		defer v.mutex.Unlock()
		for _, problem := range v.problems {
			t.Errorf("the browser's console has: %s", problem)
		}
		for _, request := range v.foreign {
			t.Errorf("a request to another origin: %s", request)
		}
	})
	return v
}

// onEvent records problems that the browser reports.
func (v *visitor) onEvent(event any) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		isAllowed := v.allowed != "" && strings.HasPrefix(e.Request.URL, v.allowed+"/")
		if strings.HasPrefix(e.Request.URL, "http") && !strings.HasPrefix(e.Request.URL, v.server.url("/")) && !isAllowed {
			v.foreign = append(v.foreign, e.Request.URL)
		}
	case *runtime.EventExceptionThrown:
		v.note(e.ExceptionDetails.Text + " " + e.ExceptionDetails.Exception.Description)
	case *runtime.EventConsoleAPICalled:
		if e.Type == "error" || e.Type == "warning" {
			encoded, _ := json.Marshal(e.Args) // The text is for the message of a failing test.
			v.note(string(encoded))
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == "error" || e.Entry.Level == "warning" {
			v.note(e.Entry.Text + " " + e.Entry.URL)
		}
	}
}

func (v *visitor) note(problem string) {
	if v.ignoring {
		return
	}
	for _, part := range v.expected {
		if strings.Contains(problem, part) {
			return
		}
	}
	v.problems = append(v.problems, problem)
}

// expect ignores console messages that contain a text, because the test causes them.
func (v *visitor) expect(part string) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	v.expected = append(v.expected, part)
}

// allow accepts requests to another origin, such as a sign-in provider.
func (v *visitor) allow(origin string) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	v.allowed = origin
}

func (v *visitor) do(steps ...chromedp.Action[chromedp.Void]) {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(v.ctx, waitLimit)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		v.t.Fatalf("%v\n%s", err, v.page())
	}
}

// open loads a path.
func (v *visitor) open(path string) {
	v.t.Helper()
	v.do(chromedp.Navigate(v.server.url(path)))
}

// click waits for the first element that matches a CSS selector and clicks it.
func (v *visitor) click(selector string) {
	v.t.Helper()
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

// keys sends key presses to the focused element.
func (v *visitor) keys(keys string, options ...chromedp.KeyOption) {
	v.t.Helper()
	v.do(chromedp.KeyEvent(keys, options...))
}

// key sends one event of the keyboard to the focused element.
func (v *visitor) key(event *input.DispatchKeyEventParams) {
	v.t.Helper()
	v.do(func(ctx context.Context, tab *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, tab, input.DispatchKeyEvent, *event)
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

// closeToasts closes the messages about finished actions, so that the next message is not mistaken for an earlier one.
func (v *visitor) closeToasts() {
	v.t.Helper()
	v.until(`(document.querySelectorAll('.toast button').forEach((one) => one.click()), !document.querySelector('.toast'))`)
}

// until waits for a JavaScript condition.
func (v *visitor) until(condition string) {
	v.t.Helper()
	deadline := time.Now().Add(waitLimit)
	for {
		ctx, cancel := context.WithTimeout(v.ctx, waitLimit)
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("Boolean("+condition+")"))
		cancel()
		if err == nil && ok {
			return
		}
		if time.Now().After(deadline) {
			v.t.Fatalf("still not true: %s (%v)\n%s", condition, err, v.page())
		}
		<-time.After(25 * time.Millisecond)
	}
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
	ctx, cancel := context.WithTimeout(v.ctx, time.Second)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](`location.pathname + '\n' + document.body.innerText`))
	if err != nil {
		return err.Error()
	}
	return text
}

// signedIn opens the console, in English, with a user who is signed in.
func signedIn(t *testing.T, s *testServer, l look, p person) *visitor {
	t.Helper()
	v := newVisitor(t, s, l)
	v.open("/healthz") // a page of the same origin without the console
	v.enter(p)
	return v
}

// enter stores a new session in the browser and opens the console.
func (v *visitor) enter(p person) {
	v.t.Helper()
	pair := v.server.signIn(p)
	kept, err := json.Marshal(map[string]any{
		"access_token": pair["access_token"], "refresh_token": pair["refresh_token"], "user_id": pair["user_id"], "login": p.login,
		"expires_at": time.Now().Add(time.Duration(pair["expires_in"].(float64)) * time.Second).UnixMilli(),
	})
	if err != nil {
		v.t.Fatal(err)
	}
	v.eval(fmt.Sprintf(`localStorage.setItem('kontor.session', %q)`, kept))
	v.setLanguage("en")
	v.open("/")
	v.until(`document.querySelector('.shell h1')`)
}

// setLanguage stores the language of the console before it is opened.
func (v *visitor) setLanguage(language string) {
	v.t.Helper()
	v.eval(fmt.Sprintf(`localStorage.setItem('kontor.language', %q); localStorage.setItem('kontor.language.chosen', %q)`, language, language))
}

// openSignedOut opens a screen before sign-in, in English.
func (v *visitor) openSignedOut(path string) {
	v.t.Helper()
	v.open("/healthz")
	v.setLanguage("en")
	v.open(path)
}
