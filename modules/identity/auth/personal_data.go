package auth

import (
	"context"
	"errors"

	"kontor/modules/kit/personal"
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
		{Name: "sign_in_undos", Holds: "hashes of the links that remove a new method of sign-in, for a day; they are not exported", Unexported: "A hash of a secret must not leave the system."},
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
			for _, statement := range []string{deleteTokensOfSession, deleteSession} {
				if _, err := tx.Exec(ctx, statement, id); err != nil {
					return err
				}
			}
			tx.Audit(store.AuditEntry{Actor: personal.Actor(ctx), Action: personal.Action, RecType: sessionTable.Type.Name, RecID: id})
			return nil
		}),
		personal.EachID(selectLoginKeys, subject.ID, func(ctx context.Context, tx *store.Tx, key string) error {
			return s.eraseFailures(ctx, tx, s.newAttempt(anywhere(ctx), "", key))
		}))
}

func (s *Service) eraseUser(ctx context.Context, tx *store.Tx, userID string) error {
	before, err := readPassword(ctx, tx, userID)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	if err == nil {
		if _, err := tx.Exec(ctx, deletePassword, userID); err != nil {
			return err
		}
		if err := passwordProof.Audit(ctx, tx, personal.Action, userID, before); err != nil {
			return err
		}
	}
	for _, statement := range []string{deleteDevices, deleteDeviceTokens, deleteAllNetworks, deleteChallengesOf, deleteUndosOf, deleteDuty} {
		if _, err := tx.Exec(ctx, statement, userID); err != nil {
			return err
		}
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
	for _, statement := range []string{deleteFailures, deleteTriedValues} {
		if _, err := tx.Exec(ctx, statement, tried.who); err != nil {
			return err
		}
	}
	return nil
}
