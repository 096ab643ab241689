package oidc

import (
	"context"
	"errors"
	"fmt"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// maxParameter is the length of a parameter that the provider sends.
const maxParameter = 4096

// rejection is the end of a sign-in that did not succeed.
type rejection struct {
	kind  apierr.Kind
	note  string // a word for the audit trail
	user  string // id; empty: unknown
	cause error  // for the log
}

// Error returns the code and the note.
func (r *rejection) Error() string { return r.kind.Code + ": " + r.note }

func reject(kind apierr.Kind, note string, cause error) *rejection {
	return &rejection{kind: kind, note: note, cause: cause}
}

// callback takes the browser back from the provider. Every outcome is a redirect to the console.
func (s *Service) callback(ctx context.Context, in callbackInput) (endpoint.Result, error) {
	if s.provider == nil {
		return endpoint.Result{}, apierr.NotFound
	}
	began, rejected := s.checkState(ctx, in)
	if rejected != nil {
		// The cookie stays: another site may have sent the browser here while a sign-in waits.
		return s.failed(ctx, rejected, "", ""), nil
	}
	forget := s.setCookie("", 0)
	st, err := s.askProvider(ctx, in, began)
	if err == nil {
		var result endpoint.Result
		if result, err = s.settle(ctx, st, began); err == nil {
			return result, nil
		}
	}
	if rejected, ok := errors.AsType[*rejection](err); ok {
		return s.failed(ctx, rejected, began.ReturnTo, forget), nil
	}
	return endpoint.Result{}, err
}

// failed reports a rejection to the log and the audit trail and returns to the console.
func (s *Service) failed(ctx context.Context, r *rejection, returnTo, cookie string) endpoint.Result {
	s.report(ctx, r)
	return s.toConsole(returnTo, memberError, r.kind.Code, cookie)
}

func (s *Service) report(ctx context.Context, r *rejection) {
	var cause string
	if r.cause != nil {
		cause = shorten(r.cause)
	}
	s.options.Log.Info("sign-in with the provider rejected", "request_id", endpoint.Of(ctx).RequestID, "reason", r.note, "cause", cause)
	endpoint.Report(ctx, endpoint.Event{Kind: endpoint.FailedSignIn, Action: "auth.oidc_failed", RecType: access.Users.Name, RecID: r.user, Note: r.note})
}

// checkState checks that this browser has begun the sign-in, a short time ago.
func (s *Service) checkState(ctx context.Context, in callbackInput) (begun, *rejection) {
	began, err := s.readBegun(ctx)
	if err != nil {
		return begun{}, reject(apierr.OIDCExpired, "browser", err)
	}
	if !equal(began.State, in.State) {
		return begun{}, reject(apierr.OIDCExpired, "state", nil)
	}
	if now := s.db.Now(); now >= began.At.Add(beginLife) || began.At > now.Add(leeway) {
		return begun{}, reject(apierr.OIDCExpired, "expired", nil)
	}
	return began, nil
}

// askProvider redeems the authorization code and returns what the provider states about the user.
func (s *Service) askProvider(ctx context.Context, in callbackInput, began begun) (statement, error) {
	release, err := s.acquire()
	if err != nil {
		return statement{}, reject(apierr.OIDCUnavailable, "busy", err)
	}
	defer release()
	ctx, cancel := context.WithTimeout(ctx, s.options.Timeout)
	defer cancel()
	d, err := s.provider.get(ctx)
	if err != nil {
		return statement{}, reject(apierr.OIDCUnavailable, "provider", err)
	}
	// Before anything else of the answer is used: it may come from another provider (RFC 9207, section 2.4).
	if in.Issuer != s.options.Issuer && (in.Issuer != "" || d.SendsIssuer) {
		return statement{}, reject(apierr.OIDCFailed, "issuer", fmt.Errorf("the answer names another issuer or none: %.100q", in.Issuer))
	}
	if err := s.useState(ctx, began); err != nil {
		return statement{}, err
	}
	if in.Error != "" {
		return statement{}, ofProvider(in.Error)
	}
	if in.Code == "" || len(in.Code) > maxParameter {
		return statement{}, reject(apierr.OIDCFailed, "code", nil)
	}
	token, err := s.provider.exchange(ctx, d, in.Code, began.Verifier)
	if err != nil {
		return statement{}, rejectedBy(err, "code")
	}
	st, err := s.verify(ctx, d, token, began.Nonce)
	if err != nil {
		return statement{}, rejectedBy(err, "token")
	}
	return st, nil
}

// rejectedBy distinguishes a provider that does not answer from one whose answer is wrong.
func rejectedBy(err error, note string) *rejection {
	if isUnreachable(err) {
		return reject(apierr.OIDCUnavailable, "provider", err)
	}
	return reject(apierr.OIDCFailed, note, err)
}

// ofProvider returns the rejection for an error code of the provider. Its description is ignored: anyone can write one into an
// address.
func ofProvider(code string) *rejection {
	cause := fmt.Errorf("the provider answered %.60q", code)
	switch code {
	case "access_denied", "login_required", "interaction_required", "consent_required", "account_selection_required":
		return reject(apierr.OIDCCancelled, "cancelled", cause)
	case "temporarily_unavailable", "server_error":
		return reject(apierr.OIDCUnavailable, "provider", cause)
	}
	return reject(apierr.OIDCFailed, "provider_error", cause)
}

// useState records that the sign-in has returned. A second return is rejected, also after a restart.
func (s *Service) useState(ctx context.Context, began begun) error {
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec(ctx, insertState, s.hash("state", began.State), began.At.Add(beginLife+leeway))
		return err
	})
	if errors.Is(err, store.ErrDuplicate) {
		return reject(apierr.OIDCExpired, "replayed", nil)
	}
	return err
}
