package auth

import (
	"context"
	"time"

	"kontor/modules/kit/personal"
	"kontor/modules/kit/records"
	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/store"
)

// PersonalData lists the tables of the module.
func (s *Service) PersonalData() []personal.Table {
	return []personal.Table{
		{Name: "passwords", Holds: "the hash of a password; it is not exported", Unexported: "A hash of a secret must not leave the system."},
		{Name: "sessions", Holds: "times and devices of sign-ins", Sections: []string{"sessions"}},
		{Name: "refresh_tokens", Holds: "hashes of the tokens of a session; they are not exported", Unexported: "A hash of a secret must not leave the system."},
		{Name: "devices", Holds: "the devices from which a user has signed in", Sections: []string{"devices"}},
		{Name: "device_tokens", Holds: "known devices", Unexported: "The devices are exported; a hash of a secret must not leave the system."},
		{Name: "known_networks", Holds: "keyed hashes of known networks", Unexported: "Digests say nothing to their subject."},
		{Name: "sign_in_failures", Holds: "failures to sign in, under keyed hashes of the user and of sign-in names", Unexported: "Digests say nothing to their subject."},
		{Name: "sign_in_values", Holds: "keyed hashes of tried sign-in names, for an hour", Unexported: "Digests say nothing to their subject."},
		{Name: "auth_challenges", Holds: "sealed data of sign-ins that have begun, for minutes", Unexported: "It lives for minutes, within one sign-in."},
		{Name: "sign_in_undos", Holds: "hashes of the links that remove a new method of sign-in or restore a deleted credential, and that credential, for a day; they are not exported", Unexported: "A hash of a secret must not leave the system."},
		{Name: "factor_duties", Holds: "since when a user must have a second factor; it is not exported", Unexported: "The user reads it as factor_required_by, as long as it matters."},
		{Name: "signing_keys", Why: "It holds the keys that sign access tokens."},
		{Name: "api_keys", Why: "Keys belong to programs; the name is a note of administrators."},
	}
}

const selectDevicesOf = `
	SELECT device_id, first_use_at, last_use_at FROM devices
	WHERE user_id = $1 AND device_id > $2 ORDER BY device_id LIMIT $3`

// exportedDevice is a device in an export.
type exportedDevice struct {
	DeviceID   string     `json:"device_id"`
	FirstUseAt store.Time `json:"first_use_at"`
	LastUseAt  store.Time `json:"last_use_at"`
}

// PersonalSections declares the sessions and devices of a user.
func (s *Service) PersonalSections() []personal.Section {
	return []personal.Section{
		personal.Records(personal.About{Name: "sessions", Kind: personal.User, Endpoint: "GET /v1/users/{id}/sessions"}, personal.Of[Session]{
			Table: &sessionTable, All: access.ReadAll, Condition: "sessions.user_id = $2",
			Current: func(r Session, now store.Time) bool { return r.ended == nil && r.ExpiresAt > now },
			Show: func(ctx context.Context, _ store.Querier, r Session) (any, error) {
				r.Current = r.ID == access.From(ctx).SessionID
				return r, nil
			},
		}),
		personal.Own(personal.About{Name: "devices", Kind: personal.User, Rule: personal.OwnUser},
			personal.Query(selectDevicesOf, func(row store.Scanner) (d exportedDevice, key string, err error) {
				err = row.Scan(&d.DeviceID, &d.FirstUseAt, &d.LastUseAt)
				return d, d.DeviceID, err
			}), nil),
	}
}

const (
	selectSessionIDs = `SELECT id FROM sessions WHERE user_id = $1 AND id > $2 ORDER BY id LIMIT $3`

	deleteTokensOfSession = `DELETE FROM refresh_tokens WHERE session_id = $1`

	deleteSession = `DELETE FROM sessions WHERE id = $1`

	deletePassword = `DELETE FROM passwords WHERE user_id = $1`

	deleteChallengesOf = `DELETE FROM auth_challenges WHERE user_id = $1`

	deleteDevices = `DELETE FROM devices WHERE user_id = $1`

	deleteAllNetworks = `DELETE FROM known_networks WHERE user_id = $1`

	deleteTriedValues = `DELETE FROM sign_in_values WHERE subject = $1`

	selectLoginKeys = `SELECT value_key FROM user_credentials WHERE user_id = $1 AND value_key > $2 ORDER BY value_key LIMIT $3`
)

