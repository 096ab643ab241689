package client_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
)

// recorder is a transport that remembers its requests.
type recorder struct {
	mutex    sync.Mutex
	requests []*http.Request
	before   func(*http.Request) (*http.Response, error) // answers instead of the server unless it returns nil, nil
}

func (r *recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	r.mutex.Lock()
	r.requests = append(r.requests, request)
	r.mutex.Unlock()
	if r.before != nil {
		if response, err := r.before(request); response != nil || err != nil {
			return response, err
		}
	}
	return http.DefaultTransport.RoundTrip(request)
}

// headers returns headers of each request, separated by |.
func (r *recorder) headers(names ...string) []string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	var found []string
	for _, request := range r.requests {
		values := make([]string, len(names))
		for i, name := range names {
			values[i] = request.Header.Get(name)
		}
		found = append(found, strings.Join(values, "|"))
	}
	return found
}

// count returns how many requests had the path.
func (r *recorder) count(path string) int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	n := 0
	for _, request := range r.requests {
		if request.URL.Path == path {
			n++
		}
	}
	return n
}

// respond returns an answer. Headers are given in pairs.
func respond(request *http.Request, status int, body string, headers ...string) *http.Response {
	h := http.Header{"Content-Type": {"application/json"}}
	for i := 0; i+1 < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body)), Request: request, ProtoMajor: 1, ProtoMinor: 1}
}
