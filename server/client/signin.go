package client

import (
	"context"
	"errors"
	"fmt"
)

// SecondFactorRequired is the error of a sign-in whose user has a second factor. One of its methods completes the sign-in, from the same
// device, within a few minutes and at most five attempts.
type SecondFactorRequired struct {
	NextStep
	client *Client
}

func (e *SecondFactorRequired) Error() string {
	return fmt.Sprintf("the sign-in needs a second factor: %v", e.Methods)
}

// Code completes the sign-in with the code of an authenticator app.
func (e *SecondFactorRequired) Code(ctx context.Context, code string) error {
	return e.complete(ctx, SignInFactorInput{Code: code})
}

// RecoveryCode completes the sign-in with one of the user's recovery codes.
func (e *SecondFactorRequired) RecoveryCode(ctx context.Context, code string) error {
	return e.complete(ctx, SignInFactorInput{RecoveryCode: code})
}

// PasskeyAnswer completes the sign-in with what an authenticator has returned for the options in Passkey.
func (e *SecondFactorRequired) PasskeyAnswer(ctx context.Context, answer map[string]any) error {
	return e.complete(ctx, SignInFactorInput{Passkey: answer})
}

func (e *SecondFactorRequired) complete(ctx context.Context, in SignInFactorInput) error {
	in.Token = e.Token
	tokens, err := e.client.Auth.SignInFactor(ctx, in)
	if err != nil {
		return err
	}
	return e.client.Use(ctx, *tokens)
}

// SignIn opens a session with a password. user is an e-mail address, a phone number, a user name or an id. The error is
// [*SecondFactorRequired] if the user has a second factor.
func (c *Client) SignIn(ctx context.Context, user, password string) error {
	tokens, next, err := c.Auth.SignIn(ctx, SignInInput{UserID: user, Password: password})
	switch {
	case err != nil:
		return err
	case next != nil:
		return &SecondFactorRequired{*next, c}
	}
	return c.Use(ctx, *tokens)
}

// Use continues with tokens of another way to sign in, such as OIDC.Exchange.
func (c *Client) Use(ctx context.Context, tokens Tokens) error {
	if c.session.fixed != "" {
		return errors.New("the client has a fixed token")
	}
	if err := c.session.wait(ctx); err != nil {
		return err
	}
	c.session.adopt(tokens)
	return nil
}

// Tokens returns the present tokens, which are secret. A refresh replaces them.
func (c *Client) Tokens() TokenSet { return c.session.tokens() }

// SignOut ends the session. Without one it does nothing.
func (c *Client) SignOut(ctx context.Context) error {
	if err := c.session.wait(ctx); err != nil {
		return err
	}
	if c.session.tokens().AccessToken == "" {
		return nil
	}
	_, err := c.Auth.Logout(ctx)
	if err == nil || errors.Is(err, ErrCommonUnauthorized) || errors.Is(err, ErrAuthInvalidRefreshToken) {
		c.session.forget()
		return nil
	}
	return err
}
