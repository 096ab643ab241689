package browser_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"kontor/store/testenv"
)

// waitLimit is for one change of the page.
var waitLimit = testenv.Limit()

// visitor is a user with a separate browser profile.
type visitor struct {
	t      *testing.T
	server *testServer
	ctx    context.Context
	look   look
	me     person // who is signed in

	mutex    sync.Mutex
	problems []string // errors and warnings of the browser's console
	foreign  []string // requests to other origins
	allowed  string   // the other origin that a test uses
	ignoring bool     // later problems are expected
	asked    int      // how often the browser asked before it left a page; each question is answered with yes
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
	v.prepare(keptMessages)
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
	case *page.EventJavascriptDialogOpening:
		v.asked++
		go v.leavePage()
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

// leavePage answers the question of the browser whether to leave a page with unsaved input.
func (v *visitor) leavePage() {
	_ = chromedp.Do(v.ctx, func(ctx context.Context, tab *chromedp.Target) (chromedp.Void, error) { // The tab may be closed already.
		_, err := cdp.Call(ctx, tab, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: true})
		return chromedp.Void{}, err
	})
}

// questions returns how often the browser asked before it left a page.
func (v *visitor) questions() int {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	return v.asked
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

// expect ignores console messages that contain a text, because the test causes them. They may have come before: the browser reports an
// answer when it likes.
func (v *visitor) expect(part string) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	v.expected = append(v.expected, part)
	v.problems = slices.DeleteFunc(v.problems, func(problem string) bool { return strings.Contains(problem, part) })
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
