package types_test

import (
	"testing"

	"golang.org/x/text/language"

	"kontor/modules/kit/types"
)

func TestParseCountry(t *testing.T) {
	for _, test := range []struct {
		in     string
		alpha2 string
		ok     bool
	}{
		{"CHE", "CH", true}, {"DEU", "DE", true}, {"LIE", "LI", true}, {"SSD", "SS", true}, {"BES", "BQ", true},
		{"che", "", false}, {"CH", "", false}, {"", "", false}, {"XKX", "", false}, {"ANT", "", false}, {"SUN", "", false},
		{"ZZZ", "", false}, {"CHE ", "", false}, {"EUR", "", false},
	} {
		c, err := types.ParseCountry(test.in)
		if (err == nil) != test.ok || c.Alpha2() != test.alpha2 {
			t.Errorf("ParseCountry(%q) = %q (alpha-2 %q), %v; want alpha-2 %q, ok %v", test.in, c, c.Alpha2(), err, test.alpha2, test.ok)
		}
		if err != nil && err != types.RuleAlpha3 {
			t.Errorf("ParseCountry(%q) returned %v, want %v", test.in, err, types.RuleAlpha3)
		}
	}
}

func TestCountryOf_TakesBothForms(t *testing.T) {
	for in, want := range map[string]types.Country{"CH": "CHE", "CHE": "CHE", "GB": "GBR", "UK": "", "C": "", "ch": "", "XK": ""} {
		got, err := types.CountryOf(in)
		if got != want || (want == "" && err != types.RuleCountry) {
			t.Errorf("CountryOf(%q) = %q, %v; want %q", in, got, err, want)
		}
	}
}

// The language library implements the same standard. The test fails when only one of the two tables is updated.
func TestCountries_AgreeWithTheLanguageLibrary(t *testing.T) {
	countries := types.Countries()
	if len(countries) != 249 {
		t.Fatalf("%d countries, want 249", len(countries))
	}
	for _, c := range countries {
		region, err := language.ParseRegion(c.Alpha2())
		if err != nil || region.ISO3() != c.String() || !region.IsCountry() {
			t.Errorf("%s: the library says %v %s %v", c, region, region.ISO3(), err)
		}
	}
}

func TestParseLanguage(t *testing.T) {
	for _, l := range []types.Language{types.English, types.German, types.French, types.Italian} {
		if got, err := types.ParseLanguage(l.String()); got != l || err != nil {
			t.Errorf("ParseLanguage(%q) = %q, %v", l, got, err)
		}
	}
	for _, in := range []string{"", "EN", "de-CH", "rm", "english"} {
		if got, err := types.ParseLanguage(in); err != types.RuleLanguage || got != "" {
			t.Errorf("ParseLanguage(%q) = %q, %v", in, got, err)
		}
	}
}
