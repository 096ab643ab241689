package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"time"
	"unicode"
	"unicode/utf8"

	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/server/fault"
	"kontor/store"
)

const (
	refreshBytes = 32
	// maxSession is how long refreshing keeps a session alive before the user has to show his password again.
	maxSession = 30 * 24 * time.Hour

	maxDeviceID = 128

	actionOpen    = "auth.session_opened"
	actionRefresh = "auth.session_refreshed"
	actionEnd     = "auth.session_ended"
)

// The reasons why a session ended, as they are stored.
const (
	endedByLogout  = "logout"
	endedByReuse   = "refresh_reuse"
	endedByRequest = "request"
	endedByChange  = "change"
)

// Tokens is what a sign-in and a refresh answer with.
type Tokens struct {
	AccessToken  string `json:"access_token"`
	TokenType    string `json:"token_type"`
	ExpiresIn    int64  `json:"expires_in"` // seconds
	RefreshToken string `json:"refresh_token,omitzero"`
	UserID       string `json:"user_id"`
}

// Session is a session as its owner sees it.
type Session struct {
	ID         string     `json:"id"`
	UserID     string     `json:"user_id"`
	DeviceID   string     `json:"device_id"`
	CreatedAt  store.Time `json:"created_at"`
	LastUsedAt store.Time `json:"last_used_at"`
	ExpiresAt  store.Time `json:"expires_at"`
	Current    bool       `json:"current"` // the one that asks
}

// SessionKind says what a new session may do beside calling.
type SessionKind bool

// The kinds of sessions.
const (
	Renewable    SessionKind = true  // with a refresh token
	NotRenewable SessionKind = false // ends with its access token
)

// OpenSession starts a session for a user, from the device of the request, and signs its tokens. It returns
// fault.InvalidInput for an X-Device-ID that is none.
func (s *Service) OpenSession(ctx context.Context, tx *store.Tx, userID string, kind SessionKind) (Tokens, error) {
	device, err := deviceID(ctx)
	if err != nil {
		return Tokens{}, err
	}
	now := tx.Now()
	row := Session{ID: store.NewID(), UserID: userID, DeviceID: device, CreatedAt: now, LastUsedAt: now}
	tokens, expires, err := s.mint(&row, now)
	if err != nil {
		return Tokens{}, err
	}
	if kind == NotRenewable {
		tokens.RefreshToken, row.ExpiresAt = "", expires
	}
	if err := insertSession(ctx, tx, row); err != nil {
		return Tokens{}, err
	}
	if kind == Renewable {
		if err := insertRefreshToken(ctx, tx, tokenHash(tokens.RefreshToken), row.ID, s.refreshUntil(row, now)); err != nil {
			return Tokens{}, err
		}
	}
	if err := s.noteDevice(ctx, tx, userID, device); err != nil {
		return Tokens{}, err
	}
	tx.Audit(store.AuditEntry{Actor: userID, Action: actionOpen, RecType: access.Sessions.Name, RecID: row.ID, After: row})
	return tokens, nil
}

// mint makes a pair of tokens for a session and moves its expiry to that of the longer one.
func (s *Service) mint(row *Session, now store.Time) (tokens Tokens, accessUntil store.Time, err error) {
	token, accessUntil, err := s.issue(row.UserID, row.ID, now)
	if err != nil {
		return Tokens{}, 0, err
	}
	secret := make([]byte, refreshBytes)
	rand.Read(secret) // never fails: it ends the program instead
	row.ExpiresAt = max(accessUntil, s.refreshUntil(*row, now))
	return Tokens{
		AccessToken: token, TokenType: "Bearer", ExpiresIn: int64(s.options.AccessToken / time.Second),
		RefreshToken: base64.RawURLEncoding.EncodeToString(secret), UserID: row.UserID,
	}, accessUntil, nil
}

func (s *Service) refreshUntil(row Session, now store.Time) store.Time {
	return min(now.Add(s.options.RefreshToken), row.CreatedAt.Add(maxSession))
}

