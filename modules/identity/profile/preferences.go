package profile

import (
	"context"
	"errors"
	"fmt"

	"kontor/modules/kit/personal"
	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/modules/kit/validate"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// Preferences control how the console shows data to a user.
type Preferences struct {
	Theme           string `json:"theme" enum:"light,dark,system"`
	DateFormat      string `json:"date_format" enum:"YYYY-MM-DD|DD.MM.YYYY|DD/MM/YYYY|MM/DD/YYYY"`
	CurrencyDisplay string `json:"currency_display" enum:"symbol,code,name"`
	NumberFormat    string `json:"number_format" enum:"1'234.56|1,234.56|1.234,56|1 234,56"`

	etag string
}

// ETag changes with the stored preferences, and with the language, which decides the defaults.
func (p Preferences) ETag() string { return p.etag }

var (
	themes           = []string{"light", "dark", "system"}
	dateFormats      = []string{"YYYY-MM-DD", "DD.MM.YYYY", "DD/MM/YYYY", "MM/DD/YYYY"}
	currencyDisplays = []string{"symbol", "code", "name"}
	numberFormats    = []string{"1'234.56", "1,234.56", "1.234,56", "1 234,56"}
)

// defaults are the preferences by language, as they are usual in Switzerland (CLDR: de-CH, fr-CH, it-CH). English has the ISO
// form of dates, because its readers disagree about the order of day and month.
var defaults = map[types.Language]Preferences{
	types.English: {Theme: "system", DateFormat: "YYYY-MM-DD", CurrencyDisplay: "code", NumberFormat: "1,234.56"},
	types.German:  {Theme: "system", DateFormat: "DD.MM.YYYY", CurrencyDisplay: "code", NumberFormat: "1'234.56"},
	types.French:  {Theme: "system", DateFormat: "DD.MM.YYYY", CurrencyDisplay: "code", NumberFormat: "1 234,56"},
	types.Italian: {Theme: "system", DateFormat: "DD.MM.YYYY", CurrencyDisplay: "code", NumberFormat: "1'234.56"},
}

// storedPreferences are the preferences that a user has set. nil stands for the default.
type storedPreferences struct {
	theme, dateFormat, currencyDisplay, numberFormat *string

	language types.Language
	version  int64 // zero if none is set
}

// shownIn returns the preferences with the language that the request asks for, if any, in place of the user's: a screen may have
// another one.
func (c storedPreferences) shownIn(ctx context.Context) storedPreferences {
	if info := endpoint.Of(ctx); info.AsksLanguage {
		c.language = types.Language(info.Language)
	}
	return c
}

// withDefaults returns the preferences with the defaults of the language.
func (c storedPreferences) withDefaults() Preferences {
	p := defaults[c.language]
	for _, chosen := range []struct {
		value  *string
		target *string
	}{{c.theme, &p.Theme}, {c.dateFormat, &p.DateFormat}, {c.currencyDisplay, &p.CurrencyDisplay}, {c.numberFormat, &p.NumberFormat}} {
		if chosen.value != nil {
			*chosen.target = *chosen.value
		}
	}
	p.etag = endpoint.VersionTag(c.version) + "-" + c.language.String()
	return p
}

// PreferencesInput holds the preferences to change. Missing members stay; null restores the default.
type PreferencesInput struct {
	Theme           endpoint.Optional[string] `json:"theme" enum:"light,dark,system"`
	DateFormat      endpoint.Optional[string] `json:"date_format" enum:"YYYY-MM-DD|DD.MM.YYYY|DD/MM/YYYY|MM/DD/YYYY"`
	CurrencyDisplay endpoint.Optional[string] `json:"currency_display" enum:"symbol,code,name"`
	NumberFormat    endpoint.Optional[string] `json:"number_format" enum:"1'234.56|1,234.56|1.234,56|1 234,56"`
}

// Validate checks that each value is allowed.
func (in *PreferencesInput) Validate(v *apierr.Fields) {
	for _, member := range []struct {
		name   string
		given  endpoint.Optional[string]
		values []string
	}{
		{"theme", in.Theme, themes}, {"date_format", in.DateFormat, dateFormats},
		{"currency_display", in.CurrencyDisplay, currencyDisplays}, {"number_format", in.NumberFormat, numberFormats},
	} {
		if member.given.Given && !member.given.Null {
			validate.OneOf(v, member.name, member.given.Value, member.values...)
		}
	}
}

// apply returns the preferences with the changes.
func (in PreferencesInput) apply(c storedPreferences) storedPreferences {
	c.theme, c.dateFormat = chosen(in.Theme, c.theme), chosen(in.DateFormat, c.dateFormat)
	c.currencyDisplay, c.numberFormat = chosen(in.CurrencyDisplay, c.currencyDisplay), chosen(in.NumberFormat, c.numberFormat)
	c.version++
	return c
}

func chosen(given endpoint.Optional[string], now *string) *string {
	switch {
	case !given.Given:
		return now
	case given.Null:
		return nil
	}
	return &given.Value
}

// Preferences returns the preferences of the caller.
func (s *Service) Preferences(ctx context.Context, _ endpoint.None) (Preferences, error) {
	stored, err := selectPreferences(ctx, s.db, access.From(ctx).UserID)
	return stored.shownIn(ctx).withDefaults(), err
}

// SetPreferences changes the given preferences of the caller.
func (s *Service) SetPreferences(ctx context.Context, in PreferencesInput) (Preferences, error) {
	userID := access.From(ctx).UserID
	var after Preferences
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		if err := requireEnabled(ctx, tx, userID); err != nil {
			return err
		}
		stored, err := selectPreferences(ctx, tx, userID)
		if err != nil {
			return err
		}
		stored = stored.shownIn(ctx)
		before := stored.withDefaults()
		if err := endpoint.CheckMatch(ctx, before.ETag()); err != nil {
			return err
		}
		stored = in.apply(stored)
		after = stored.withDefaults()
		return proof.ChangeRow(ctx, tx, "profile.set_preferences", userID, upsertPreferencesStatement,
			userID, stored.theme, stored.dateFormat, stored.currencyDisplay, stored.numberFormat, tx.Now(), stored.version)
	})
	return after, err
}

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

