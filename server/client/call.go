package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const jsonMedia = "application/json"

// operation is what the API document says about an operation.
type operation struct {
	name, method, path string
	bearer             bool   // needs a bearer token
	apiKey             bool   // needs an API key
	form               bool   // the body is multipart/form-data
	keyed              bool   // accepts an Idempotency-Key
	device             bool   // accepts the id of the device
	accept             string // media types of the answer; "" for JSON
}

// safe reports whether the operation may be repeated although an earlier attempt may have had an effect.
func (op operation) safe(key string) bool {
	return op.method == http.MethodGet || op.keyed && key != ""
}

// input is what one call sends.
type input struct {
	path  []string // the values of the parameters in the path
	query any      // a struct with query tags
	body  any      // nil: none
}

// answer is an answer with its whole body.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// prepared is a call that is ready to be sent, several times if necessary.
type prepared struct {
	operation
	call   call
	target string
	media  string // of the body
	body   []byte
}

// prepare encodes a call.
func (c *Client) prepare(op operation, in input, options []CallOption) (*prepared, error) {
	p := &prepared{operation: op, call: call{header: http.Header{}}}
	for _, change := range options {
		if err := change(&p.call); err != nil {
			return nil, fmt.Errorf("%s: %w", op.name, err)
		}
	}
	if op.keyed && p.call.header.Get(headerKey) == "" {
		p.call.header.Set(headerKey, newKey())
	}
	path, err := fillPath(op.path, in.path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", op.name, err)
	}
	p.target = c.base.String() + path
	if query := encodeQuery(in.query).Encode(); query != "" {
		p.target += "?" + query
	}
	switch {
	case in.body == nil:
	case op.form:
		p.body, p.media, err = encodeForm(in.body)
	default:
		p.media = jsonMedia
		p.body, err = json.Marshal(in.body)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: encode the input: %w", op.name, err)
	}
	return p, nil
}

// fillPath replaces the parameters of a path by values.
func fillPath(path string, values []string) (string, error) {
	var b strings.Builder
	for _, value := range values {
		before, after, _ := strings.Cut(path, "{")
		name, rest, _ := strings.Cut(after, "}")
		if value == "" || value == "." || value == ".." {
			return "", fmt.Errorf("%q is no value for %s", value, name) // It would address another resource.
		}
		b.WriteString(before + url.PathEscape(value))
		path = rest
	}
	return b.String() + path, nil
}

// attempt sends a call once. The body of the answer must be closed; its end cancels the attempt.
func (c *Client) attempt(ctx context.Context, p *prepared, token string) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(c.config.timeout, func() { cancel(ErrTimeout) })
	r, err := c.request(ctx, p, token)
	if err != nil {
		timer.Stop()
		cancel(nil)
		return nil, err
	}
	response, err := c.http.Do(r)
	if err != nil {
		timer.Stop()
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		cancel(nil)
		return nil, fmt.Errorf("%s: %w", p.name, err)
	}
	response.Body = &attemptBody{response.Body, ctx, cancel, timer}
	return response, nil
}

// attemptBody is the body of an answer. Reading it reports why the attempt was cancelled.
type attemptBody struct {
	io.ReadCloser
	ctx    context.Context //nolint:containedctx // the context of the request that the body ends
	cancel context.CancelCauseFunc
	timer  *time.Timer
}

func (b *attemptBody) Read(buffer []byte) (int, error) {
	n, err := b.ReadCloser.Read(buffer)
	if err != nil && !errors.Is(err, io.EOF) && context.Cause(b.ctx) != nil {
		err = context.Cause(b.ctx)
	}
	return n, err
}

func (b *attemptBody) Close() error {
	b.timer.Stop()
	b.cancel(nil)
	return b.ReadCloser.Close()
}

// request makes the request of an attempt.
func (c *Client) request(ctx context.Context, p *prepared, token string) (*http.Request, error) {
	var content io.Reader
	if p.media != "" {
		content = bytes.NewReader(p.body)
	}
	r, err := http.NewRequestWithContext(ctx, p.method, p.target, content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.name, err)
	}
	r.Header = p.call.header.Clone()
	set := func(name, value string) {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	set("Content-Type", p.media)
	set("Accept", p.accept)
	set("User-Agent", c.config.agent)
	if r.Header.Get("Accept-Language") == "" {
		set("Accept-Language", c.config.language)
	}
	if p.bearer && token != "" {
		set("Authorization", "Bearer "+token)
	} else if p.apiKey {
		set("X-API-Key", c.config.apiKey)
	}
	if p.device {
		set("X-Device-ID", c.config.device)
		set("X-Device-Token", c.session.tokens().DeviceToken)
	}
	return r, nil
}

// send performs a call with all its attempts, and reads the answer.
func (c *Client) send(ctx context.Context, op operation, in input, options []CallOption) (*answer, error) {
	p, err := c.prepare(op, in, options)
	if err != nil {
		return nil, err
	}
	response, err := c.perform(ctx, p)
	if err != nil {
		return nil, err
	}
	a, err := c.readAnswer(p, response)
	if err == nil && p.call.meta != nil {
		*p.call.meta = newMeta(a)
	}
	return a, err
}

// readAnswer reads the body of a successful answer and closes it.
func (c *Client) readAnswer(p *prepared, response *http.Response) (*answer, error) {
	defer response.Body.Close()
	a := &answer{status: response.StatusCode, header: response.Header}
	var err error
	if a.body, err = readLimited(response.Body, c.config.maxAnswer); err != nil {
		return nil, fmt.Errorf("%s: read the answer: %w", p.name, err)
	}
	if len(a.body) == 0 && a.header.Get("Content-Type") == "" || a.status == http.StatusSeeOther {
		return a, nil
	}
	wanted := p.accept
	if wanted == "" {
		wanted = jsonMedia
	}
	if got := mediaType(a.header); !strings.Contains(", "+wanted+", ", ", "+got+", ") {
		return nil, fmt.Errorf("%s: %w: the media type is %q, not %s", p.name, ErrUnexpected, got, wanted)
	}
	return a, nil
}

func readLimited(r io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = ErrTooLarge
	}
	return data, err
}

// mediaType returns the media type of an answer without parameters.
func mediaType(h http.Header) string {
	media, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) {
		return ""
	}
	return media
}
