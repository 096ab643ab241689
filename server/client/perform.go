package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"
)

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
