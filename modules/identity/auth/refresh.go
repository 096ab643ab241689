package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"time"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

const (
	refreshBytes = 32
	// maxSession is the longest life of a session. After it the user must sign in again.
	maxSession = 30 * 24 * time.Hour

	actionRefresh = "auth.session_refreshed"
)

// Tokens is the response to a sign-in or a refresh.
type Tokens struct {
	AccessToken  string `json:"access_token" doc:"A JWT, for the header Authorization."`
	TokenType    string `json:"token_type" enum:"Bearer"`
	ExpiresIn    int64  `json:"expires_in" doc:"Seconds until the access token ends."` // seconds
	RefreshToken string `json:"refresh_token,omitzero" doc:"Valid for one refresh."`
	UserID       string `json:"user_id"`
	DeviceToken  string `json:"device_token,omitzero" doc:"Only after a sign-in. Send it as X-Device-Token with the next one, so that failed attempts of others do not lock this device out."`
}

// mint returns a pair of tokens for a session and extends the session to the later expiry of the two.
func (s *Service) mint(row *Session, now store.Time) (tokens Tokens, accessUntil store.Time, err error) {
	token, accessUntil, err := s.issue(*row, now)
	if err != nil {
		return Tokens{}, 0, err
	}
	secret := make([]byte, refreshBytes)
	rand.Read(secret) // does not fail: it would end the program
	row.ExpiresAt = max(accessUntil, s.refreshUntil(*row, now))
	return Tokens{
		AccessToken: token, TokenType: "Bearer", ExpiresIn: int64(s.options.AccessToken / time.Second),
		RefreshToken: base64.RawURLEncoding.EncodeToString(secret), UserID: row.UserID,
	}, accessUntil, nil
}

func (s *Service) refreshUntil(row Session, now store.Time) store.Time {
	return min(now.Add(s.options.RefreshToken), row.CreatedAt.Add(maxSession))
}

// tokenHash returns the stored hash of a refresh token. A token has 256 random bits, so that a fast hash is enough.
func tokenHash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// Refresh exchanges a refresh token for a new pair. A second use of a token means that it was copied: the whole session ends
// (RFC 9700, section 4.14.2). It returns apierr.InvalidRefresh.
func (s *Service) Refresh(ctx context.Context, token string) (Tokens, error) {
	secret, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(secret) != refreshBytes {
		return Tokens{}, apierr.InvalidRefresh
	}
	var tokens Tokens
	var refused error
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		tokens, refused = Tokens{}, apierr.InvalidRefresh
		found, err := selectRefreshToken(ctx, tx, tokenHash(token))
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		if found.used {
			// Committed, although the request is rejected.
			return s.endSession(ctx, tx, found.session.UserID, found.session, endedByReuse)
		}
		now := tx.Now()
		if now >= found.expires {
			return nil
		}
		if s.isIdle(s.lastUse(found.session), now) {
			return s.endSession(ctx, tx, found.session.UserID, found.session, endedByIdle)
		}
		refused = nil
		tokens, err = s.rotate(ctx, tx, tokenHash(token), found.session)
		return err
	})
	if err == nil {
		err = refused
	}
	return tokens, err
}

// rotate replaces the tokens of a session.
func (s *Service) rotate(ctx context.Context, tx *store.Tx, usedHash string, row Session) (Tokens, error) {
	now := tx.Now()
	before := row
	row.LastUsedAt = now
	tokens, _, err := s.mint(&row, now)
	if err != nil {
		return Tokens{}, err
	}
	if err := updateRefreshed(ctx, tx, usedHash, row); err != nil {
		return Tokens{}, err
	}
	if err := insertRefreshToken(ctx, tx, tokenHash(tokens.RefreshToken), row.ID, s.refreshUntil(row, now)); err != nil {
		return Tokens{}, err
	}
	if err := s.updateDuty(ctx, tx, row.UserID); err != nil {
		return Tokens{}, err
	}
	// The cached expiry is stale.
	s.Changed(tx, row.UserID)
	tx.AfterCommit(func() { s.uses.written(map[string]store.Time{row.ID: now}) })
	tx.Audit(store.AuditEntry{Actor: row.UserID, Action: actionRefresh, RecType: access.Sessions.Name, RecID: row.ID, Before: auditedSession(before), After: auditedSession(row)})
	return tokens, nil
}
