package profile

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"kontor/modules/kit/records"
	"kontor/server/access"
	"kontor/store"
)

// Proofs returns how the audit trail digests the records of this module.
func Proofs() []records.Proof { return []records.Proof{proof} }

// proof covers what a user has set. The preferences that the API shows depend on the language of the user, so the stored
// preferences are covered instead.
var proof = records.Proof{
	Type: access.Profiles.Name, Read: readProfile,
	From: "(SELECT user_id FROM profile_preferences UNION SELECT user_id FROM avatars UNION SELECT user_id FROM list_views) AS chosen", Key: "user_id",
	Outside: map[string]string{"preferences": `{"theme":"","date_format":"","currency_display":"","number_format":""}`},
}

const (
	selectStoredPreferences = `SELECT theme, date_format, currency_display, number_format, version FROM profile_preferences WHERE user_id = $1`
	selectPictures          = `SELECT pixels, token, media_type, content FROM avatars WHERE user_id = $1 ORDER BY pixels DESC`
)

// storedProfile holds the columns of a profile that the API does not show.
type storedProfile struct {
	Theme           *string         `json:"theme"`
	DateFormat      *string         `json:"date_format"`
	CurrencyDisplay *string         `json:"currency_display"`
	NumberFormat    *string         `json:"number_format"`
	Version         int64           `json:"version"`
	Pictures        []storedPicture `json:"pictures"`
	Views           []View          `json:"views,omitempty"`
}

type storedPicture struct {
	Pixels    int64  `json:"pixels"`
	MediaType string `json:"media_type"`
	SHA256    string `json:"sha256"`
}

// readProfile reads what a user has set, which may be nothing.
func readProfile(ctx context.Context, q store.Querier, userID string) (store.Record, error) {
	var s storedProfile
	err := q.QueryRow(ctx, selectStoredPreferences, userID).Scan(&s.Theme, &s.DateFormat, &s.CurrencyDisplay, &s.NumberFormat, &s.Version)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return store.Record{}, err
	}
	rows, err := q.Query(ctx, selectPictures, userID)
	if err != nil {
		return store.Record{}, fmt.Errorf("read pictures: %w", err)
	}
	defer rows.Close()
	var pictures []picture
	for rows.Next() {
		var p picture
		if err := rows.Scan(&p.pixels, &p.token, &p.mediaType, &p.content); err != nil {
			return store.Record{}, fmt.Errorf("read picture: %w", err)
		}
		sum := sha256.Sum256(p.content)
		s.Pictures = append(s.Pictures, storedPicture{p.pixels, p.mediaType, hex.EncodeToString(sum[:])})
		pictures = append(pictures, picture{pixels: p.pixels, token: p.token, mediaType: p.mediaType})
	}
	if err := rows.Err(); err != nil {
		return store.Record{}, err
	}
	if s.Views, err = selectViews(ctx, q, userID); err != nil {
		return store.Record{}, err
	}
	answer := Profile{UserID: userID}
	if len(pictures) > 0 {
		avatar := avatarOf(pictures)
		answer.Avatar = &avatar
	}
	return store.Record{Answer: answer, Stored: s}, nil
}
