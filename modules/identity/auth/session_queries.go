package auth

import (
	"context"
	"fmt"

	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

const sessionColumns = "id, user_id, device_id, created_at, last_used_at, expires_at, ended_at, amr, authenticated_at, factor_at"

func scanSession(row records.Row) (Session, error) {
	var r Session
	err := row.Scan(r.fields()...)
	r.ACR = r.AMR.acr()
	return r, err
}

// fields returns where to scan the columns of a session.
func (s *Session) fields() []any {
	return []any{&s.ID, &s.UserID, &s.DeviceID, &s.CreatedAt, &s.LastUsedAt, &s.ExpiresAt, &s.ended, &s.AMR, &s.AuthenticatedAt, &s.factorAt}
}

var sessionTable = records.Table[Session]{
	Type: access.Sessions, From: "sessions", Columns: sessionColumns, Scan: scanSession,
	Relations: []records.Relation{{Name: access.RelationHolder, Allows: access.Read | access.Delete, SQL: "user_id = $1"}},
	Missing:   apierr.SessionNotFound,
	Record:    auditedSession,
}

var sessionList = list.New(list.Source[Session]{
	From: "sessions", Columns: sessionColumns, ID: "id", Created: "created_at", Tables: []string{"sessions"}, Scan: scanSession,
	Base: list.Where{SQL: "ended_at IS NULL"},
	Fields: list.Fields{
		{Name: "id", Type: list.UUID, Column: "id"},
		{Name: "user_id", Type: list.UUID, Column: "user_id"},
		{Name: "device_id", Type: list.Text, Column: "device_id"},
		{Name: "created_at", Type: list.Time, Column: "created_at"},
		{Name: "last_used_at", Type: list.Time, Column: "last_used_at"},
		{Name: "expires_at", Type: list.Time, Column: "expires_at"},
	},
})

const (
	// One row for each role, at least one.
	selectActiveSession = `
		SELECT s.expires_at, s.last_used_at, s.amr, s.authenticated_at, s.factor_at, u.status, COALESCE(r.role_id, ''),
			COALESCE(n.name_key, ''), d.since
		FROM sessions s
		JOIN people u ON u.id = s.user_id
		LEFT JOIN held_roles r ON r.user_id = s.user_id
		LEFT JOIN role_names n ON n.id = r.role_id
		LEFT JOIN factor_duties d ON d.user_id = s.user_id
		WHERE s.id = $1 AND s.user_id = $2 AND s.ended_at IS NULL AND u.status <> 'disabled'
		ORDER BY r.role_id`

	insertSessionRow = `
		INSERT INTO sessions (id, user_id, device_id, created_at, last_used_at, expires_at, amr, authenticated_at, factor_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`

	updateSessionUse = `UPDATE sessions SET last_used_at = $2, expires_at = $3 WHERE id = $1`

	// Another node may have written a later use. A use in the future is from before the clock was set back.
	updateLastUse = `
		UPDATE sessions SET last_used_at = $2
		WHERE id = $1 AND ended_at IS NULL AND (last_used_at < $2 OR last_used_at > $3)`

	selectOtherSessions = `
		SELECT ` + sessionColumns + `
		FROM sessions
		WHERE user_id = $1 AND id <> $2 AND ended_at IS NULL AND expires_at > $3`

	selectIdleSessions = `
		SELECT ` + sessionColumns + `
		FROM sessions
		WHERE expires_at > $1 AND last_used_at <= $2 AND ended_at IS NULL
		ORDER BY expires_at, id
		LIMIT $3`

	updateSessionEnd = `UPDATE sessions SET ended_at = $2, end_reason = $3 WHERE id = $1 AND ended_at IS NULL`

	updateSessionEndAll = `
		UPDATE sessions SET ended_at = $2, end_reason = $3
		WHERE user_id = $1 AND id <> $4 AND ended_at IS NULL AND expires_at > $2
		RETURNING id`

	insertRefresh = `INSERT INTO refresh_tokens (token_hash, session_id, expires_at) VALUES ($1, $2, $3)`

	updateRefreshUsed = `UPDATE refresh_tokens SET used_at = $2 WHERE token_hash = $1 AND used_at IS NULL`

	// Ended sessions and disabled users have no row here: there is no session left to end.
	selectRefresh = `
		SELECT t.expires_at, t.used_at,
			s.id, s.user_id, s.device_id, s.created_at, s.last_used_at, s.expires_at, s.ended_at, s.amr, s.authenticated_at, s.factor_at
		FROM refresh_tokens t
		JOIN sessions s ON s.id = t.session_id
		JOIN people u ON u.id = s.user_id
		WHERE t.token_hash = $1 AND s.ended_at IS NULL AND u.status <> 'disabled'`

	countDevices = `
		SELECT count(*), COALESCE(sum(CASE WHEN device_id = $2 THEN 1 ELSE 0 END), 0) FROM devices WHERE user_id = $1`

	upsertDeviceRow = `
		INSERT INTO devices (user_id, device_id, first_use_at, last_use_at) VALUES ($1, $2, $3, $3)
		ON CONFLICT (user_id, device_id) DO UPDATE SET last_use_at = excluded.last_use_at`

	selectUser = `SELECT count(*) FROM people WHERE id = $1`
)

// activeRow is an active session with its caller.
type activeRow struct {
	caller    *access.Caller
	expires   store.Time
	lastUsed  store.Time
	roleNames []string    // folded, in the order of the caller's roles
	dutySince *store.Time // since when the user has needed a second factor; nil: they need none
}

// selectActive reads an active session as a caller. A pending user acts as a registrant, whatever their other roles.
func selectActive(ctx context.Context, q store.Querier, userID, sessionID string) (active activeRow, err error) {
	caller := &access.Caller{UserID: userID, SessionID: sessionID}
	active.caller = caller
	found, pending := false, false
	var at store.Time
	var factorAt, since *store.Time
	var amr Methods
	err = store.Each(ctx, q, func(row store.Scanner) error {
		var status, role, name string
		if err := row.Scan(&active.expires, &active.lastUsed, &amr, &at, &factorAt, &status, &role, &name, &since); err != nil {
			return err
		}
		found, pending = true, status == "pending"
		if role != "" {
			caller.Roles = append(caller.Roles, role)
			active.roleNames = append(active.roleNames, name)
		}
		return nil
	}, selectActiveSession, sessionID, userID)
	if err != nil {
		return activeRow{}, err
	}
	if !found {
		return activeRow{}, store.ErrNotFound
	}
	if pending {
		caller.Roles, active.roleNames = []string{access.Registrant}, nil
	}
	caller.Roles = access.HeldRoles(caller.Roles, true)
	caller.SignedIn = access.Authentication{At: at.Std(), ACR: amr.acr()}
	if factorAt != nil {
		caller.SignedIn.FactorAt = factorAt.Std()
	}
	active.dutySince = since
	return active, nil
}

func insertRefreshToken(ctx context.Context, tx *store.Tx, hash, sessionID string, expires store.Time) error {
	return tx.Run(ctx, insertRefresh, hash, sessionID, expires)
}

// refreshToken is a refresh token of an active session.
type refreshToken struct {
	expires store.Time
	used    *store.Time // when it was exchanged; nil: not yet
	session Session
}

func selectRefreshToken(ctx context.Context, q store.Querier, hash string) (refreshToken, error) {
	var t refreshToken
	r := &t.session
	err := q.QueryRow(ctx, selectRefresh, hash).Scan(append([]any{&t.expires, &t.used}, r.fields()...)...)
	r.ACR = r.AMR.acr()
	return t, err
}

// userExists returns apierr.UserNotFound for an unknown id.
func userExists(ctx context.Context, q store.Querier, userID string) error {
	var n int
	if err := q.QueryRow(ctx, selectUser, userID).Scan(&n); err != nil {
		return fmt.Errorf("find a user: %w", err)
	}
	if n == 0 {
		return apierr.UserNotFound
	}
	return nil
}
