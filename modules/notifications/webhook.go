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
)

// Webhook is the gateway for SMS: an address that takes each message as a JSON object.
type Webhook struct {
	address string
	token   string
	now     func() time.Time
	client  *http.Client
}

const webhookTimeout = 20 * time.Second

// NewWebhook makes a gateway of an address. The token may be empty.
func NewWebhook(address, token string, now func() time.Time) *Webhook {
	return &Webhook{address: address, token: token, now: now, client: &http.Client{
		Timeout: webhookTimeout,
		// The token is for this address only.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// sms is what the gateway gets.
type sms struct {
	To   string `json:"to"`
	Text string `json:"text"`
	ID   string `json:"id"`
}

// Send hands one message over. The delivery's id goes with it, so that the gateway can tell a repetition.
func (g *Webhook) Send(ctx context.Context, d Delivery) error {
	body, err := json.Marshal(sms{To: d.Recipient, Text: d.Text, ID: d.ID})
	if err != nil {
		return &Refusal{Permanent: true, Cause: err}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, g.address, bytes.NewReader(body))
	if err != nil {
		return &Refusal{Permanent: true, Cause: errors.New("the address of the SMS gateway is no URL")}
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
	_, _ = io.CopyN(io.Discard, response.Body, maxAnswer) // so that the connection can be used again
	return g.refusal(response)
}

// refusal reads the gateway's answer. What is wrong with a message stays wrong; what is wrong with the gateway passes.
func (g *Webhook) refusal(response *http.Response) error {
	status := response.StatusCode
	if status >= 200 && status < 300 {
		return nil
	}
	passing := status >= 500 || status == http.StatusRequestTimeout || status == http.StatusTooManyRequests
	return &Refusal{Permanent: !passing, RetryAfter: g.retryAfter(response.Header.Get("Retry-After")),
		Cause: fmt.Errorf("the SMS gateway answered %d", status)}
}

// retryAfter reads the header: seconds or a date (RFC 9110, section 10.2.3).
func (g *Webhook) retryAfter(header string) time.Duration {
	if seconds, err := strconv.Atoi(header); err == nil && seconds > 0 {
		return time.Duration(min(seconds, int(maxRetryAfter/time.Second))) * time.Second
	}
	if at, err := http.ParseTime(header); err == nil {
		return max(0, at.Sub(g.now()))
	}
	return 0
}

// withoutURL takes the address, which may hold a secret, out of an error.
func withoutURL(err error) error {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return failed.Err
	}
	return err
}
