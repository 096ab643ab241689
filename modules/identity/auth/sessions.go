package auth

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"time"

	"github.com/google/uuid"

	"kontor/modules/kit/factor"
	"kontor/modules/kit/list"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

const (
	actionOpen = "auth.session_opened"
	actionEnd  = "auth.session_ended"
)

// The reasons why a session ended, as they are stored.
const (
	endedByLogout  = "logout"
	endedByReuse   = "refresh_reuse"
	endedByRequest = "request"
	endedByChange  = "change"
	endedByLimit   = "limit" // another session was opened beyond auth.sessions_max
	endedByIdle    = "idle"
)

// Session is a session as the API shows it.
type Session struct {
	ID              string     `json:"id"`
	UserID          string     `json:"user_id"`
	DeviceID        string     `json:"device_id" format:"-" doc:"The X-Device-ID of the sign-in; empty without one."`
	CreatedAt       store.Time `json:"created_at"`
	LastUsedAt      store.Time `json:"last_used_at"`
	ExpiresAt       store.Time `json:"expires_at"`
	ACR             string     `json:"acr" enum:"aal1,aal2" doc:"aal1 after one factor, aal2 after two."`
	AMR             Methods    `json:"amr" doc:"How the user authenticated, as in RFC 8176, such as pwd and otp."`
	AuthenticatedAt store.Time `json:"authenticated_at" doc:"The latest authentication; a method of sign-in that was added less than 24 hours ago does not count."`
	Current         bool       `json:"current" doc:"Whether the request belongs to this session."`

	factorAt *store.Time
	ended    *store.Time
}

// sessionKind states whether a session can be refreshed.
type sessionKind bool

const (
	renewable    sessionKind = true  // with a refresh token
	notRenewable sessionKind = false // ends with its access token
)

// OpenSession starts a session without a refresh token, for a registration, from the device of the request. It returns the
// access token and its validity in seconds.
func (s *Service) OpenSession(ctx context.Context, tx *store.Tx, userID string) (token string, expiresIn int, err error) {
	tokens, _, err := s.openSession(ctx, tx, userID, notRenewable, proof{amr: Methods{factor.AMRPassword}, at: tx.Now()})
	return tokens.AccessToken, int(tokens.ExpiresIn), err
}

// proof is what a sign-in has proved.
type proof struct {
	amr      Methods
	at       store.Time  // of the latest proof of a method that is not on trial; 0: none, so that the session is not fresh
	factorAt *store.Time // of the latest proof of a second factor; nil: none
	byLink   bool        // a link of the operator stood for the password
}

// openSession starts a session.
func (s *Service) openSession(ctx context.Context, tx *store.Tx, userID string, kind sessionKind, p proof) (tokens Tokens, id string, err error) {
	device, now := endpoint.Of(ctx).DeviceID, tx.Now()
	row := Session{ID: store.NewID(), UserID: userID, DeviceID: device, CreatedAt: now, LastUsedAt: now, AuthenticatedAt: p.at,
		AMR: p.amr, ACR: p.amr.acr(), factorAt: p.factorAt}
	tokens, expires, err := s.mint(&row, now, newPair())
	if err != nil {
		return Tokens{}, "", err
	}
	if kind == notRenewable {
		tokens.RefreshToken, row.ExpiresAt = "", expires
	}
	_, err = tx.Exec(ctx, insertSessionRow, row.ID, userID, device, now, now, row.ExpiresAt, row.AMR, row.AuthenticatedAt, row.factorAt)
	if err != nil {
		return Tokens{}, "", err
	}
	if kind == renewable {
		if err := insertRefreshToken(ctx, tx, tokenHash(tokens.RefreshToken), row.ID, s.refreshUntil(row, now)); err != nil {
			return Tokens{}, "", err
		}
	}
	if err := s.recordDevice(ctx, tx, userID, device); err != nil {
		return Tokens{}, "", err
	}
	if err := s.endExcess(ctx, tx, row); err != nil {
		return Tokens{}, "", err
	}
	if err := s.updateDuty(ctx, tx, userID); err != nil {
		return Tokens{}, "", err
	}
	action := actionOpen
	if p.byLink {
		action = actionOpenByLink
	}
	tx.Audit(store.AuditEntry{Actor: userID, Action: action, RecType: access.Sessions.Name, RecID: row.ID, After: auditedSession(row)})
	return tokens, row.ID, nil
}

// logout ends the caller's session.
func (s *Service) logout(ctx context.Context, _ endpoint.None) (endpoint.Message, error) {
	caller := access.From(ctx)
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		row, err := sessionTable.GetUnchecked(ctx, tx, caller.SessionID)
		if err != nil {
			return err
		}
		return s.endSession(ctx, tx, caller.UserID, row, endedByLogout)
	})
	return endpoint.Confirm(ctx, s.options.Texts, "auth.signed_out"), err
}

