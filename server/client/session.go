package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// TokenSet is what a program keeps to continue a session after a restart. It is secret.
type TokenSet struct {
	AccessToken  string    `json:"access_token,omitzero"`
	RefreshToken string    `json:"refresh_token,omitzero"` // valid once
	ExpiresAt    time.Time `json:"expires_at,omitzero"`    // of the access token, by the clock of this machine
	UserID       string    `json:"user_id,omitzero"`
	// DeviceToken is sent with the next sign-in, so that failed attempts of others do not lock this device out. It outlives the session.
	DeviceToken string `json:"device_token,omitzero"`
}

// refreshEarly is how long before its end an access token is refreshed, at most a tenth of its life.
const refreshEarly = 30 * time.Second

// session keeps the tokens of a client. At most one refresh is under way at any time.
type session struct {
	client *Client
	fixed  string

	mutex   sync.Mutex
	current TokenSet
	renewAt time.Time
	flight  *flight // the refresh under way, or nil
}

// flight is a refresh under way. Its error may be read when done is closed.
type flight struct {
	done chan struct{}
	err  error
}

func newSession(c *Client) *session {
	s := &session{client: c, fixed: c.config.token, current: c.config.tokens}
	s.renewAt = s.current.ExpiresAt.Add(-refreshEarly)
	return s
}

// tokens returns the present tokens.
func (s *session) tokens() TokenSet {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.current
}

// token returns a bearer token that is valid as far as the client can tell. It refreshes an expired one.
func (s *session) token(ctx context.Context) (string, error) {
	if s.fixed != "" {
		return s.fixed, nil
	}
	s.mutex.Lock()
	now := s.current
	expired := now.RefreshToken != "" && !time.Now().Before(s.renewAt)
	s.mutex.Unlock()
	if expired {
		fresh, err := s.replace(ctx, now.AccessToken)
		if err != nil && ctx.Err() == nil && !errors.Is(err, ErrNotSignedIn) && time.Now().Before(now.ExpiresAt) {
			return now.AccessToken, nil // It is still valid, and the next call tries again.
		}
		return fresh, err
	}
	return present(now)
}

// replace returns a token other than the given one, which the service has rejected. It starts a refresh or joins the one under way. It
// returns the given token if there is nothing to refresh with.
func (s *session) replace(ctx context.Context, rejected string) (string, error) {
	s.mutex.Lock()
	switch {
	case s.fixed != "":
		s.mutex.Unlock()
		return s.fixed, nil
	case s.current.AccessToken != rejected || s.flight == nil && s.current.RefreshToken == "":
		defer s.mutex.Unlock()
		return present(s.current)
	case s.flight == nil:
		s.flight = &flight{done: make(chan struct{})}
		// The refresh outlives the call that needs it: a cancelled call must not lose the new tokens, because the old ones are used up.
		go s.refresh(context.WithoutCancel(ctx), s.flight, s.current)
	}
	joined := s.flight
	s.mutex.Unlock()
	select {
	case <-joined.done:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	if joined.err != nil {
		return "", joined.err
	}
	return present(s.tokens())
}

// present returns the access token, if there is one.
func present(tokens TokenSet) (string, error) {
	if tokens.AccessToken == "" {
		return "", ErrNotSignedIn
	}
	return tokens.AccessToken, nil
}

// refresh exchanges the refresh token and ends the flight.
func (s *session) refresh(ctx context.Context, f *flight, old TokenSet) {
	fresh, err := s.client.Auth.Refresh(ctx, RefreshInput{RefreshToken: old.RefreshToken})
	s.mutex.Lock()
	// A sign-in or sign-out meanwhile has the last word.
	unchanged := s.current.RefreshToken == old.RefreshToken
	s.mutex.Unlock()
	switch {
	case err == nil && unchanged:
		s.adopt(*fresh)
	case errors.Is(err, ErrAuthInvalidRefreshToken):
		f.err = fmt.Errorf("%w: the session has ended: %w", ErrNotSignedIn, err)
		if unchanged {
			s.forget()
		}
	case err != nil:
		f.err = fmt.Errorf("refresh the session: %w", err)
	}
	s.mutex.Lock()
	s.flight = nil
	s.mutex.Unlock()
	close(f.done)
}

// adopt uses new tokens from now on.
func (s *session) adopt(t Tokens) {
	life := time.Duration(t.ExpiresIn) * time.Second
	next := TokenSet{AccessToken: t.AccessToken, RefreshToken: t.RefreshToken, ExpiresAt: time.Now().Add(life), UserID: t.UserID, DeviceToken: t.DeviceToken}
	if next.DeviceToken == "" {
		next.DeviceToken = s.tokens().DeviceToken
	}
	s.use(next, next.ExpiresAt.Add(-min(refreshEarly, life/10)))
}

// forget removes the tokens of a session that has ended.
func (s *session) forget() { s.use(TokenSet{DeviceToken: s.tokens().DeviceToken}, time.Time{}) }

// use reports tokens and then replaces the present ones.
func (s *session) use(next TokenSet, renewAt time.Time) {
	if s.client.config.onTokens != nil {
		s.client.config.onTokens(next)
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.current, s.renewAt = next, renewAt
}

// wait waits for the refresh under way.
func (s *session) wait(ctx context.Context) error {
	s.mutex.Lock()
	f := s.flight
	s.mutex.Unlock()
	if f == nil {
		return nil
	}
	select {
	case <-f.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
