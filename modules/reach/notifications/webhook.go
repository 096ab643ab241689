package notifications

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"kontor/modules/kit/outbox"
)

// Webhook is the gateway for SMS. It posts each message to a URL as a JSON object.
type Webhook struct {
	address string
	token   string
	now     func() time.Time
	client  *http.Client
}

const webhookTimeout = 20 * time.Second

// NewWebhook returns a gateway for a URL. The token may be empty.
func NewWebhook(address, token string, now func() time.Time) *Webhook {
	return &Webhook{address: address, token: token, now: now, client: &http.Client{
		Timeout: webhookTimeout,
		// Redirects are not followed: the token is for this address only.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// sms is the body of a request to the gateway.
type sms struct {
	To   string `json:"to"`
	Text string `json:"text"`
	ID   string `json:"id"`
}

// Send sends one message. The delivery's id goes with it, so that the gateway can recognise a repetition.
func (g *Webhook) Send(ctx context.Context, d Delivery) error {
	body, err := json.Marshal(sms{To: d.Recipient, Text: d.Text, ID: d.ID})
	if err != nil {
		return &SendError{Permanent: true, Cause: err}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, g.address, bytes.NewReader(body))
	if err != nil {
		return &SendError{Permanent: true, Cause: errors.New("the address of the SMS gateway is not a URL")}
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Idempotency-Key", d.ID)
	if g.token != "" {
		request.Header.Set("Authorization", "Bearer "+g.token)
	}
	response, err := g.client.Do(request)
	if err != nil {
		return withoutURL(err)
	}
	defer response.Body.Close()
	const maxAnswer = 64 << 10
	_, _ = io.CopyN(io.Discard, response.Body, maxAnswer) // so that the connection can be reused
	return g.check(response)
}

// check returns nil for 2xx, a temporary error for 5xx, 408 and 429, and a permanent one for other statuses.
func (g *Webhook) check(response *http.Response) error {
	status := response.StatusCode
	if status >= 200 && status < 300 {
		return nil
	}
	temporary := status >= 500 || status == http.StatusRequestTimeout || status == http.StatusTooManyRequests
	return &SendError{Permanent: !temporary, RetryAfter: g.retryAfter(response.Header.Get("Retry-After")),
		Cause: fmt.Errorf("the SMS gateway answered %d", status)}
}

// retryAfter returns the pause of the header Retry-After, which holds seconds or a date (RFC 9110, section 10.2.3).
func (g *Webhook) retryAfter(header string) time.Duration {
	if seconds, err := strconv.Atoi(header); err == nil && seconds > 0 {
		return time.Duration(min(seconds, int(outbox.MaxRetryAfter/time.Second))) * time.Second
	}
	if at, err := http.ParseTime(header); err == nil {
		return max(0, at.Sub(g.now()))
	}
	return 0
}

// withoutURL removes the URL, which may contain a secret, from an error.
func withoutURL(err error) error {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return failed.Err
	}
	return err
}
