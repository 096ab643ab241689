package browser_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// setOffline disconnects the browser tab from the network, or connects it again.
func (v *visitor) setOffline(offline bool) {
	v.t.Helper()
	v.do(func(ctx context.Context, tab *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, tab, network.EmulateNetworkConditionsByRule, network.EmulateNetworkConditionsByRuleParams{
			MatchedNetworkConditions: []*network.Conditions{{DownloadThroughput: -1, UploadThroughput: -1, Offline: offline}},
		})
		if err != nil {
			return chromedp.Void{}, err
		}
		_, err = cdp.Call(ctx, tab, network.OverrideNetworkState, network.OverrideNetworkStateParams{Offline: offline, DownloadThroughput: -1, UploadThroughput: -1})
		return chromedp.Void{}, err
	})
}

// The lamp says that the network is gone. Loads that failed meanwhile are repeated at once when the network returns.
func TestOffline_IsShownAndRecovers(t *testing.T) {
	s := sharedServer(t)
	me := s.newPerson("Administrator")
	s.newCustomer(s.token(me), "Vreni", "Netzlos")
	v := signedIn(t, s, desk, me)
	v.expect("ERR_")
	v.until(`document.querySelector('.connection.live')`)
	v.open("/customers")
	v.until(`document.querySelector('table.data') && document.querySelector('.connection.live')`)
	v.setOffline(true)
	v.until(`document.querySelector('.connection.offline')?.innerText === 'No network'`)
	v.goTo("/customers?q=Netzlos")
	v.until(`document.querySelector('main [role=alert]')`)
	v.setOffline(false)
	v.until(`document.querySelector('.connection.live')`)
	v.until(`!document.querySelector('main [role=alert]') && document.querySelectorAll('table.data tbody tr').length === 1`)
}

// A screen that could not be loaded does not keep the title of the former one, and loads when the network returns.
func TestOffline_AFailedScreenHasItsOwnTitle(t *testing.T) {
	s := sharedServer(t)
	v := signedInAt(t, s, desk, s.newPerson("Administrator"), "/customers")
	v.expect("ERR_")
	v.expect("Failed to fetch")
	v.until(`document.querySelector('h1').innerText === 'Customers' && document.querySelector('.connection.live')`)
	v.setOffline(true)
	v.click(`nav a[href="/personas"]`)
	v.until(`document.querySelector('main [role=alert]')`)
	v.until(`document.querySelector('h1').innerText === 'Personas' && document.title === 'Personas · Kontor'`)
	v.setOffline(false)
	v.until(`!document.querySelector('main [role=alert]') && document.querySelector('main .empty, main table.data')`)
}

// The network returns when a screen has just failed to load.
func TestOffline_AReturnIsNotMissed(t *testing.T) {
	p := newProxy(t, sharedServer(t))
	v := signedInAt(t, p.testServer, desk, p.newPerson("Administrator"), "/customers")
	v.expect("503")
	v.expect("Failed to fetch")
	v.until(`document.querySelector('h1').innerText === 'Customers' && document.querySelector('.connection.live')`)
	base := ask[string](v, `new URL(document.querySelector('script[type=module]').src).pathname.replace(/app\/.*/, '')`)
	p.onNext(http.MethodGet, base+"app/screens/personas.js", respond(http.StatusServiceUnavailable, "{}"))
	v.eval(`const watcher = new MutationObserver(() => {
			if (!document.querySelector('main [role=alert]')) return;
			watcher.disconnect();
			dispatchEvent(new Event('online'));
		});
		watcher.observe(document.body, { childList: true, subtree: true });
		document.querySelector('nav a[href="/personas"]').click();`)
	v.until(`!document.querySelector('main [role=alert]') && document.querySelector('h1').innerText === 'Personas' && document.querySelector('main .empty, main table.data')`)
}
