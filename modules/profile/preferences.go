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

// Preferences are how the console shows things to a user.
type Preferences struct {
	Theme           string `json:"theme" enum:"light,dark,system"`                                 // light, dark or system
	DateFormat      string `json:"date_format" enum:"YYYY-MM-DD|DD.MM.YYYY|DD/MM/YYYY|MM/DD/YYYY"` // such as DD.MM.YYYY
	CurrencyDisplay string `json:"currency_display" enum:"symbol,code,name"`                       // symbol, code or name
	NumberFormat    string `json:"number_format" enum:"1'234.56|1,234.56|1.234,56|1 234,56"`       // such as 1'234.56

	etag string
}

// ETag changes with the choice, and with the language, which the defaults follow.
func (p Preferences) ETag() string { return p.etag }

var (
	themes           = []string{"light", "dark", "system"}
	dateFormats      = []string{"YYYY-MM-DD", "DD.MM.YYYY", "DD/MM/YYYY", "MM/DD/YYYY"}
	currencyDisplays = []string{"symbol", "code", "name"}
	numberFormats    = []string{"1'234.56", "1,234.56", "1.234,56", "1 234,56"}
)

// defaults are those of each language as it is written in Switzerland (CLDR: de-CH, fr-CH, it-CH). Readers of English
// do not agree on the order of day and month, so that they get the one form that nobody mistakes.
var defaults = map[types.Language]Preferences{
	types.English: {Theme: "system", DateFormat: "YYYY-MM-DD", CurrencyDisplay: "code", NumberFormat: "1,234.56"},
	types.German:  {Theme: "system", DateFormat: "DD.MM.YYYY", CurrencyDisplay: "code", NumberFormat: "1'234.56"},
	types.French:  {Theme: "system", DateFormat: "DD.MM.YYYY", CurrencyDisplay: "code", NumberFormat: "1 234,56"},
	types.Italian: {Theme: "system", DateFormat: "DD.MM.YYYY", CurrencyDisplay: "code", NumberFormat: "1'234.56"},
}

// choice is what a user has chosen himself. nil stands for the default.
type choice struct {
	theme, dateFormat, currencyDisplay, numberFormat *string

	language types.Language
	version  int64 // zero: he has chosen nothing yet
}

// shown fills the gaps of a choice with the defaults of the user's language.
func (c choice) shown() Preferences {
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

// PreferencesInput are the preferences that are to change. What is not given stays; null goes back to the default.
type PreferencesInput struct {
	Theme           endpoint.Optional[string] `json:"theme" enum:"light,dark,system"`
	DateFormat      endpoint.Optional[string] `json:"date_format" enum:"YYYY-MM-DD|DD.MM.YYYY|DD/MM/YYYY|MM/DD/YYYY"`
	CurrencyDisplay endpoint.Optional[string] `json:"currency_display" enum:"symbol,code,name"`
	NumberFormat    endpoint.Optional[string] `json:"number_format" enum:"1'234.56|1,234.56|1.234,56|1 234,56"`
}

// Validate checks that each value is one of those that exist.
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

// apply gives the choice with the changes.
func (in PreferencesInput) apply(c choice) choice {
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

// Preferences gives the preferences of the caller.
func (s *Service) Preferences(ctx context.Context, _ endpoint.None) (Preferences, error) {
	stored, err := selectPreferences(ctx, s.db, access.From(ctx).UserID)
	return stored.shown(), err
}

// SetPreferences changes the preferences of the caller that are given.
func (s *Service) SetPreferences(ctx context.Context, in PreferencesInput) (Preferences, error) {
	userID := access.From(ctx).UserID
	var after Preferences
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		stored, err := selectPreferences(ctx, tx, userID)
		if err != nil {
			return err
		}
		before := stored.shown()
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
		after = stored.shown()
		return proof.Audit(ctx, tx, "profile.set_preferences", userID, was)
	})
	return after, err
}
