package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
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

// perform sends a call until it succeeds, cannot be repeated, or has been repeated often enough. The status of the returned answer is
// below 300, or 303.
func (c *Client) perform(ctx context.Context, p *prepared) (*http.Response, error) {
	if p.apiKey && !p.bearer && c.config.apiKey == "" {
		return nil, fmt.Errorf("%s: %w", p.name, ErrNoAPIKey)
	}
	wait := c.config.firstWait
	for left := c.config.retries; ; left-- {
		response, err := c.authorized(ctx, p)
		pause, again := c.repeatable(p, err, wait)
		if err == nil || left <= 0 || !again {
			return response, err
		}
		if err := sleep(ctx, pause); err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		wait = min(2*wait, c.config.maxWait)
	}
}

// authorized sends a call with the present access token. If the service rejects the token, authorized refreshes it and sends the call once more.
func (c *Client) authorized(ctx context.Context, p *prepared) (*http.Response, error) {
	if !p.bearer || p.apiKey && c.config.apiKey != "" {
		return c.checked(ctx, p, "")
	}
	token, err := c.session.token(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.name, err)
	}
	response, err := c.checked(ctx, p, token)
	if !errors.Is(err, ErrCommonUnauthorized) {
		return response, err
	}
	switch refreshed, refreshErr := c.session.replace(ctx, token); {
	case refreshErr != nil:
		return nil, fmt.Errorf("%s: %w", p.name, refreshErr)
	case refreshed == token:
		return nil, err // There is nothing to refresh with.
	default:
		return c.checked(ctx, p, refreshed)
	}
}

// checked sends a call once and returns errors of the service as errors.
func (c *Client) checked(ctx context.Context, p *prepared, token string) (*http.Response, error) {
	response, err := c.attempt(ctx, p, token)
	if err != nil {
		return nil, err
	}
	status := response.StatusCode
	if status < 300 || status == http.StatusSeeOther && p.accept == locationOnly {
		return response, nil
	}
	defer response.Body.Close()
	switch {
	case status == http.StatusNotModified:
		return nil, fmt.Errorf("%s: %w", p.name, ErrNotModified)
	case status < 400:
		return nil, fmt.Errorf("%s: %w: status %d", p.name, ErrUnexpected, status)
	}
	a := &answer{status: status, header: response.Header}
	a.body, err = readLimited(response.Body, maxError)
	if err != nil && !errors.Is(err, ErrTooLarge) {
		return nil, fmt.Errorf("%s: read the error %d: %w", p.name, status, err)
	}
	return nil, newError(p.operation, a)
}

// repeatable reports whether a failed call may be sent again, and after which pause.
func (c *Client) repeatable(p *prepared, err error, wait time.Duration) (pause time.Duration, again bool) {
	var refused *Error
	safe := p.safe(p.call.header.Get(headerKey))
	pause = jitter(wait)
	switch {
	case err == nil, errors.Is(err, ErrNotModified), errors.Is(err, ErrUnexpected), errors.Is(err, ErrTimeout), errors.Is(err, ErrTooLarge),
		errors.Is(err, ErrNotSignedIn), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return 0, false
	case !errors.As(err, &refused):
		return pause, safe // The connection failed: the request may have arrived.
	}
	pause = max(pause, refused.RetryAfter)
	if pause > c.config.maxWait {
		return 0, false
	}
	return pause, refused.notCarriedOut() || safe && refused.outcomeUnknown()
}

// notCarriedOut reports whether the service has rejected the request before doing anything.
func (e *Error) notCarriedOut() bool {
	switch e.Code {
	case ErrRateLimitsExceeded, ErrRateLimitsTooManyAtOnce, ErrCommonUnavailable, ErrAuthInternalServerError, ErrNotificationsTooManyConnections:
		return true
	}
	return e.shutdown
}

// outcomeUnknown reports whether the request may have been carried out.
func (e *Error) outcomeUnknown() bool {
	if e.Code == ErrCommonOutcomeUnknown {
		return true
	}
	return e.Code == "" && (e.Status == http.StatusBadGateway || e.Status == http.StatusServiceUnavailable || e.Status == http.StatusGatewayTimeout)
}

