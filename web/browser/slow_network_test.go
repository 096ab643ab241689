package browser_test

import (
	"context"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// A slow network: 400 ms for each round trip, 1.6 Mbit/s.
const (
	slowLatency    = 400
	slowThroughput = 1.6e6 / 8
)

// slowDown gives the tab a slow network and an empty cache.
func (v *visitor) slowDown() {
	v.t.Helper()
	v.do(func(ctx context.Context, tab *chromedp.Target) (chromedp.Void, error) {
		if _, err := cdp.Call(ctx, tab, network.ClearBrowserCache, cdp.Empty{}); err != nil {
			return chromedp.Void{}, err
		}
		_, err := cdp.Call(ctx, tab, network.EmulateNetworkConditionsByRule, network.EmulateNetworkConditionsByRuleParams{
			MatchedNetworkConditions: []*network.Conditions{{Latency: slowLatency, DownloadThroughput: slowThroughput, UploadThroughput: slowThroughput}},
		})
		return chromedp.Void{}, err
	})
}

const transferred = `[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]
	.filter((one) => one.name.includes('/assets/') || one.entryType === 'navigation')`

// figures prints what the page has loaded, and how long after its start it was usable.
func (v *visitor) figures(name string) (bytes, requests float64) {
	v.t.Helper()
	bytes, requests = ask[float64](v, transferred+`.reduce((sum, one) => sum + one.transferSize, 0)`), ask[float64](v, transferred+`.length`)
	v.t.Logf("%-34s %6.0f ms %8.1f kB %4.0f requests", name, ask[float64](v, `window.usable`), bytes/1000, requests)
	return bytes, requests
}

// usableOnce notes when a selector first matches.
func (v *visitor) usableOnce(selector string) {
	v.t.Helper()
	v.until(`document.querySelector('` + selector + `') && (window.usable ??= performance.now())`)
}

// The first load is small and takes few requests, which decides how soon it appears on a slow network. The times are printed, not
// judged: machines are busy. make bench-console prints the figures.
func TestSlowNetwork_TheFirstScreensNeedLittle(t *testing.T) {
	s := sharedServer(t)
	me := s.newPerson("Advisor")
	s.newCustomer(s.token(me), "Vreni", "Langsam")
	v := newVisitor(t, s, desk)
	v.openSignedOut("/healthz")
	v.slowDown()
	v.open("/signin")
	v.usableOnce("input[name=login]")
	if bytes, requests := v.figures("sign-in, empty cache"); bytes > 120_000 || requests > 12 {
		t.Errorf("the sign-in takes %.0f bytes in %.0f requests, want at most 120000 in 12", bytes, requests)
	}
	v.typePassword(me)
	v.isIn()
	v.open("/customers")
	v.usableOnce("table.data tbody tr")
	v.figures("first list, signed in")
	v.open("/")
	v.usableOnce(".shell h1")
	v.figures("overview, again")
}

// Words that are typed after Ctrl K are not lost while the palette loads.
func TestSlowNetwork_TheFinderKeepsWhatIsTyped(t *testing.T) {
	s := sharedServer(t)
	v := signedIn(t, s, desk, s.newPerson("Advisor"))
	v.slowDown()
	v.eval(`for (const init of [{ key: 'k', ctrlKey: true }, { key: 'M' }, { key: 'ü' }, { key: 'x' }, { key: 'Backspace' }])
		window.dispatchEvent(new KeyboardEvent('keydown', { ...init, bubbles: true, cancelable: true }))`)
	v.until(`document.querySelector('dialog.palette input')?.value === 'Mü'`)
}