// ErasePerson deletes password, sessions, devices and failures of a user. It must run before the credentials are deleted.
func (s *Service) ErasePerson(ctx context.Context, tx *store.Tx, subject personal.Subject, cursor string) (string, error) {
	if subject.Kind != personal.User {
		return "", nil
	}
	return personal.Run(ctx, tx, cursor,
		personal.Once(func(ctx context.Context, tx *store.Tx) error { return s.eraseUser(ctx, tx, subject.ID) }),
		personal.EachID(selectSessionIDs, subject.ID, func(ctx context.Context, tx *store.Tx, id string) error {
			tx.Audit(store.AuditEntry{Actor: personal.Actor(ctx), Action: personal.Action, RecType: sessionTable.Type.Name, RecID: id})
			return tx.RunEach(ctx, id, deleteTokensOfSession, deleteSession)
		}),
		personal.EachID(selectLoginKeys, subject.ID, func(ctx context.Context, tx *store.Tx, key string) error {
			return s.eraseFailures(ctx, tx, s.newAttempt(anywhere(ctx), "", key))
		}))
}

func (s *Service) eraseUser(ctx context.Context, tx *store.Tx, userID string) error {
	if err := store.Optional(passwordProof.ChangeRow(ctx, tx, personal.Action, userID, deletePassword, userID)); err != nil {
		return err
	}
	if err := tx.RunEach(ctx, userID, deleteDevices, deleteDeviceTokens, deleteAllNetworks, deleteChallengesOf, deleteUndosOf, deleteDuty); err != nil {
		return err
	}
	for _, tried := range []attempt{s.newAttempt(anywhere(ctx), userID, ""), s.newFactorAttempt(anywhere(ctx), userID)} {
		if err := s.eraseFailures(ctx, tx, tried); err != nil {
			return err
		}
	}
	return nil
}

// anywhere returns a context for attempts of no certain network and device.
func anywhere(ctx context.Context) context.Context { return endpoint.With(ctx, &endpoint.Info{}) }

// eraseFailures deletes the failures of the user or the sign-in name of an attempt. Those of a pair with a network are deleted
// after their time: the network is not known.
func (s *Service) eraseFailures(ctx context.Context, tx *store.Tx, tried attempt) error {
	return tx.RunEach(ctx, tried.who, deleteFailures, deleteTriedValues)
}

// Proofs returns how the audit trail digests the records of this module: passwords, sessions and API keys. The digests do not
// cover refresh tokens and devices, which belong to a session, counts of failed attempts, the reason why a session ended, and
// the last use of keys and sessions. Old sessions are deleted without an entry.
func Proofs() []records.Proof {
	return []records.Proof{passwordProof, sessionProof(), keyProof}
}

var passwordProof = records.Proof{Type: "passwords", From: "passwords", Key: "user_id", Read: readPassword}

// storedPassword is the hash of a password, which the API does not show.
type storedPassword struct {
	UserID    string     `json:"user_id"`
	Hash      string     `json:"hash"`
	ChangedAt store.Time `json:"changed_at"`
}

const selectPasswordRow = `SELECT user_id, hash, changed_at FROM passwords WHERE user_id = $1`

func readPassword(ctx context.Context, q store.Querier, userID string) (store.Record, error) {
	var s storedPassword
	err := q.QueryRow(ctx, selectPasswordRow, userID).Scan(&s.UserID, &s.Hash, &s.ChangedAt)
	return store.Record{Stored: s}, err
}

func sessionProof() records.Proof {
	p := sessionTable.Proof()
	p.Outside, p.Expires = map[string]string{"current": "false", "last_used_at": `"` + store.Time(0).String() + `"`}, true
	return p
}

// auditedSession returns a session as the audit trail digests it.
func auditedSession(s Session) store.Record {
	s.Current, s.LastUsedAt = false, 0
	return store.Record{Answer: s, Stored: map[string]*store.Time{"ended_at": s.ended, "factor_at": s.factorAt}}
}