// endOneSession ends one session of a user. The caller is the user, or may delete the session. It returns apierr.UserNotFound,
// apierr.NoAccess and apierr.SessionNotFound.
func (s *Service) endOneSession(ctx context.Context, in sessionInput) (endpoint.Message, error) {
	caller := access.From(ctx)
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		if err := userExists(ctx, tx, in.UserID); err != nil {
			return err
		}
		row, err := sessionTable.Get(ctx, tx, in.SessionID, access.Delete)
		switch {
		case err != nil:
			return err
		case row.UserID != in.UserID || row.ended != nil || tx.Now() >= row.ExpiresAt:
			return apierr.SessionNotFound
		}
		if row.UserID != caller.UserID {
			if err := endpoint.RequireAssurance(ctx, endpoint.Fresh); err != nil {
				return err
			}
		}
		// A user who ends the session of a device may have lost the device.
		if _, err := tx.Exec(ctx, deleteDeviceOfSession, row.ID); err != nil {
			return err
		}
		return s.endSession(ctx, tx, caller.UserID, row, endedByRequest)
	})
	return endpoint.Confirm(ctx, s.options.Texts, "auth.session_ended"), err
}

// sessionsOf lists the active sessions of a user. The caller is the user, or may read the sessions. It returns
// apierr.UserNotFound and apierr.NoAccess.
func (s *Service) sessionsOf(ctx context.Context, in list.OfInput) (list.Page[Session], error) {
	caller := access.From(ctx)
	if err := userExists(ctx, s.db, in.ID); err != nil {
		return list.Page[Session]{}, err
	}
	// Whole minutes, so that the totals can be cached for a minute.
	const minute = store.Time(time.Minute / time.Millisecond)
	active := list.Where{SQL: "user_id = $1 AND expires_at > $2", Args: []any{in.ID, s.db.Now() / minute * minute}}
	page, err := sessionList.Page(ctx, s.db, in.Query, active, sessionTable.Visible(caller))
	if err != nil {
		return page, err
	}
	if page.TotalUnfiltered == 0 && caller.UserID != in.ID && !caller.May(access.Sessions, access.ReadAll) {
		return list.Page[Session]{}, apierr.NoAccess
	}
	for i := range page.Data.Rows {
		page.Data.Rows[i].Current = page.Data.Rows[i].ID == caller.SessionID
	}
	return page, nil
}

// EndSessions ends all sessions of a user except one, or all when exceptID is empty. It is for changes of password or status.
func (s *Service) EndSessions(ctx context.Context, tx *store.Tx, userID, exceptID string) error {
	ended, err := store.All(ctx, tx, store.Text, updateSessionEndAll, userID, tx.Now(), endedByChange, exceptID)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, deleteChallenges, userID, exceptID); err != nil {
		return err
	}
	for _, id := range ended {
		if err := sessionProof().Audit(ctx, tx, actionEnd, id, nil); err != nil {
			return err
		}
	}
	s.Changed(tx, userID)
	return nil
}

// endSession ends a session. A session that has already ended stays as it is.
func (s *Service) endSession(ctx context.Context, tx *store.Tx, actor string, row Session, reason string) error {
	before, now := auditedSession(row), tx.Now()
	ended, err := tx.Exec(ctx, updateSessionEnd, row.ID, now, reason)
	if err != nil || ended == 0 {
		return err
	}
	row.ended = &now
	tx.Audit(store.AuditEntry{Actor: actor, Action: actionEnd, RecType: access.Sessions.Name, RecID: row.ID, Before: before, After: auditedSession(row)})
	s.Changed(tx, row.UserID)
	return nil
}

// recordDevice stores the device of a session and reports the sign-in to the listener.
func (s *Service) recordDevice(ctx context.Context, tx *store.Tx, userID, device string) error {
	var all, same int
	if err := tx.QueryRow(ctx, countDevices, userID, device).Scan(&all, &same); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, upsertDeviceRow, userID, device, tx.Now()); err != nil {
		return err
	}
	if s.options.Events == nil {
		return nil
	}
	return s.options.Events.SignedIn(ctx, tx, userID, device, all > 0 && same == 0)
}

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
	RefreshToken string `json:"refresh_token,omitzero" doc:"Valid for one refresh, which may be repeated for 20 seconds."`
	UserID       string `json:"user_id"`
	DeviceToken  string `json:"device_token,omitzero" doc:"Only after a sign-in. Send it as X-Device-Token with the next one, so that failed attempts of others do not lock this device out."`
}

// pair is the part of two tokens that does not follow from their session.
type pair struct {
	accessID string // of the access token
	refresh  string // the refresh token
}

func newPair() pair { return pair{store.NewID(), newSecret(refreshBytes)} }

