package profile

import (
	"context"

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

// withDefaults returns the preferences with the defaults of the user's language.
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
	return stored.withDefaults(), err
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
		before := stored.withDefaults()
		if err := endpoint.CheckMatch(ctx, before.ETag()); err != nil {
			return err
		}
		was, err := readProfile(ctx, tx, userID)
		if err != nil {
			return err
		}
		stored = in.apply(stored)
		if err := upsertPreferences(ctx, tx, userID, stored); err != nil {
			return err
		}
		after = stored.withDefaults()
		return proof.Audit(ctx, tx, "profile.set_preferences", userID, was)
	})
	return after, err
}