var keyProof = records.Proof{
	Type: keyTable.Type.Name, From: "api_keys", Key: "id", Read: readKeyRow, Outside: map[string]string{"last_used_at": "null"},
	Changes: &store.ChangeRule{Omit: []string{"last_used_at"}},
}

const selectKeyHash = `SELECT key_hash FROM api_keys WHERE id = $1`

// storedKey holds the columns of an API key that the API does not show.
type storedKey struct {
	Hash    string `json:"key_hash"`
	Version int64  `json:"version"`
}

func readKeyRow(ctx context.Context, q store.Querier, id string) (store.Record, error) {
	k, err := scanKey(q.QueryRow(ctx, `SELECT `+keyColumns+` FROM api_keys WHERE id = $1`, id))
	if err != nil {
		return store.Record{}, err
	}
	k.LastUsedAt = nil
	s := storedKey{Version: k.version}
	err = q.QueryRow(ctx, selectKeyHash, id).Scan(&s.Hash)
	return store.Record{Answer: k, Stored: s}, err
}

// How long rows are kept that are no longer used.
const (
	keepSessions = 30 * 24 * time.Hour  // after their end, for investigations
	keepDevices  = 400 * 24 * time.Hour // after their last use
)

// purgeBatch is the number of rows that one transaction deletes, so that other writes do not wait long.
const purgeBatch = 500

const (
	purgeRefreshTokens = `
		DELETE FROM refresh_tokens WHERE token_hash IN (
			SELECT t.token_hash FROM refresh_tokens t JOIN sessions s ON s.id = t.session_id
			WHERE s.expires_at <= $1 LIMIT $2)`
	purgeSessions = `
		DELETE FROM sessions WHERE id IN (
			SELECT id FROM sessions s
			WHERE expires_at <= $1 AND NOT EXISTS (SELECT 1 FROM refresh_tokens WHERE session_id = s.id)
			ORDER BY expires_at, id LIMIT $2)`
	purgeDevices = `
		DELETE FROM devices WHERE (user_id, device_id) IN (
			SELECT user_id, device_id FROM devices WHERE last_use_at <= $1 LIMIT $2)`
	purgeFailures = `
		DELETE FROM sign_in_failures WHERE subject IN (
			SELECT subject FROM sign_in_failures WHERE last_at <= $1 LIMIT $2)`
	purgeKnownNetworks = `
		DELETE FROM known_networks WHERE subject IN (
			SELECT subject FROM known_networks WHERE last_success_at <= $1 LIMIT $2)`
	purgeDeviceTokens = `
		DELETE FROM device_tokens WHERE id IN (
			SELECT id FROM device_tokens WHERE expires_at <= $1 LIMIT $2)`
	purgeChallenges = `
		DELETE FROM auth_challenges WHERE id IN (
			SELECT id FROM auth_challenges WHERE expires_at <= $1 LIMIT $2)`
	purgeUndos = `
		DELETE FROM sign_in_undos WHERE id IN (
			SELECT id FROM sign_in_undos WHERE expires_at <= $1 LIMIT $2)`
	purgeValues = `
		DELETE FROM sign_in_values WHERE (network, subject) IN (
			SELECT network, subject FROM sign_in_values WHERE at <= $1 LIMIT $2)`
)

// Purge deletes rows that are no longer used: sessions that ended long ago with their tokens, unused devices, and expired
// failures. Call it about once an hour.
func (s *Service) Purge(ctx context.Context) error {
	for _, step := range []struct {
		statement string
		keep      time.Duration
	}{
		{purgeRefreshTokens, keepSessions},
		{purgeSessions, keepSessions},
		{purgeDevices, keepDevices},
		{purgeFailures, forgetAfter},
		{purgeValues, valuesWindow},
		{purgeKnownNetworks, networkKnownFor},
		{purgeDeviceTokens, 0},
		{purgeChallenges, 0},
		{purgeUndos, 0},
	} {
		err := s.db.InBatches(ctx, purgeBatch, func(tx *store.Tx) (int64, error) {
			return tx.Exec(ctx, step.statement, tx.Now().Add(-step.keep), purgeBatch)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
