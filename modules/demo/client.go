package demo

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"

	"kontor/modules/app"
	"kontor/modules/developer/playground/seed"
	"kontor/store"
)

// object is a JSON object.
type object map[string]any

// client sends requests to its own server, in memory. It calls ensureSession before each request of a user.
type client struct {
	ensureSession func(context.Context, *person) error
	client        *http.Client
	close         func()
}

func newClient(m *app.Modules) (*client, error) {
	server, err := m.Server()
	if err != nil {
		return nil, err
	}
	c := &client{}
	c.client, c.close = seed.Serve(server)
	return c, nil
}

// post sends a POST request as a user and decodes the response into result, which may be nil.
func (c *client) post(ctx context.Context, as *person, path string, body object, result any, headers ...string) error {
	return c.do(ctx, as, http.MethodPost, path, body, result, headers...)
}

// do sends a request as a user and decodes the response into result, which may be nil.
func (c *client) do(ctx context.Context, as *person, method, path string, body object, result any, headers ...string) error {
	var sent io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return err
		}
		sent = bytes.NewReader(data)
	}
	return c.send(ctx, as, method, path, sent, result, headers...)
}

// upload sends a file as the body of a request.
func (c *client) upload(ctx context.Context, as *person, path, name string, content []byte) error {
	return c.send(ctx, as, http.MethodPost, path, bytes.NewReader(content), nil,
		"Content-Type", "application/octet-stream", "Content-Disposition", fmt.Sprintf("attachment; filename=%q", name))
}

// send sends a request as a user and decodes the response into result, which may be nil.
func (c *client) send(ctx context.Context, as *person, method, path string, sent io.Reader, result any, headers ...string) error {
	request, err := http.NewRequestWithContext(ctx, method, "http://kontor.localhost"+path, sent)
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	if as.id != "" {
		if err := c.ensureSession(ctx, as); err != nil {
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
		var problem struct {
			Code    string         `json:"code"`
			Details map[string]any `json:"details"`
		}
		if err := json.UnmarshalRead(response.Body, &problem); err != nil {
			return fmt.Errorf("%s %s: %d", method, path, response.StatusCode)
		}
		return fmt.Errorf("%s %s: %d %s %v", method, path, response.StatusCode, problem.Code, problem.Details)
	}
	if result == nil {
		result = new(any)
	}
	return json.UnmarshalRead(response.Body, result)
}

// get sends a GET request as a user and decodes the response into result.
func (c *client) get(ctx context.Context, as *person, path string, result any) error {
	return c.do(ctx, as, http.MethodGet, path, nil, result)
}

// sessionReuse is the time after which a user signs in again. It must be shorter than the life of an access token.
const sessionReuse = 5 * time.Minute

// ensureSession opens a session of a user, unless the previous one is recent. It needs no password.
func (b *builder) ensureSession(ctx context.Context, p *person) error {
	now := b.clock.Now()
	if p.token != "" && now.Sub(p.signedIn) < sessionReuse {
		return nil
	}
	return b.DB.InTx(ctx, func(tx *store.Tx) error {
		token, _, err := b.Auth.OpenSession(ctx, tx, p.id)
		p.token, p.signedIn = token, now
		return err
	})
}
