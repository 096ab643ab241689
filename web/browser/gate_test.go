package browser_test

import (
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// gate stands between a visitor and the bank, where a test can hold, replace or lose what passes.
type gate struct {
	*bank // the bank behind the gate, at the address of the gate

	server *httptest.Server
	proxy  *httputil.ReverseProxy
	mutex  sync.Mutex
	rules  []*rule
}

// rule is what happens to the next requests of one kind.
type rule struct {
	method, path string // path: how it begins
	left         int
	act          func(w http.ResponseWriter, r *http.Request, pass http.Handler)
}

// newGate opens a gate before a bank; it closes with the test.
func newGate(t *testing.T, b *bank) *gate {
	t.Helper()
	g := &gate{proxy: &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: b.address})
			r.Out.Host = r.In.Host
		},
		FlushInterval: -1, // an event stream must not wait for more
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}}
	g.server = httptest.NewServer(g)
	g.bank = &bank{t: t, address: strings.TrimPrefix(g.server.URL, "http://"), own: b.own}
	t.Cleanup(func() {
		g.server.CloseClientConnections() // event streams would go on for ever
		g.server.Close()
	})
	return g
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if found := g.find(r); found != nil {
		found.act(w, r, g.proxy)
		return
	}
	g.proxy.ServeHTTP(w, r)
}

// find takes the first rule that fits a request.
func (g *gate) find(r *http.Request) *rule {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	for _, one := range g.rules {
		if one.left > 0 && one.method == r.Method && strings.HasPrefix(r.URL.Path, one.path) {
			one.left--
			return one
		}
	}
	return nil
}

// next says what happens to the next request whose method and path fit.
func (g *gate) next(method, path string, act func(w http.ResponseWriter, r *http.Request, pass http.Handler)) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.rules = append(g.rules, &rule{method: method, path: path, left: 1, act: act})
}

// lose lets the bank do what is asked, and cuts the connection in the middle of the answer. (Without a beginning of an
// answer the browser would send the request again by itself.)
func lose(w http.ResponseWriter, r *http.Request, pass http.Handler) {
	recorded := httptest.NewRecorder()
	pass.ServeHTTP(recorded, r)
	maps.Copy(w.Header(), recorded.Header())
	w.WriteHeader(recorded.Code)
	w.Write(recorded.Body.Bytes()[:recorded.Body.Len()/2])
	w.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}

// refuse answers in the place of the bank.
func refuse(status int, body string, headers ...string) func(http.ResponseWriter, *http.Request, http.Handler) {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

// hold lets the bank do what is asked at once and says so on done; the answer waits for release.
func hold(done chan<- struct{}, release <-chan struct{}) func(http.ResponseWriter, *http.Request, http.Handler) {
	return func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		recorded := httptest.NewRecorder()
		pass.ServeHTTP(recorded, r.WithContext(context.WithoutCancel(r.Context())))
		close(done)
		<-release
		maps.Copy(w.Header(), recorded.Header())
		w.WriteHeader(recorded.Code)
		w.Write(recorded.Body.Bytes())
	}
}
