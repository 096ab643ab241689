package auth

import (
	"context"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"kontor/store"
)

// Guesses from other networks must not lock a user out. Networks from which the user has signed in recently, and devices with
// a device token, have budgets of their own, which no other client can use up (OWASP: device cookies).
const (
	// networkKnownFor is the time after the last success for which a network is known.
	networkKnownFor = 30 * 24 * time.Hour

	// deviceFor is the validity of a device token after its last use.
	deviceFor = 180 * 24 * time.Hour

	// maxDevices is the number of device tokens of a user. A further one replaces the token that was unused for longest.
	maxDevices = 20
)

// device is a parsed device token. Its row decides whether it is still valid.
type device struct {
	id       string
	rotation int64
	subject  string // under which its attempts are counted
}

// deviceMark returns the signature of a device token for a user.
func (s *Service) deviceMark(userID, id string, rotation int64) []byte {
	return s.db.Keyed("device token", []byte(userID+" "+id+" "+strconv.FormatInt(rotation, 10)))
}

// deviceToken returns a device token: an id, a rotation and a signature that also covers the user.
func (s *Service) deviceToken(userID, id string, rotation int64) string {
	return id + "." + strconv.FormatInt(rotation, 10) + "." + base64.RawURLEncoding.EncodeToString(s.deviceMark(userID, id, rotation))
}

// parseDevice parses a device token. It returns the zero device for a malformed token and for a token of another user.
func (s *Service) parseDevice(userID, token string) device {
	const maxLength = 128
	if len(token) > maxLength || userID == "" {
		return device{}
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 || !isID(parts[0]) {
		return device{}
	}
	rotation, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil {
		return device{}
	}
	mark, err := base64.RawURLEncoding.Strict().DecodeString(parts[2])
	if err != nil || subtle.ConstantTimeCompare(mark, s.deviceMark(userID, parts[0], rotation)) != 1 {
		return device{}
	}
	return device{id: parts[0], rotation: rotation, subject: hex.EncodeToString(s.db.Keyed("sign-in device", []byte(parts[0])))}
}

const (
	selectKnownNetwork = `SELECT count(*) FROM known_networks WHERE subject = $1 AND last_success_at > $2`

	upsertKnownNetwork = `
		INSERT INTO known_networks (subject, user_id, last_success_at) VALUES ($1, $2, $3)
		ON CONFLICT (subject) DO UPDATE SET last_success_at = excluded.last_success_at`

	deleteKnownNetworks = `DELETE FROM known_networks WHERE user_id = $1 AND subject <> $2`

	selectDeviceToken = `
		SELECT count(*) FROM device_tokens WHERE id = $1 AND user_id = $2 AND rotation = $3 AND expires_at > $4`

	rotateDeviceToken = `
		UPDATE device_tokens SET rotation = rotation + 1, session_id = $4, last_use_at = $5, expires_at = $6
		WHERE id = $1 AND user_id = $2 AND rotation = $3 AND expires_at > $5`

	insertDeviceToken = `
		INSERT INTO device_tokens (id, user_id, session_id, rotation, last_use_at, expires_at)
		VALUES ($1, $2, $3, $4, $5, $6)`

	deleteOldestDevice = `
		DELETE FROM device_tokens WHERE id IN (
			SELECT id FROM device_tokens WHERE user_id = $1
			ORDER BY last_use_at DESC, id DESC LIMIT $2 OFFSET $3)`

	deleteDeviceTokens = `DELETE FROM device_tokens WHERE user_id = $1`

	deleteDeviceOfSession = `DELETE FROM device_tokens WHERE session_id = $1`
)

// selectKnown reports whether the user has recently signed in from the network.
func selectKnown(ctx context.Context, q store.Querier, a attempt) (bool, error) {
	var n int
	err := q.QueryRow(ctx, selectKnownNetwork, a.known, q.Now().Add(-networkKnownFor)).Scan(&n)
	return n > 0, err
}

// selectDevice reports whether the device token of the attempt is valid.
func selectDevice(ctx context.Context, q store.Querier, a attempt) (bool, error) {
	if a.device.id == "" {
		return false, nil
	}
	var n int
	err := q.QueryRow(ctx, selectDeviceToken, a.device.id, a.user, a.device.rotation, q.Now()).Scan(&n)
	return n > 0, err
}

// rememberNetwork stores the network of the attempt as known to the user.
func rememberNetwork(ctx context.Context, tx *store.Tx, a attempt) error {
	_, err := tx.Exec(ctx, upsertKnownNetwork, a.known, a.user, tx.Now())
	return err
}

// renewDevice returns a new device token for a sign-in. It replaces the token of the attempt if that is valid.
func (s *Service) renewDevice(ctx context.Context, tx *store.Tx, a attempt, sessionID string) (token string, err error) {
	now := tx.Now()
	if a.device.id != "" {
		changed, err := tx.Exec(ctx, rotateDeviceToken, a.device.id, a.user, a.device.rotation, sessionID, now, now.Add(deviceFor))
		if err != nil {
			return "", err
		}
		if changed > 0 {
			return s.deviceToken(a.user, a.device.id, a.device.rotation+1), nil
		}
	}
	id := store.NewID()
	if _, err := tx.Exec(ctx, insertDeviceToken, id, a.user, sessionID, 1, now, now.Add(deviceFor)); err != nil {
		return "", err
	}
	_, err = tx.Exec(ctx, deleteOldestDevice, a.user, purgeBatch, maxDevices)
	return s.deviceToken(a.user, id, 1), err
}

// forgetKnownClients revokes the device tokens of a user and deletes their known networks except that of the request. Others
// may have signed in with the old password.
func (s *Service) forgetKnownClients(ctx context.Context, tx *store.Tx, userID string) error {
	if _, err := tx.Exec(ctx, deleteDeviceTokens, userID); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, deleteKnownNetworks, userID, s.newAttempt(ctx, userID, "").known)
	return err
}

// TrustNetwork stores the network of the request as known to the user. It is for callers that have authenticated the user by
// other means than the password.
func (s *Service) TrustNetwork(ctx context.Context, tx *store.Tx, userID string) error {
	return rememberNetwork(ctx, tx, s.newAttempt(ctx, userID, ""))
}
