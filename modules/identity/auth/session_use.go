package auth

import (
	"cmp"
	"context"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/store"
)

const (
	// useAccuracy is the accuracy of the last use, so that parallel requests of a session rarely note it.
	useAccuracy = store.Time(time.Second / time.Millisecond)
	// sharedSlack is how much later a session becomes idle while other nodes run, which write the last uses every 15 seconds.
	sharedSlack = store.Time(30 * time.Second / time.Millisecond)
	// useBatch is the number of sessions that one transaction changes, so that other writes do not wait long.
	useBatch = 500

	actionLimit = "auth.session_limit"
)

// The last use of a session is its sign-in, a refresh, or a request with its token. Requests note it in memory. The database gets it in a
// batch: once a minute, on a shared database every 15 seconds. After a crash it lacks as much, and the session becomes idle earlier.
//
// On a shared database the session may be in use on another node. No node treats it as idle before the uses there are written.

// touch notes a use of a session. A time in the future comes from a clock that was set back; the use corrects it.
func (s *Service) touch(known *session, now store.Time) {
	if since := now - store.Time(known.lastUse.Load()); 0 <= since && since < useAccuracy {
		return
	}
	known.lastUse.Store(int64(now))
	s.uses.note(known.caller.SessionID, now)
}

// isIdle reports whether a session has been unused for too long.
func (s *Service) isIdle(lastUse, now store.Time) bool {
	return s.options.SessionIdle > 0 && lastUse <= s.idleSince(now)
}

// idleSince returns the latest last use of a session that is idle.
func (s *Service) idleSince(now store.Time) store.Time {
	since := now.Add(-s.options.SessionIdle)
	if s.db.LiveNodes() > 1 {
		since -= sharedSlack
	}
	return since
}

// lastUse returns the last use of a session, from the database or from memory.
func (s *Service) lastUse(sessionID string, stored store.Time) store.Time {
	return max(stored, s.uses.at(sessionID))
}

// endExcess ends the sessions of a user beyond the limit after another one was opened. The one with the oldest use ends first.
// Transactions run one after another, so parallel sign-ins cannot exceed the limit.
func (s *Service) endExcess(ctx context.Context, tx *store.Tx, opened Session) error {
	if s.options.SessionsMax <= 0 {
		return nil
	}
	others, err := store.All(ctx, tx, scanSession, selectOtherSessions, opened.UserID, opened.ID, tx.Now())
	if err != nil {
		return err
	}
	excess := len(others) + 1 - s.options.SessionsMax
	if excess <= 0 {
		return nil
	}
	uses := make(map[string]store.Time, len(others))
	for _, row := range others {
		uses[row.ID] = s.lastUse(row.ID, row.LastUsedAt)
	}
	sort.Slice(others, func(i, j int) bool {
		a, b := others[i], others[j]
		return cmp.Or(cmp.Compare(uses[a.ID], uses[b.ID]), cmp.Compare(a.CreatedAt, b.CreatedAt), cmp.Compare(a.ID, b.ID)) < 0
	})
	for _, row := range others[:excess] {
		if err := s.endSession(ctx, tx, opened.UserID, row, endedByLimit); err != nil {
			return err
		}
		tx.AfterCommit(func() {
			endpoint.Report(ctx, endpoint.Event{Kind: endpoint.SessionEnd, Action: actionLimit, RecType: access.Sessions.Name, RecID: row.ID})
		})
	}
	return nil
}

// SweepSessions writes the last uses of sessions, and ends idle sessions together with their streams. Call it about once a
// minute. The writes of last uses leave no audit entry.
func (s *Service) SweepSessions(ctx context.Context) error {
	if err := s.flushSessionUse(ctx); err != nil || s.options.SessionIdle <= 0 {
		return err
	}
	return s.db.InBatches(ctx, useBatch, func(tx *store.Tx) (int64, error) { return s.endIdle(ctx, tx) })
}

// endIdle ends idle sessions and returns how many it has found.
func (s *Service) endIdle(ctx context.Context, tx *store.Tx) (found int64, err error) {
	now := tx.Now()
	idle, err := store.All(ctx, tx, scanSession, selectIdleSessions, now, s.idleSince(now), useBatch)
	if err != nil {
		return 0, err
	}
	for _, row := range idle {
		if !s.isIdle(s.lastUse(row.ID, row.LastUsedAt), now) {
			return 0, nil // it was used after the last uses were written: the next sweep continues here
		}
		if err := s.endSession(ctx, tx, store.NilID, row, endedByIdle); err != nil {
			return 0, err
		}
	}
	return int64(len(idle)), nil
}

// FlushSessionUse writes the last uses of sessions on a shared database. Call it every 15 seconds. A database of one process gets
// them with [Service.SweepSessions].
func (s *Service) FlushSessionUse(ctx context.Context) error {
	if !s.db.Shared() {
		return nil
	}
	return s.flushSessionUse(ctx)
}

// flushSessionUse writes the last uses of sessions.
func (s *Service) flushSessionUse(ctx context.Context) error {
	uses := s.uses.all()
	for ids := range slices.Chunk(slices.Sorted(maps.Keys(uses)), useBatch) {
		done := make(map[string]store.Time, len(ids))
		err := s.db.InTx(ctx, func(tx *store.Tx) error {
			for _, id := range ids {
				if _, err := tx.Exec(ctx, updateLastUse, id, uses[id], tx.Now()); err != nil {
					return err
				}
				done[id] = uses[id]
			}
			return nil
		})
		if err != nil {
			return err
		}
		s.uses.written(done)
	}
	return nil
}

// pendingUses holds the last uses of sessions that are not in the database yet.
type pendingUses struct {
	mu   sync.Mutex
	uses map[string]store.Time
}

func newPendingUses() *pendingUses { return &pendingUses{uses: map[string]store.Time{}} }

func (p *pendingUses) note(sessionID string, at store.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.uses[sessionID] = at
}

// at returns the pending use of a session, or 0.
func (p *pendingUses) at(sessionID string) store.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.uses[sessionID]
}

func (p *pendingUses) all() map[string]store.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.uses)
}

// written removes uses that the database has, except of sessions that were used since.
func (p *pendingUses) written(uses map[string]store.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, at := range uses {
		if p.uses[id] <= at {
			delete(p.uses, id)
		}
	}
}

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
