package demo

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/valyala/fasthttp/fasthttputil"

	"kontor/modules/app"
	"kontor/store"
)

// object is a JSON object.
type object map[string]any

// caller makes requests to a server of its own, in memory. Before somebody's first request of a day, and after a long
// pause, enter signs him in.
type caller struct {
	enter    func(*person) error
	client   *http.Client
	listener *fasthttputil.InmemoryListener
	ended    chan struct{}
}

func newCaller(m *app.Modules) (*caller, error) {
	server, err := m.Server()
	if err != nil {
		return nil, err
	}
	c := &caller{listener: fasthttputil.NewInmemoryListener(), ended: make(chan struct{})}
	c.client = &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		return c.listener.Dial()
	}}}
	go func() {
		defer close(c.ended)
		_ = server.Serve(c.listener) // it says that the listener was closed
	}()
	return c, nil
}

// close ends the server. It is not drained: that would end the streams of the modules for good.
func (c *caller) close() {
	c.client.CloseIdleConnections()
	_ = c.listener.Close() // in memory, there is nothing that could fail
	<-c.ended
}

// post makes a request as somebody and reads the answer into result, which may be nil.
func (c *caller) post(as *person, path string, body object, result any, headers ...string) error {
	return c.do(as, http.MethodPost, path, body, result, headers...)
}

func (c *caller) do(as *person, method, path string, body object, result any, headers ...string) error {
	var sent io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return err
		}
		sent = bytes.NewReader(data)
	}
	request, err := http.NewRequestWithContext(context.Background(), method, "http://kontor.localhost"+path, sent)
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	if as.id != "" {
		if err := c.enter(as); err != nil {
			return err
		}
	}
	if as.token != "" {
		request.Header.Set("Authorization", "Bearer "+as.token)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := c.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode >= http.StatusBadRequest {
		var refused struct {
			Code    string         `json:"code"`
			Details map[string]any `json:"details"`
		}
		if err := json.UnmarshalRead(response.Body, &refused); err != nil {
			return fmt.Errorf("%s %s: %d", method, path, response.StatusCode)
		}
		return fmt.Errorf("%s %s: %d %s %v", method, path, response.StatusCode, refused.Code, refused.Details)
	}
	if result == nil {
		result = new(any)
	}
	return json.UnmarshalRead(response.Body, result)
}

// get reads the answer to a request as somebody into result.
func (c *caller) get(as *person, path string, result any) error {
	return c.do(as, http.MethodGet, path, nil, result)
}

// worksFor is how long somebody goes on before he signs in anew; no longer than a token lives.
const worksFor = 5 * time.Minute

// enter gives somebody a session, unless he has just worked. It needs no password: the demo is in the house.
func (b *bank) enter(p *person) error {
	now := b.clock.Now()
	if p.token != "" && now.Sub(p.entered) < worksFor {
		return nil
	}
	return b.DB.InTx(b.ctx, func(tx *store.Tx) error {
		token, _, err := b.Auth.OpenSession(b.ctx, tx, p.id)
		p.token, p.entered = token, now
		return err
	})
}
