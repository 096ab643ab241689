package browser_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"kontor/store/testenv"
)

// faultyProxy is a proxy in front of the server that can delay, replace or drop responses.
type faultyProxy struct {
	*testServer // the server behind the proxy, at the proxy's address

	server *httptest.Server
	proxy  *httputil.ReverseProxy
	mutex  sync.Mutex
	rules  []*rule
}

// rule says what happens to the next matching request.
type rule struct {
	method, path string // a path that ends with a slash is a prefix
	left         int
	act          func(w http.ResponseWriter, r *http.Request, pass http.Handler)
}

// newProxy starts a proxy in front of a server; it stops with the test.
func newProxy(t *testing.T, s *testServer) *faultyProxy {
	t.Helper()
	p := &faultyProxy{proxy: &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: s.address})
			r.Out.Host = r.In.Host
		},
		FlushInterval: -1, // Events of a stream must not be buffered.
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}}
	p.server = httptest.NewServer(p)
	p.testServer = &testServer{t: t, address: strings.TrimPrefix(p.server.URL, "http://"), own: s.own}
	t.Cleanup(func() {
		p.server.CloseClientConnections() // Otherwise event streams keep the server running.
		p.server.Close()
	})
	return p
}

func (p *faultyProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if found := p.find(r); found != nil {
		found.act(w, r, p.proxy)
		return
	}
	p.proxy.ServeHTTP(w, r)
}

// find returns the first rule that matches a request, or nil, and counts its use.
func (p *faultyProxy) find(r *http.Request) *rule {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, one := range p.rules {
		matches := r.URL.Path == one.path || strings.HasSuffix(one.path, "/") && strings.HasPrefix(r.URL.Path, one.path)
		if one.left > 0 && one.method == r.Method && matches {
			one.left--
			return one
		}
	}
	return nil
}

// onNext registers what happens to the next request with a method and a path. A path that ends with a slash is a prefix.
func (p *faultyProxy) onNext(method, path string, act func(w http.ResponseWriter, r *http.Request, pass http.Handler)) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.rules = append(p.rules, &rule{method: method, path: path, left: 1, act: act})
}

// happens waits until something is received from a channel or the channel is closed. what completes the sentence "waited for …".
func happens(t *testing.T, what string, events <-chan struct{}) {
	t.Helper()
	testenv.Wait(t, what, func() bool {
		select {
		case <-events:
			return true
		default:
			return false
		}
	})
}

// dropResponse performs the request and closes the connection in the middle of the response. Without the first half, the
// browser would repeat the request itself.
func dropResponse(w http.ResponseWriter, r *http.Request, pass http.Handler) {
	recorded := httptest.NewRecorder()
	pass.ServeHTTP(recorded, r)
	maps.Copy(w.Header(), recorded.Header())
	w.WriteHeader(recorded.Code)
	w.Write(recorded.Body.Bytes()[:recorded.Body.Len()/2])
	w.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}

// respond answers instead of the server.
func respond(status int, body string, headers ...string) func(http.ResponseWriter, *http.Request, http.Handler) {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

// delayResponse performs the request at once and then closes done; the response waits for release, or until the client has gone.
func delayResponse(done chan<- struct{}, release <-chan struct{}) func(http.ResponseWriter, *http.Request, http.Handler) {
	return func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		recorded := httptest.NewRecorder()
		pass.ServeHTTP(recorded, r.WithContext(context.WithoutCancel(r.Context())))
		close(done)
		if !released(r, release) {
			return
		}
		maps.Copy(w.Header(), recorded.Header())
		w.WriteHeader(recorded.Code)
		w.Write(recorded.Body.Bytes())
	}
}

// holdRequest closes arrived and waits for release before it performs the request; it drops the request of a client that has gone.
func holdRequest(arrived chan<- struct{}, release <-chan struct{}) func(http.ResponseWriter, *http.Request, http.Handler) {
	return func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		close(arrived)
		if released(r, release) {
			pass.ServeHTTP(w, r)
		}
	}
}

// released waits for release, and returns false if the client has gone first. A test that fails before it releases a request must
// not keep the proxy from closing.
func released(r *http.Request, release <-chan struct{}) bool {
	body, err := io.ReadAll(r.Body) // A server notices only then that the client has gone.
	if err != nil {
		return false
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	select {
	case <-release:
		return true
	case <-r.Context().Done():
		return false
	}
}

// deliver releases a response that the proxy has held back, and waits until the page has read and rendered it. The path is the
// end of its address, without the query.
func (v *visitor) deliver(path string, release chan<- struct{}) {
	v.t.Helper()
	v.eval(fmt.Sprintf(`window.delivered = false; const { text } = Response.prototype;
		Response.prototype.text = async function () {
			const body = await text.call(this);
			if (new URL(this.url).pathname.endsWith(%q)) setTimeout(() => { window.delivered = true; });
			return body;
		}`, path))
	close(release)
	v.until(`window.delivered`)
}
