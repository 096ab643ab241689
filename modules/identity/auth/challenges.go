package auth

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"time"

	"github.com/go-json-experiment/json"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

const (
	challengeBytes    = 32
	challengeFor      = 5 * time.Minute
	challengeAttempts = 5
)

// sealedChallenges are the values that a rotation of the master key seals again.
var sealedChallenges = store.SealedColumn{
	Table: "auth_challenges", Column: "data",
	Select: `SELECT id, id, data FROM auth_challenges WHERE data NOT LIKE $1 AND id > $2 ORDER BY id LIMIT $3`,
	Update: `UPDATE auth_challenges SET data = $3 WHERE id = $1 AND data = $2`,
}

// purpose is what a challenge is for. A token of one purpose is unknown to the others.
type purpose string

const (
	forSignIn purpose = "sign_in"
	forStepUp purpose = "step_up"
	forEnrol  purpose = "enrol"
)

// challenge is an open step of a sign-in, of a step-up or of an enrolment.
type challenge struct {
	id        string // hash of the token
	purpose   purpose
	userID    string // empty: a passkey will name the user
	sessionID string // empty: a sign-in
	device    string
	sealed    string
	data      challengeData
}

// challengeData is the sealed part of a challenge.
type challengeData struct {
	AMR     Methods    `json:"amr,omitzero"`     // what the sign-in has proved so far
	At      store.Time `json:"at,omitzero"`      // when it proved an older method; 0: not yet
	ByLink  bool       `json:"by_link,omitzero"` // the first step was a link of the operator
	Session []byte     `json:"session,omitzero"` // for Factors.Verify, or of an enrolment
}

// newChallenge returns a challenge of the request's device with its token. It encrypts, so callers must not be in a transaction.
func (s *Service) newChallenge(ctx context.Context, p purpose, userID string, data challengeData) (c challenge, token string, err error) {
	secret := make([]byte, challengeBytes)
	rand.Read(secret) // does not fail: it would end the program
	token = base64.RawURLEncoding.EncodeToString(secret)
	c = challenge{id: tokenHash(token), purpose: p, userID: userID, device: s.challengeDevice(ctx), data: data}
	if p != forSignIn {
		c.sessionID = access.From(ctx).SessionID
	}
	plain, err := json.Marshal(data)
	if err != nil {
		return challenge{}, "", err
	}
	c.sealed, err = s.db.Seal("auth_challenges", "data", c.id, plain)
	return c, token, err
}

// challengeDevice returns the keyed hash of the request's X-Device-ID. Networks are not compared: a telephone changes them, and
// the same client may use IPv4 and IPv6 by turns.
func (s *Service) challengeDevice(ctx context.Context) string {
	return hex.EncodeToString(s.db.Keyed("challenge device", []byte(endpoint.Of(ctx).DeviceID)))
}

// openChallenge returns the open challenge of a token. It returns apierr.ChallengeExpired for every other token, for that of
// another purpose, device or session, and for a challenge that is used, expired or out of attempts.
func (s *Service) openChallenge(ctx context.Context, p purpose, token string) (challenge, error) {
	secret, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(secret) != challengeBytes {
		return challenge{}, apierr.ChallengeExpired
	}
	c := challenge{id: tokenHash(token), purpose: p, device: s.challengeDevice(ctx)}
	if p != forSignIn {
		c.sessionID = access.From(ctx).SessionID
	}
	err = s.db.QueryRow(ctx, selectChallenge, c.key(s.db.Now())...).Scan(&c.userID, &c.sealed)
	if errors.Is(err, store.ErrNotFound) {
		return challenge{}, apierr.ChallengeExpired
	}
	if err != nil {
		return challenge{}, err
	}
	plain, err := s.db.Unseal("auth_challenges", "data", c.id, c.sealed)
	if err == nil {
		err = json.Unmarshal(plain, &c.data)
	}
	return c, err
}

// key returns the arguments of the condition for an open challenge.
func (c challenge) key(now store.Time) []any {
	return []any{c.id, string(c.purpose), c.sessionID, c.device, now, now.Add(challengeFor), challengeAttempts}
}

const (
	// A challenge from the future was made before the clock was set back. It is not open: it would be for as long.
	isOpenChallenge = `
		id = $1 AND purpose = $2 AND session_id = $3 AND device = $4 AND used_at IS NULL
		AND expires_at > $5 AND expires_at <= $6 AND attempts `

	selectChallenge = `SELECT user_id, data FROM auth_challenges WHERE ` + isOpenChallenge + `< $7`

	countChallenge = `UPDATE auth_challenges SET attempts = attempts + 1 WHERE ` + isOpenChallenge + `< $7`

	// The last attempt is counted already.
	useChallenge = `UPDATE auth_challenges SET used_at = $5 WHERE ` + isOpenChallenge + `<= $7`

	insertChallengeRow = `
		INSERT INTO auth_challenges (id, purpose, user_id, session_id, device, data, created_at, expires_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`

	deleteChallenges = `DELETE FROM auth_challenges WHERE user_id = $1 AND (session_id = '' OR session_id <> $2)`
)

func (c challenge) insert(ctx context.Context, tx *store.Tx) error {
	now := tx.Now()
	_, err := tx.Exec(ctx, insertChallengeRow, c.id, string(c.purpose), c.userID, c.sessionID, c.device, c.sealed, now, now.Add(challengeFor))
	return err
}

// change runs a statement on the open challenge. It returns apierr.ChallengeExpired if it is no longer open.
func (c challenge) change(ctx context.Context, tx *store.Tx, statement string) error {
	changed, err := tx.Exec(ctx, statement, c.key(tx.Now())...)
	if err == nil && changed == 0 {
		err = apierr.ChallengeExpired
	}
	return err
}

// NewChallenge returns the token of an enrolment, bound to the session and the device of the request. store runs in the
// transaction that begins the enrolment.
func (s *Service) NewChallenge(ctx context.Context, userID string, data []byte) (token string, store func(ctx context.Context, tx *store.Tx) error, err error) {
	c, token, err := s.newChallenge(ctx, forEnrol, userID, challengeData{Session: data})
	return token, c.insert, err
}

// TakeChallenge returns the data of an enrolment and ends it: another confirmation needs another token. It returns
// apierr.InvalidInput for a token that is not open.
func (s *Service) TakeChallenge(ctx context.Context, userID, token string) (data []byte, err error) {
	c, err := s.openChallenge(ctx, forEnrol, token)
	if err == nil && c.userID != userID {
		err = apierr.ChallengeExpired
	}
	if err == nil {
		err = s.db.InTx(ctx, func(tx *store.Tx) error { return c.change(ctx, tx, useChallenge) })
	}
	if errors.Is(err, apierr.ChallengeExpired) {
		err = apierr.Invalid("token", "invalid.challenge")
	}
	return c.data.Session, err
}

// beginChallenge stores a challenge in a transaction of its own.
func (s *Service) beginChallenge(ctx context.Context, c challenge) error {
	return s.db.InTx(ctx, func(tx *store.Tx) error { return c.insert(ctx, tx) })
}
