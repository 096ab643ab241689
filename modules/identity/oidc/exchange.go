package oidc

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// exchange exchanges a one-time code for tokens, or for the next step of the sign-in. The code is void afterwards in any case.
func (s *Service) exchange(ctx context.Context, in exchangeInput) (endpoint.Result, error) {
	if s.provider == nil {
		return endpoint.Result{}, apierr.NotFound
	}
	userID, st, err := s.redeem(ctx, in.Code)
	if rejected, ok := errors.AsType[*rejection](err); ok {
		s.report(ctx, rejected)
		return endpoint.Result{}, rejected.kind
	}
	if err != nil {
		return endpoint.Result{}, err
	}
	step, err := s.sessions.NextStep(ctx, userID, st.Methods, st.At)
	if err != nil {
		return endpoint.Result{}, err
	}
	forget := s.setCookie("", 0)
	if step != nil {
		return endpoint.Result{Status: http.StatusAccepted, Body: step, SetCookie: forget}, nil
	}
	var tokens any
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		if err := s.requireStaff(ctx, tx, userID); err != nil { // they may have been disabled since
			return err
		}
		tokens, err = s.sessions.OpenFederatedSession(ctx, tx, userID, st.Methods, st.At)
		return err
	})
	if rejected, ok := errors.AsType[*rejection](err); ok {
		s.report(ctx, rejected)
		return endpoint.Result{}, rejected.kind
	}
	return endpoint.Result{Status: http.StatusOK, Body: tokens, SetCookie: forget}, err
}

// redeem uses a code and returns its user, who is active staff and still linked. It returns a *rejection.
func (s *Service) redeem(ctx context.Context, code string) (userID string, st statement, err error) {
	var rejected *rejection
	err = s.db.InTx(ctx, func(tx *store.Tx) (err error) {
		rejected = nil
		userID, st, err = s.redeemIn(ctx, tx, code)
		return rejectedIn(err, &rejected) // committed: the code is void
	})
	if err == nil && rejected != nil {
		err = rejected
	}
	return userID, st, err
}

func (s *Service) redeemIn(ctx context.Context, tx *store.Tx, code string) (userID string, st statement, err error) {
	userID, st, valid, err := s.useCode(ctx, tx, forSignIn, code)
	if err != nil {
		return "", st, err
	}
	if !valid {
		return "", st, reject(apierr.OIDCInvalidCode, "one_time_code", nil)
	}
	linked, err := identityTable.GetUnchecked(ctx, tx, st.Identity)
	if errors.Is(err, apierr.IdentityNotFound) || err == nil && linked.UserID != userID {
		return "", st, &rejection{kind: apierr.OIDCNoAccount, note: "unlinked", user: userID}
	}
	if err != nil {
		return "", st, err
	}
	if err := s.requireStaff(ctx, tx, userID); err != nil {
		return "", st, err
	}
	if linked.onTrial(tx.Now()) {
		st.At = 0 // the sign-in does not make the session fresh
	}
	_, err = tx.Exec(ctx, updateIdentityUse, st.Identity, tx.Now())
	return userID, st, err
}

// purpose is what a one-time code is for.
type purpose string

const (
	forSignIn purpose = "sign_in"
	forLink   purpose = "link"
	forProof  purpose = "proof" // of the user, for a change within a session
)

// life returns how long a code is valid. Users who link an account sign in first, and users who prove themselves continue with the
// change.
func (p purpose) life() time.Duration {
	if p != forSignIn {
		return 10 * time.Minute
	}
	return time.Minute
}

func (s *Service) hash(kind, secret string) string {
	return hex.EncodeToString(s.db.Keyed("oidc "+kind, []byte(secret)))
}

// issueCode stores a one-time code. Only the browser with the cookie may use it.
func (s *Service) issueCode(ctx context.Context, tx *store.Tx, p purpose, userID string, st statement) (code, cookie string, err error) {
	code, browser := newSecret(), newSecret()
	data, err := json.Marshal(st)
	if err != nil {
		return "", "", err
	}
	_, err = tx.Exec(ctx, insertCode, s.hash("code", code), s.hash("browser", browser), string(p), userID, string(data), tx.Now().Add(p.life()))
	return code, s.setCookie(browser, p.life()), err
}

// useCode deletes a code and returns what it stands for. valid is false for an unknown, used or expired code and for another
// browser. The transaction must be committed all the same, so that a code that has leaked is void.
func (s *Service) useCode(ctx context.Context, tx *store.Tx, p purpose, code string) (userID string, st statement, valid bool, err error) {
	if !isSecret(code) {
		return "", st, false, nil
	}
	var browser, data string
	var expires store.Time
	hash := s.hash("code", code)
	err = tx.QueryRow(ctx, selectCode, hash, string(p)).Scan(&browser, &userID, &data, &expires)
	if errors.Is(err, store.ErrNotFound) {
		return "", st, false, nil
	}
	if err != nil {
		return "", st, false, err
	}
	if _, err := tx.Exec(ctx, deleteCode, hash); err != nil {
		return "", st, false, err
	}
	now := tx.Now()
	if !s.isBrowser(ctx, browser) || now >= expires || expires > now.Add(p.life()) {
		return "", st, false, nil
	}
	err = json.Unmarshal([]byte(data), &st)
	return userID, st, err == nil, err
}

// isSecret reports whether a text has the form of those that newSecret returns.
func isSecret(text string) bool {
	secret, err := base64.RawURLEncoding.Strict().DecodeString(text)
	return err == nil && len(secret) == secretBytes
}

// isBrowser reports whether the request comes from the browser with the hash.
func (s *Service) isBrowser(ctx context.Context, hash string) bool {
	cookie, err := s.cookie(ctx)
	return err == nil && equal(s.hash("browser", cookie), hash)
}

// purgeBatch is the number of rows that one transaction deletes.
const purgeBatch = 500

// Purge deletes expired codes and states.
func (s *Service) Purge(ctx context.Context) error {
	for _, statement := range []string{purgeStates, purgeCodes} {
		err := s.db.InBatches(ctx, purgeBatch, func(tx *store.Tx) (int64, error) { return tx.Exec(ctx, statement, tx.Now(), purgeBatch) })
		if err != nil {
			return err
		}
	}
	return nil
}