// jitter returns between half of a pause and all of it, so that many clients do not return at the same time.
func jitter(d time.Duration) time.Duration {
	return d/2 + rand.N(d/2+1) //nolint:gosec // a pause needs no secret randomness
}

// sleep waits, or returns the error of the context.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// locationOnly is the accept of operations whose answer is a redirect: the client returns its address.
const locationOnly = "location"

// fetch calls an operation that returns an object.
func fetch[T any](ctx context.Context, c *Client, op operation, in input, options []CallOption) (*T, error) {
	value, err := fetchNullable[T](ctx, c, op, in, options)
	if err == nil && value == nil {
		err = fmt.Errorf("%s: %w: null", op.name, ErrUnexpected)
	}
	return value, err
}

// fetchNullable calls an operation that returns an object or null.
func fetchNullable[T any](ctx context.Context, c *Client, op operation, in input, options []CallOption) (*T, error) {
	a, err := c.send(ctx, op, in, options)
	if err != nil {
		return nil, err
	}
	return decode[T](op, a)
}

// decode decodes an answer.
func decode[T any](op operation, a *answer) (*T, error) {
	var value *T
	if err := json.Unmarshal(a.body, &value); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", op.name, ErrUnexpected, err)
	}
	if tagged, ok := any(value).(interface{ setETag(string) }); ok && value != nil {
		tagged.setETag(a.header.Get("ETag"))
	}
	return value, nil
}

// fetchEither calls an operation that returns one object with 200 and another one with 202. The other result is nil.
func fetchEither[A, B any](ctx context.Context, c *Client, op operation, in input, options []CallOption) (*A, *B, error) {
	a, err := c.send(ctx, op, in, options)
	if err != nil {
		return nil, nil, err
	}
	if bytes.Equal(a.body, []byte("null")) {
		return nil, nil, fmt.Errorf("%s: %w: null", op.name, ErrUnexpected)
	}
	if a.status == http.StatusAccepted {
		second, err := decode[B](op, a)
		return nil, second, err
	}
	first, err := decode[A](op, a)
	return first, nil, err
}

// fetchList calls an operation that returns an array.
func fetchList[T any](ctx context.Context, c *Client, op operation, in input, options []CallOption) ([]T, error) {
	list, err := fetch[[]T](ctx, c, op, in, options)
	if err != nil {
		return nil, err
	}
	return *list, nil
}

// fetchRaw calls an operation that returns JSON of any form.
func fetchRaw(ctx context.Context, c *Client, op operation, in input, options []CallOption) (json.RawMessage, error) {
	a, err := c.send(ctx, op, in, options)
	if err != nil {
		return nil, err
	}
	if !json.Valid(a.body) {
		return nil, fmt.Errorf("%s: %w: broken JSON", op.name, ErrUnexpected)
	}
	return a.body, nil
}

// fetchText calls an operation that returns a text.
func fetchText(ctx context.Context, c *Client, op operation, in input, options []CallOption) (string, error) {
	a, err := c.send(ctx, op, in, options)
	if err != nil {
		return "", err
	}
	return string(a.body), nil
}

// fetchFile calls an operation that returns a file.
func fetchFile(ctx context.Context, c *Client, op operation, in input, options []CallOption) (*File, error) {
	a, err := c.send(ctx, op, in, options)
	if err != nil {
		return nil, err
	}
	return &File{MediaType: mediaType(a.header), Data: a.body, ETag: a.header.Get("ETag")}, nil
}

// fetchLocation calls an operation that redirects a browser, and returns the address.
func fetchLocation(ctx context.Context, c *Client, op operation, in input, options []CallOption) (string, error) {
	op.accept = locationOnly
	a, err := c.send(ctx, op, in, options)
	if err != nil {
		return "", err
	}
	if location := a.header.Get("Location"); location != "" {
		return location, nil
	}
	return "", fmt.Errorf("%s: %w: no Location", op.name, ErrUnexpected)
}