// tokenHash is what is stored of a refresh token. It has 256 random bits: nothing slow is needed.
func tokenHash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// Refresh exchanges a refresh token for a new pair. Who shows one that was used before has a copy, or was copied: the
// whole session ends. It returns fault.InvalidRefreshToken.
func (s *Service) Refresh(ctx context.Context, token string) (Tokens, error) {
	if _, err := deviceID(ctx); err != nil {
		return Tokens{}, err
	}
	secret, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(secret) != refreshBytes {
		return Tokens{}, fault.InvalidRefreshToken
	}
	var tokens Tokens
	var refused error
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		tokens, refused = Tokens{}, fault.InvalidRefreshToken
		found, err := selectRefreshToken(ctx, tx, tokenHash(token))
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		if found.used {
			// Committed, although the request is refused.
			return s.endSession(ctx, tx, found.session.UserID, found.session.UserID, found.session.ID, endedByReuse)
		}
		now := tx.Now()
		if now >= found.expires {
			return nil
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
	// The remembered expiry is out of date.
	s.Changed(tx, row.UserID)
	tx.Audit(store.AuditEntry{Actor: row.UserID, Action: actionRefresh, RecType: access.Sessions.Name, RecID: row.ID, Before: before, After: row})
	return tokens, nil
}

// Logout ends the caller's session.
func (s *Service) Logout(ctx context.Context) error {
	caller := access.From(ctx)
	return s.db.InTx(ctx, func(tx *store.Tx) error {
		return s.endSession(ctx, tx, caller.UserID, caller.UserID, caller.SessionID, endedByLogout)
	})
}

// EndSession ends one session of a user, for himself or for a caller who may delete sessions. It returns
// fault.UserNotFound, fault.NoAccess and fault.SessionNotFound.
func (s *Service) EndSession(ctx context.Context, userID, sessionID string) error {
	caller := access.From(ctx)
	return s.db.InTx(ctx, func(tx *store.Tx) error {
		if err := mayOn(ctx, tx, caller, userID, access.Delete); err != nil {
			return err
		}
		err := s.endSession(ctx, tx, caller.UserID, userID, sessionID, endedByRequest)
		if errors.Is(err, store.ErrNotFound) {
			return fault.SessionNotFound.Because(err)
		}
		return err
	})
}

// EndSessions ends all sessions of a user but one, or all when exceptID is empty: after a change of password or status.
func (s *Service) EndSessions(ctx context.Context, tx *store.Tx, userID, exceptID string) error {
	ended, err := updateEndedAll(ctx, tx, userID, exceptID, endedByChange)
	if err != nil {
		return err
	}
	actor := access.From(ctx).UserID
	for _, id := range ended {
		tx.Audit(store.AuditEntry{Actor: actor, Action: actionEnd, RecType: access.Sessions.Name, RecID: id})
	}
	s.Changed(tx, userID)
	return nil
}

// Changed makes the next request of a user see what the transaction changes about him: status, roles, sessions.
func (s *Service) Changed(tx *store.Tx, userID string) {
	tx.AfterCommit(func() { s.generations.end(userID) })
}

// endSession ends an active session. It returns store.ErrNotFound where there is none.
func (s *Service) endSession(ctx context.Context, tx *store.Tx, actor, userID, sessionID, reason string) error {
	ended, err := updateEnded(ctx, tx, userID, sessionID, reason)
	if err != nil {
		return err
	}
	if !ended {
		return store.ErrNotFound
	}
	tx.Audit(store.AuditEntry{Actor: actor, Action: actionEnd, RecType: access.Sessions.Name, RecID: sessionID})
	s.Changed(tx, userID)
	return nil
}

// mayOn decides what a caller may do with the sessions of a user.
func mayOn(ctx context.Context, q store.Querier, caller *access.Caller, userID string, p access.Permission) error {
	if caller.UserID == userID {
		return nil
	}
	exists, err := selectUserExists(ctx, q, userID)
	switch {
	case err != nil:
		return err
	case !exists:
		return fault.UserNotFound
	case !caller.May(access.Sessions, p):
		return fault.NoAccess
	}
	return nil
}

// noteDevice remembers the device of a session and tells of it.
func (s *Service) noteDevice(ctx context.Context, tx *store.Tx, userID, device string) error {
	known, others, err := selectDevices(ctx, tx, userID, device)
	if err != nil {
		return err
	}
	if err := upsertDevice(ctx, tx, userID, device); err != nil {
		return err
	}
	if s.options.Events == nil {
		return nil
	}
	return s.options.Events.SignedIn(ctx, tx, userID, device, others && !known)
}

// deviceID is the X-Device-ID of a request.
func deviceID(ctx context.Context) (string, error) {
	id := endpoint.Of(ctx).DeviceID
	if !utf8.ValidString(id) || utf8.RuneCountInString(id) > maxDeviceID {
		return "", fault.Invalid("X-Device-ID", "invalid.device_id", fault.Args{"Max": maxDeviceID})
	}
	for _, r := range id {
		if !unicode.IsPrint(r) {
			return "", fault.Invalid("X-Device-ID", "invalid.device_id", fault.Args{"Max": maxDeviceID})
		}
	}
	return id, nil
}

// sessionRecords says what users are to sessions.
type sessionRecords struct{ db *store.DB }

// Standings gives the owner of a session all but the making of it.
func (r sessionRecords) Standings(ctx context.Context, userID string, ids []string) (map[string]access.Standing, error) {
	return standings(ctx, r.db, selectSessionOwner, userID, ids)
}
