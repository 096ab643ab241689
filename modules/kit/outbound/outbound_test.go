package outbound_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kontor/modules/kit/outbound"
	"kontor/store/testenv"
)

func TestPublic_IsFalseForEveryOtherAddress(t *testing.T) {
	for address, want := range map[string]bool{
		"8.8.8.8": true, "1.1.1.1": true, "2606:4700::1111": true, "2a00:1450::1": true, "::ffff:8.8.8.8": true, "172.15.255.255": true, "172.32.0.1": true,
		"0.0.0.0": false, "0.1.2.3": false, "10.1.2.3": false, "100.64.0.1": false, "100.100.100.200": false, "127.0.0.1": false, "127.255.255.254": false,
		"169.254.169.254": false, "172.16.0.1": false, "172.31.255.255": false, "192.0.0.192": false, "192.168.0.1": false, "198.18.0.1": false,
		"224.0.0.1": false, "240.0.0.1": false, "255.255.255.255": false, "168.63.129.16": false,
		"::": false, "::1": false, "::127.0.0.1": false, "::ffff:127.0.0.1": false, "::ffff:10.0.0.1": false, "::ffff:169.254.169.254": false,
		"64:ff9b::7f00:1": false, "64:ff9b::808:808": false, "64:ff9b:1::1": false, "100::1": false, "2001::1": false, "2001:db8::1": false, "2002:7f00:1::": false,
		"fc00::1": false, "fd00:ec2::254": false, "fe80::1": false, "fec0::1": false, "ff02::1": false, "4000::1": false, "2606:4700::1111%eth0": false,
	} {
		if got := outbound.Public(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: got %t", address, got)
		}
	}
	if outbound.Public(netip.Addr{}) {
		t.Error("no address is public")
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"https://hooks.example/a?b=c", "http://[::1]:80/", "https://u:p@h/", "https://h/#f", "https://h\n/", "https:h", "//h/", "https://%31/"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, address string) {
		u, err := outbound.Parse(address)
		if err != nil {
			return
		}
		if u.User != nil || u.Fragment != "" || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http" {
			t.Errorf("%q is %+v", address, u)
		}
		if _, err := http.NewRequestWithContext(t.Context(), http.MethodPost, u.String(), nil); err != nil {
			t.Errorf("%q: %v", address, err)
		}
	})
}

// server is a receiver on this machine that counts its calls.
func server(t *testing.T, tls bool, handle http.HandlerFunc) (s *httptest.Server, calls *atomic.Int64) {
	calls = &atomic.Int64{}
	counted := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		if handle != nil {
			handle(w, r)
		}
	})
	if tls {
		s = httptest.NewTLSServer(counted)
	} else {
		s = httptest.NewServer(counted)
	}
	t.Cleanup(s.Close)
	return s, calls
}

