package auth

import (
	"context"
	"encoding/hex"
	"errors"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"kontor/modules/kit/factor"
	"kontor/modules/kit/records"
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
	token = newSecret(challengeBytes)
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
	if !isSecret(token, challengeBytes) {
		return challenge{}, apierr.ChallengeExpired
	}
	c := challenge{id: tokenHash(token), purpose: p, device: s.challengeDevice(ctx)}
	if p != forSignIn {
		c.sessionID = access.From(ctx).SessionID
	}
	err := s.db.QueryRow(ctx, selectChallenge, c.key(s.db.Now())...).Scan(&c.userID, &c.sealed)
	if err != nil {
		return challenge{}, records.OrMissing(err, apierr.ChallengeExpired)
	}
	plain, err := s.db.Unseal("auth_challenges", "data", c.id, c.sealed)
	if err == nil {
		err = json.Unmarshal(plain, &c.data)
	}
	return c, err
}

// key returns the arguments of the condition for an open challenge.
func (c challenge) key(now store.Time) []any {
	return []any{c.id, string(c.purpose), c.sessionID, c.device, now, challengeAttempts}
}

const (
	isOpenChallenge = `
		id = $1 AND purpose = $2 AND session_id = $3 AND device = $4 AND used_at IS NULL
		AND expires_at > $5 AND attempts `

	selectChallenge = `SELECT user_id, data FROM auth_challenges WHERE ` + isOpenChallenge + `< $6`

	countChallenge = `UPDATE auth_challenges SET attempts = attempts + 1 WHERE ` + isOpenChallenge + `< $6`

	// The last attempt is counted already.
	useChallenge = `UPDATE auth_challenges SET used_at = $5 WHERE ` + isOpenChallenge + `<= $6`

	insertChallengeRow = `
		INSERT INTO auth_challenges (id, purpose, user_id, session_id, device, data, created_at, expires_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`

	deleteChallenges = `DELETE FROM auth_challenges WHERE user_id = $1 AND (session_id = '' OR session_id <> $2)`
)