// nextPair returns the pair that replaces a refresh token. It follows from the token and a key of the database, so that a repeated request
// gets the same pair, and no secret is stored. Without the key, the tokens that follow a copied one cannot be computed.
func (s *Service) nextPair(token string) pair {
	id := uuid.UUID(s.db.Keyed("next access token", []byte(token))[:16])
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80 // version 8 (RFC 9562, section 5.8)
	return pair{id.String(), base64.RawURLEncoding.EncodeToString(s.db.Keyed("next refresh token", []byte(token)))}
}

// mint returns a pair of tokens for a session and extends the session to the later expiry of the two.
func (s *Service) mint(row *Session, now store.Time, p pair) (tokens Tokens, accessUntil store.Time, err error) {
	token, accessUntil, err := s.issue(*row, now, p.accessID)
	if err != nil {
		return Tokens{}, 0, err
	}
	row.ExpiresAt = max(accessUntil, s.refreshUntil(*row, now))
	return Tokens{
		AccessToken: token, TokenType: "Bearer", ExpiresIn: int64(s.options.AccessToken / time.Second),
		RefreshToken: p.refresh, UserID: row.UserID,
	}, accessUntil, nil
}

func (s *Service) refreshUntil(row Session, now store.Time) store.Time {
	return min(now.Add(s.options.RefreshToken), row.CreatedAt.Add(maxSession))
}

// newSecret returns n random bytes as text.
func newSecret(n int) string {
	secret := make([]byte, n)
	rand.Read(secret) // never fails
	return base64.RawURLEncoding.EncodeToString(secret)
}

// isSecret reports whether a text has the form of n random bytes.
func isSecret(text string, n int) bool {
	secret, err := base64.RawURLEncoding.Strict().DecodeString(text)
	return err == nil && len(secret) == n
}

// tokenHash returns the stored hash of a refresh token. A token has 256 random bits, so that a fast hash is enough.
func tokenHash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// refresh exchanges a refresh token for a new pair. A second use of a token means that its answer was lost, see [Service.repeat], or that
// it was copied: then the whole session ends (RFC 9700, section 4.14.2). It returns apierr.InvalidRefresh.
func (s *Service) refresh(ctx context.Context, in refreshInput) (Tokens, error) {
	if !isSecret(in.RefreshToken, refreshBytes) {
		return Tokens{}, apierr.InvalidRefresh
	}
	hash := tokenHash(in.RefreshToken)
	var tokens Tokens
	var refused error
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		tokens, refused = Tokens{}, apierr.InvalidRefresh
		found, err := selectRefreshToken(ctx, tx, hash)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		if found.used != nil {
			again, err := s.repeat(ctx, tx, in.RefreshToken, found)
			if err != nil {
				return err
			}
			if again != nil {
				tokens, refused = *again, nil
				return nil
			}
			// Committed, although the request is rejected.
			return s.endSession(ctx, tx, found.session.UserID, found.session, endedByReuse)
		}
		now := tx.Now()
		if now >= found.expires {
			return nil
		}
		if s.isIdle(s.lastUse(found.session.ID, found.session.LastUsedAt), now) {
			return s.endSession(ctx, tx, found.session.UserID, found.session, endedByIdle)
		}
		refused = nil
		tokens, err = s.rotate(ctx, tx, in.RefreshToken, found.session)
		return err
	})
	return tokens, cmp.Or(err, refused)
}

// repeatTime is how long a refresh token that was used gets the same pair again.
const repeatTime = 20 * time.Second

// repeat returns the pair that a used refresh token was exchanged for, if it is the one that was used last, a moment ago. It returns nil for
// any other. The clocks of nodes differ a little, so that a use may seem to be in the future.
func (s *Service) repeat(ctx context.Context, tx *store.Tx, token string, found refreshToken) (*Tokens, error) {
	now, at := tx.Now(), *found.used
	if now > at.Add(repeatTime) || now < at.Add(-repeatTime) {
		return nil, nil
	}
	next := s.nextPair(token)
	successor, err := selectRefreshToken(ctx, tx, tokenHash(next.refresh))
	switch {
	case errors.Is(err, store.ErrNotFound): // the key was replaced in this moment
		return nil, nil
	case err != nil:
		return nil, err
	case successor.used != nil || now >= successor.expires:
		return nil, nil
	}
	tokens, accessUntil, err := s.mint(&found.session, at, next)
	if err != nil {
		return nil, err
	}
	tokens.ExpiresIn = max(0, int64(accessUntil-now)/1000)
	return &tokens, nil
}

// rotate replaces the tokens of a session.
func (s *Service) rotate(ctx context.Context, tx *store.Tx, used string, row Session) (Tokens, error) {
	now := tx.Now()
	before := row
	row.LastUsedAt = now
	tokens, _, err := s.mint(&row, now, s.nextPair(used))
	if err != nil {
		return Tokens{}, err
	}
	if _, err := tx.Exec(ctx, updateRefreshUsed, tokenHash(used), now); err != nil {
		return Tokens{}, err
	}
	if _, err := tx.Exec(ctx, updateSessionUse, row.ID, row.LastUsedAt, row.ExpiresAt); err != nil {
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