func portOf(t *testing.T, s *httptest.Server) string {
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

var local = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// resolving returns a resolver that answers with the lists in their order, and repeats the last.
func resolving(lists ...string) (resolve func(context.Context, string) ([]netip.Addr, error), asked *atomic.Int64) {
	asked = &atomic.Int64{}
	return func(context.Context, string) ([]netip.Addr, error) {
		n := min(int(asked.Add(1)), len(lists))
		var addresses []netip.Addr
		for text := range strings.FieldsSeq(lists[n-1]) {
			addresses = append(addresses, netip.MustParseAddr(text))
		}
		return addresses, nil
	}, asked
}

func post(t *testing.T, o outbound.Options, address string) (outbound.Answer, error) {
	if o.Timeout == 0 {
		o.Timeout = testenv.Limit()
	}
	c := outbound.New(o)
	defer c.Close()
	return c.Post(t.Context(), address, http.Header{"X-Test": {"1"}}, []byte("{}"))
}

func TestPost_RefusesNamesWithAForbiddenAddress(t *testing.T) {
	s, calls := server(t, true, nil)
	for _, addresses := range []string{"127.0.0.1", "::1", "::ffff:127.0.0.1", "8.8.8.8 127.0.0.1", "10.0.0.1", "169.254.169.254", "64:ff9b::7f00:1", "fe80::1%lo"} {
		resolve, asked := resolving(addresses)
		if _, err := post(t, outbound.Options{Resolve: resolve}, "https://hooks.example:"+portOf(t, s)+"/"); !errors.Is(err, outbound.ErrForbidden) {
			t.Errorf("%s: got %v", addresses, err)
		}
		if asked.Load() != 1 {
			t.Errorf("%s: the name was resolved %d times", addresses, asked.Load())
		}
	}
	if _, err := post(t, outbound.Options{}, s.URL); !errors.Is(err, outbound.ErrForbidden) {
		t.Errorf("a literal address: got %v", err)
	}
	resolve, _ := resolving("8.8.8.8")
	for _, address := range []string{"https://hooks.example:22/", "https://hooks.example:80/"} {
		if _, err := post(t, outbound.Options{Resolve: resolve}, address); !errors.Is(err, outbound.ErrForbidden) {
			t.Errorf("%s: got %v", address, err)
		}
	}
	if _, err := post(t, outbound.Options{Resolve: resolve}, "http://hooks.example:8080/"); !errors.Is(err, outbound.ErrUnencrypted) {
		t.Errorf("http: got %v", err)
	}
	if calls.Load() != 0 {
		t.Errorf("the receiver was called %d times", calls.Load())
	}
}

// A name that resolves to a permitted address when it is checked and to a forbidden one later: the checked address is dialled.
func TestPost_DialsTheAddressThatItHasChecked(t *testing.T) {
	s, calls := server(t, false, nil)
	resolve, asked := resolving("127.0.0.1", "10.0.0.1")
	o := outbound.Options{Allowed: local, Resolve: resolve}
	if answer, err := post(t, o, "http://hooks.example:"+portOf(t, s)+"/"); err != nil || answer.Status != 200 || asked.Load() != 1 {
		t.Errorf("got %+v, %v after %d lookups", answer, err, asked.Load())
	}
	if _, err := post(t, o, "http://hooks.example:"+portOf(t, s)+"/"); !errors.Is(err, outbound.ErrForbidden) {
		t.Errorf("after the change of the name: got %v", err)
	}
	if calls.Load() != 1 {
		t.Errorf("the receiver was called %d times", calls.Load())
	}
}

func TestPost_IgnoresProxiesAndRedirects(t *testing.T) {
	proxy, viaProxy := server(t, false, nil)
	t.Setenv("HTTP_PROXY", proxy.URL)
	t.Setenv("HTTPS_PROXY", proxy.URL)
	t.Setenv("ALL_PROXY", proxy.URL)
	target, followed := server(t, false, nil)
	s, _ := server(t, false, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, target.URL, http.StatusPermanentRedirect)
	})
	answer, err := post(t, outbound.Options{Allowed: local}, s.URL)
	if err != nil || answer.Status != http.StatusPermanentRedirect || followed.Load() != 0 || viaProxy.Load() != 0 {
		t.Errorf("got %+v, %v; %d followed, %d through the proxy", answer, err, followed.Load(), viaProxy.Load())
	}
}

func TestPost_VerifiesCertificates(t *testing.T) {
	s, calls := server(t, true, nil)
	if _, err := post(t, outbound.Options{Allowed: local}, s.URL); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("an unknown authority: got %v", err)
	}
	roots := s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	resolve, _ := resolving("127.0.0.1")
	if _, err := post(t, outbound.Options{Allowed: local, Roots: roots, Resolve: resolve}, "https://other.test:"+portOf(t, s)+"/"); err == nil ||
		!strings.Contains(err.Error(), "certificate") {
		t.Errorf("another name: got %v", err)
	}
	if calls.Load() != 0 {
		t.Errorf("the receiver was called %d times", calls.Load())
	}
	if answer, err := post(t, outbound.Options{Allowed: local, Roots: roots, Resolve: resolve}, "https://example.com:"+portOf(t, s)+"/"); err != nil || answer.Status != 200 {
		t.Errorf("got %+v, %v", answer, err)
	}
}

func TestPost_BoundsSlowAndLargeAnswers(t *testing.T) {
	release := make(chan struct{})
	slow, _ := server(t, false, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	if _, err := post(t, outbound.Options{Allowed: local, Timeout: 50 * time.Millisecond}, slow.URL); err == nil || !strings.Contains(err.Error(), "in time") {
		t.Errorf("got %v", err)
	}
	close(release)
	endless, _ := server(t, false, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				return
			}
		}
	})
	if answer, err := post(t, outbound.Options{Allowed: local}, endless.URL); err != nil || answer.Status != 200 {
		t.Errorf("got %+v, %v", answer, err)
	}
	headers, _ := server(t, false, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Large", strings.Repeat("x", 1<<20)) })
	if _, err := post(t, outbound.Options{Allowed: local}, headers.URL); err == nil || strings.Contains(err.Error(), "127.0.0.1") {
		t.Errorf("got %v", err)
	}
}

func TestRetryAfter_ReadsSecondsAndDates(t *testing.T) {
	now := time.Date(2026, 1, 31, 8, 0, 0, 0, time.UTC)
	for header, want := range map[string]time.Duration{"": 0, "120": 2 * time.Minute, "-1": 0, "x": 0, "Sat, 31 Jan 2026 08:01:00 GMT": time.Minute,
		"Sat, 31 Jan 2026 07:00:00 GMT": 0, "99999999999999999999": 0} {
		if got := outbound.RetryAfter(header, now); got != want {
			t.Errorf("%q: got %s, want %s", header, got, want)
		}
	}
}