// selectAvatar returns the picture of a user, or nil.
func selectAvatar(ctx context.Context, q store.Querier, userID string) (*Avatar, error) {
	pictures, err := store.All(ctx, q, func(row store.Scanner) (p picture, err error) {
		err = row.Scan(&p.pixels, &p.token, &p.mediaType)
		return p, err
	}, selectAvatarStatement, userID)
	if err != nil || len(pictures) == 0 {
		return nil, err
	}
	avatar := avatarOf(pictures)
	return &avatar, nil
}

// selectPicture reads a picture by its token.
func selectPicture(ctx context.Context, q store.Querier, token string) (picture, error) {
	p := picture{token: token}
	err := q.QueryRow(ctx, selectPictureStatement, token).Scan(&p.mediaType, &p.content)
	return p, records.OrMissing(err, apierr.AvatarNotFound)
}

// selectMedia reads the media type of a picture whose content the client has cached.
func selectMedia(ctx context.Context, q store.Querier, token string) (picture, error) {
	p := picture{token: token}
	err := q.QueryRow(ctx, selectMediaStatement, token).Scan(&p.mediaType)
	return p, records.OrMissing(err, apierr.AvatarNotFound)
}

// PersonalData lists the tables of the module.
func (s *Service) PersonalData() []personal.Table {
	return []personal.Table{
		{Name: "profile_preferences", Holds: "how the console shows dates, amounts and colours to a user", Sections: []string{"preferences"}},
		{Name: "list_views", Holds: "the lists of the console that a user has saved", Sections: []string{"views"}},
		{Name: "avatars", Holds: "the picture of a user in two sizes", Sections: []string{"pictures"}},
	}
}

// exportedPicture is a picture in an export. Its content is written in base64.
type exportedPicture struct {
	Pixels    int64  `json:"pixels"`
	MediaType string `json:"media_type"`
	Content   []byte `json:"content"`
}

// PersonalSections declares preferences, saved views and pictures of a user.
func (s *Service) PersonalSections() []personal.Section {
	return []personal.Section{
		personal.Own(personal.About{Name: "preferences", Kind: personal.User, Endpoint: "GET /v1/profile/preferences"},
			personal.Slice(func(ctx context.Context, q store.Querier, of personal.Subject) ([]Preferences, error) {
				stored, err := selectPreferences(ctx, q, of.ID)
				return []Preferences{stored.withDefaults()}, err
			}), nil),
		personal.Own(personal.About{Name: "views", Kind: personal.User, Endpoint: "GET /v1/profile/views"},
			personal.Slice(func(ctx context.Context, q store.Querier, of personal.Subject) ([]View, error) {
				return selectViews(ctx, q, of.ID)
			}), nil),
		personal.Own(personal.About{Name: "pictures", Kind: personal.User, Endpoint: "GET /v1/profile"},
			personal.Slice(func(ctx context.Context, q store.Querier, of personal.Subject) ([]picture, error) {
				return store.All(ctx, q, scanPicture, selectPictures, of.ID)
			}),
			func(_ context.Context, _ store.Querier, p picture) (any, error) {
				return exportedPicture{p.pixels, p.mediaType, p.content}, nil
			}),
	}
}

// scanPicture reads a picture with its content.
func scanPicture(row store.Scanner) (p picture, err error) {
	err = row.Scan(&p.pixels, &p.token, &p.mediaType, &p.content)
	return p, err
}

const deletePreferences = `DELETE FROM profile_preferences WHERE user_id = $1`

// ErasePerson deletes preferences, saved views and pictures of a user.
func (s *Service) ErasePerson(ctx context.Context, tx *store.Tx, subject personal.Subject, cursor string) (string, error) {
	if subject.Kind != personal.User {
		return "", nil
	}
	return personal.Run(ctx, tx, cursor, personal.Once(func(ctx context.Context, tx *store.Tx) error {
		exists, err := proof.Exists(ctx, tx, subject.ID)
		if err != nil || !exists {
			return err
		}
		return proof.Change(ctx, tx, personal.Action, subject.ID, func() error {
			return tx.RunEach(ctx, subject.ID, deletePreferences, deleteViews, deleteAvatarStatement)
		})
	}))
}