func (c challenge) insert(ctx context.Context, tx *store.Tx) error {
	now := tx.Now()
	return tx.Run(ctx, insertChallengeRow, c.id, string(c.purpose), c.userID, c.sessionID, c.device, c.sealed, now, now.Add(challengeFor))
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

// NextStep is the response to a sign-in that needs a second factor. It carries no access.
type NextStep struct {
	Message   string          `json:"message"`
	Token     string          `json:"token" doc:"For the next request, from the same device, at most five times."`
	ExpiresIn int64           `json:"expires_in" doc:"Seconds until the token ends."`
	Methods   []string        `json:"methods" example:"totp,recovery_code" doc:"What can complete the sign-in: passkey, totp or recovery_code."`
	Passkey   *PasskeyRequest `json:"passkey,omitzero" example:"-" doc:"Only if the user has a passkey."`
}

// PasskeyRequest asks a browser for a passkey.
type PasskeyRequest struct {
	Options jsontext.Value `json:"options" type:"object" example:"{\"challenge\":\"aBd3snOj5W6ItZJIJAXOTg\",\"timeout\":300000,\"rpId\":\"kontor.example\",\"userVerification\":\"required\"}" doc:"For navigator.credentials.get (WebAuthn)."`
}

// nextStep returns the next step of a sign-in that has proved amr so far, and an older method at a time, with the challenge that the
// caller must insert. It returns nil if nothing is missing.
func (s *Service) nextStep(ctx context.Context, userID string, amr Methods, at store.Time) (*NextStep, challenge, error) {
	return s.stepAfter(ctx, userID, challengeData{AMR: amr, At: at})
}

// stepAfter is [Service.nextStep] with what the challenge keeps of the first step.
func (s *Service) stepAfter(ctx context.Context, userID string, data challengeData) (*NextStep, challenge, error) {
	if data.AMR.acr() == access.TwoFactors {
		return nil, challenge{}, nil
	}
	methods, err := s.factorMethods(ctx, s.db, userID)
	if err != nil || len(methods) == 0 {
		return nil, challenge{}, err
	}
	step := &NextStep{
		Message: endpoint.Confirm(ctx, s.options.Texts, "auth.next_step").Message, Methods: methods, ExpiresIn: int64(challengeFor / time.Second),
	}
	if slices.Contains(methods, factor.Passkey) {
		step.Passkey = &PasskeyRequest{}
		if step.Passkey.Options, data.Session, err = s.Peers.Factors.PasskeyOptions(ctx, userID); err != nil {
			return nil, challenge{}, err
		}
	}
	c, token, err := s.newChallenge(ctx, forSignIn, userID, data)
	step.Token = token
	return step, c, err
}

// NextStep begins the second step of a sign-in with a provider, which has authenticated the user by its own methods (amr, RFC 8176)
// at a time. The time 0 is for an unknown one, and for an account that is on trial. NextStep returns nil if nothing is missing.
// Callers must not be in a transaction.
func (s *Service) NextStep(ctx context.Context, userID string, amr []string, at store.Time) (*NextStep, error) {
	step, c, err := s.nextStep(ctx, userID, federated(amr), at)
	if err != nil || step == nil {
		return nil, err
	}
	return step, s.beginChallenge(ctx, c)
}

// OpenFederatedSession opens a session for a user whom a provider has authenticated at a time. With the time 0, which means unknown
// or an account on trial, the session is not fresh before the user authenticates again. It returns apierr.InvalidCredentials for an
// unknown or disabled user. It returns apierr.Unavailable if amr is not enough for a user with a second factor.
func (s *Service) OpenFederatedSession(ctx context.Context, tx *store.Tx, userID string, amr []string, at store.Time) (Tokens, error) {
	proved := federated(amr)
	if err := s.requireNoStep(ctx, tx, userID, proved); err != nil {
		return Tokens{}, err
	}
	at = min(at, tx.Now())
	p := proof{amr: proved, at: at}
	if proved.provesFactor() {
		p.factorAt = &at
	}
	return s.openAfter(ctx, tx, s.newAttempt(ctx, userID, ""), p)
}

// requireNoStep returns apierr.Unavailable if a sign-in needs a second factor that was enrolled since its [NextStep] was decided.
func (s *Service) requireNoStep(ctx context.Context, tx *store.Tx, userID string, amr Methods) error {
	if amr.acr() == access.TwoFactors {
		return nil
	}
	methods, err := s.factorMethods(ctx, tx, userID)
	if err == nil && len(methods) > 0 {
		err = apierr.Unavailable
	}
	return err
}

// openAfter opens a session after the last step of a sign-in, and stores network and device of the attempt as known.
func (s *Service) openAfter(ctx context.Context, tx *store.Tx, tried attempt, p proof) (Tokens, error) {
	user, err := selectAccount(ctx, tx, login{tried.user, tried.user})
	if err != nil {
		return Tokens{}, err
	}
	if user.id == "" || user.id != tried.user || user.status == "disabled" {
		return Tokens{}, apierr.InvalidCredentials
	}
	if err := s.Peers.Users.SetLastLogin(ctx, tx, user.id); err != nil {
		return Tokens{}, err
	}
	tokens, session, err := s.openSession(ctx, tx, user.id, renewable, p)
	if err != nil {
		return Tokens{}, err
	}
	if err := rememberNetwork(ctx, tx, tried); err != nil {
		return Tokens{}, err
	}
	tokens.DeviceToken, err = s.renewDevice(ctx, tx, tried, session)
	return tokens, err
}

// signInFactor opens a session for the token of a [NextStep] or of a passkey request and a right answer. It returns
// apierr.ChallengeExpired, apierr.InvalidFactor and apierr.LockedOut.
func (s *Service) signInFactor(ctx context.Context, in signInFactorInput) (Tokens, error) {
	var tokens Tokens
	err := s.answerChallenge(ctx, forSignIn, in.Token, in.answer(), func(ctx context.Context, tx *store.Tx, c challenge, accepted factor.Accepted) error {
		tried := s.newAttempt(ctx, accepted.UserID, "")
		p, err := s.completed(ctx, tx, c, accepted)
		if err != nil {
			return err
		}
		tokens, err = s.openAfter(ctx, tx, tried, p)
		if errors.Is(err, apierr.InvalidCredentials) {
			reportFailure(ctx, endpoint.FailedSignIn, actionSignInFailed, tried, accepted.UserID)
		}
		return err
	})
	return tokens, err
}

// completed returns what a sign-in has proved with its last step. A factor on trial does not make the session fresh by itself.
func (s *Service) completed(ctx context.Context, tx *store.Tx, c challenge, accepted factor.Accepted) (p proof, err error) {
	p = proof{amr: c.data.AMR.with(accepted.AMR...), at: c.data.At, byLink: c.data.ByLink}
	if !accepted.OnTrial {
		p.at = tx.Now()
	}
	p.factorAt, err = s.factorTime(ctx, tx, accepted)
	return p, err
}

// answerChallenge counts an attempt for a challenge and its user, evaluates the answer, and runs accept in the transaction that
// uses up challenge and answer.
func (s *Service) answerChallenge(ctx context.Context, p purpose, token string, answer factor.Answer,
	accept func(ctx context.Context, tx *store.Tx, c challenge, accepted factor.Accepted) error,
) error {
	c, err := s.openChallenge(ctx, p, token)
	if err != nil {
		return err
	}
	if c.userID == "" && len(answer.Passkey) == 0 {
		return apierr.InvalidFactor // only a passkey names its user
	}
	tried := s.newFactorAttempt(ctx, c.userID)
	return s.tryFactor(ctx, tried, &c, answer, func(ctx context.Context, tx *store.Tx, accepted factor.Accepted) error {
		if err := c.change(ctx, tx, useChallenge); err != nil {
			return err
		}
		return accept(ctx, tx, c, accepted)
	})
}

// tryFactor reserves an attempt, evaluates the answer, and runs accept in the transaction that uses the answer up. c is nil for an
// answer without a challenge.
func (s *Service) tryFactor(ctx context.Context, tried attempt, c *challenge, answer factor.Answer,
	accept func(ctx context.Context, tx *store.Tx, accepted factor.Accepted) error,
) error {
	release, err := s.acquireTurn(tried)
	if err != nil {
		return err
	}
	defer release()
	used, err := s.reserveFactor(ctx, tried, c)
	if err != nil {
		reportLockout(ctx, err, tried)
		return err
	}
	var session []byte
	if c != nil {
		session = c.data.Session
	}
	accepted, err := s.verifyFactor(ctx, tried, session, answer)
	if err != nil {
		return err
	}
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		if err := accepted.Use(ctx, tx); err != nil {
			return err
		}
		if err := forgetFailures(ctx, tx, tried, used); err != nil {
			return err
		}
		return accept(ctx, tx, accepted)
	})
	return s.factorRefused(ctx, tried, err)
}

// reserveFactor counts an attempt for the challenge and, if it names one, for its user.
func (s *Service) reserveFactor(ctx context.Context, tried attempt, c *challenge) (used budgetSet, err error) {
	var wait time.Duration
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		if c != nil {
			if err := c.change(ctx, tx, countChallenge); err != nil {
				return err
			}
		}
		if tried.user == "" {
			return nil
		}
		if used, wait, err = s.reserveIn(ctx, tx, tried); err == nil && wait > 0 {
			return apierr.LockedOut.RetryAfter(wait) // the challenge keeps its attempt
		}
		return err
	})
	return used, err
}
