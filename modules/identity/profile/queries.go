package profile

import (
	"context"
	"errors"
	"fmt"

	"kontor/modules/kit/types"
	"kontor/server/apierr"
	"kontor/store"
)

const selectPreferencesStatement = `
	SELECT u.language, p.theme, p.date_format, p.currency_display, p.number_format, COALESCE(p.version, 0)
	FROM people u LEFT JOIN profile_preferences p ON p.user_id = u.id
	WHERE u.id = $1`

const upsertPreferencesStatement = `
	INSERT INTO profile_preferences (
		user_id, theme, date_format, currency_display, number_format, created_at, created_by, modified_at, modified_by, version)
	VALUES ($1, $2, $3, $4, $5, $6, $1, $6, $1, $7)
	ON CONFLICT (user_id) DO UPDATE SET
		theme = excluded.theme, date_format = excluded.date_format, currency_display = excluded.currency_display,
		number_format = excluded.number_format, modified_at = excluded.modified_at, modified_by = excluded.modified_by,
		version = excluded.version`

const selectAvatarStatement = `
	SELECT pixels, token, media_type FROM avatars
	WHERE user_id = $1
	ORDER BY pixels DESC`

const insertPictureStatement = `
	INSERT INTO avatars (user_id, pixels, token, media_type, content, created_at, created_by)
	VALUES ($1, $2, $3, $4, $5, $6, $1)`

const deleteAvatarStatement = `DELETE FROM avatars WHERE user_id = $1`

const selectMediaStatement = `SELECT media_type FROM avatars WHERE token = $1`

const selectPictureStatement = `SELECT media_type, content FROM avatars WHERE token = $1`

func selectPreferences(ctx context.Context, q store.Querier, userID string) (storedPreferences, error) {
	var c storedPreferences
	var language string
	err := q.QueryRow(ctx, selectPreferencesStatement, userID).
		Scan(&language, &c.theme, &c.dateFormat, &c.currencyDisplay, &c.numberFormat, &c.version)
	c.language = types.Language(language)
	if errors.Is(err, store.ErrNotFound) {
		return c, apierr.UserNotFound
	}
	if err != nil {
		return c, fmt.Errorf("read preferences: %w", err)
	}
	return c, nil
}

const selectDisabled = `SELECT status = 'disabled' FROM people WHERE id = $1`

// requireEnabled returns apierr.NoAccess for a user who was disabled or erased after the request was authenticated.
func requireEnabled(ctx context.Context, q store.Querier, userID string) error {
	var disabled bool
	err := q.QueryRow(ctx, selectDisabled, userID).Scan(&disabled)
	if err == nil && disabled {
		return apierr.NoAccess
	}
	return err
}

func upsertPreferences(ctx context.Context, tx *store.Tx, userID string, c storedPreferences) error {
	_, err := tx.Exec(ctx, upsertPreferencesStatement, userID, c.theme, c.dateFormat, c.currencyDisplay, c.numberFormat, tx.Now(), c.version)
	return err
}

// selectAvatar returns the picture of a user, or nil.
func selectAvatar(ctx context.Context, q store.Querier, userID string) (*Avatar, error) {
	rows, err := q.Query(ctx, selectAvatarStatement, userID)
	if err != nil {
		return nil, fmt.Errorf("read avatar: %w", err)
	}
	defer rows.Close()
	var pictures []picture
	for rows.Next() {
		var p picture
		if err := rows.Scan(&p.pixels, &p.token, &p.mediaType); err != nil {
			return nil, fmt.Errorf("read avatar: %w", err)
		}
		pictures = append(pictures, p)
	}
	if err := rows.Err(); err != nil || len(pictures) == 0 {
		return nil, err
	}
	avatar := avatarOf(pictures)
	return &avatar, nil
}

func insertPicture(ctx context.Context, tx *store.Tx, userID string, p picture) error {
	_, err := tx.Exec(ctx, insertPictureStatement, userID, p.pixels, p.token, p.mediaType, p.content, tx.Now())
	return err
}

func deleteAvatar(ctx context.Context, tx *store.Tx, userID string) error {
	_, err := tx.Exec(ctx, deleteAvatarStatement, userID)
	return err
}

// selectPicture reads a picture by its token.
func selectPicture(ctx context.Context, q store.Querier, token string) (picture, error) {
	p := picture{token: token}
	err := q.QueryRow(ctx, selectPictureStatement, token).Scan(&p.mediaType, &p.content)
	return p, orNoAvatar(err)
}

// selectMedia reads the media type of a picture whose content the client has cached.
func selectMedia(ctx context.Context, q store.Querier, token string) (picture, error) {
	p := picture{token: token}
	err := q.QueryRow(ctx, selectMediaStatement, token).Scan(&p.mediaType)
	return p, orNoAvatar(err)
}

func orNoAvatar(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return apierr.AvatarNotFound
	}
	return err
}
