package lists

import (
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/text/language"
	"golang.org/x/text/language/display"

	"kontor/modules/kit/names"
)

// layouts are the forms of dates in lists, with what each of them leaves out.
var layouts = []struct {
	form    string
	unknown int // 1: the day, 2: also the month
}{
	{time.DateOnly, 0}, {"02 Jan 2006", 0}, {"2 Jan 2006", 0}, {"02/01/2006", 0}, {"02.01.2006", 0},
	{"2006-01", 1}, {"Jan 2006", 1}, {"2006", 2},
}

// appendDate adds a date of birth. "circa" and texts that are no dates add the year alone, or nothing.
func appendDate(all []names.Birth, text string) []names.Birth {
	text = strings.TrimSpace(text)
	if from, to, isRange := strings.Cut(text, " to "); isRange {
		if years := appendYears(nil, from, to); years != nil {
			return append(all, years...)
		}
		return appendDate(appendDate(all, from), to)
	}
	if about, isAbout := strings.CutPrefix(text, "circa "); isAbout {
		text = about
	}
	if len(text) > len(time.DateOnly) && text[4] == '-' && text[7] == '-' { // with a time or a time zone
		text = text[:len(time.DateOnly)]
	}
	for _, layout := range layouts {
		day, err := time.Parse(layout.form, text)
		if err != nil {
			continue
		}
		b := names.Birth{Year: day.Year()}
		if layout.unknown < 2 {
			b.Month = int(day.Month())
		}
		if layout.unknown < 1 {
			b.Day = day.Day()
		}
		return append(all, b)
	}
	return all
}

// isGregorian reports whether a date is of the calendar that is meant without a name. Others would contradict the right birth date.
func isGregorian(calendar string) bool {
	return calendar == "" || strings.EqualFold(calendar, "gregorian")
}

// appendYears adds the years of a range, which lists use for an unknown year.
func appendYears(all []names.Birth, from, to string) []names.Birth {
	const longest = 30
	first, err := strconv.Atoi(from)
	last, lastErr := strconv.Atoi(to)
	if err != nil || lastErr != nil || last < first || last-first > longest {
		return all
	}
	for year := first; year <= last; year++ {
		all = append(all, names.Birth{Year: year})
	}
	return all
}

// countryNames maps the English names of countries to their codes.
var countryNames = sync.OnceValue(func() map[string]string {
	english := display.English.Regions()
	byName := map[string]string{
		"burma": "MM", "cote d ivoire": "CI", "democratic people's republic of korea": "KP", "democratic republic of the congo": "CD",
		"iran (islamic republic of)": "IR", "islamic republic of iran": "IR", "korea, north": "KP", "korea, south": "KR", "libyan arab jamahiriya": "LY",
		"republic of korea": "KR", "russian federation": "RU", "state of palestine": "PS", "palestinian": "PS", "syrian arab republic": "SY",
		"united kingdom of great britain & northern ireland": "GB", "united republic of tanzania": "TZ", "united states of america": "US",
		"venezuela (bolivarian republic of)": "VE", "viet nam": "VN", "türkiye": "TR", "turkey": "TR", "congo, democratic republic of the": "CD",
		"congo, republic of the": "CG", "côte d'ivoire": "CI", "hong kong": "HK", "macau": "MO", "czech republic": "CZ", "cabo verde": "CV",
		"north macedonia, the republic of": "MK", "bahamas, the": "BS", "gambia, the": "GM", "virgin islands, british": "VG",
		"republic of moldova": "MD", "saint kitts & nevis": "KN", "saint vincent & the grenadines": "VC", "swaziland": "SZ",
		"lao people's democratic republic": "LA", "bolivia (plurinational state of)": "BO", "brunei darussalam": "BN",
	}
	for a := 'A'; a <= 'Z'; a++ {
		for b := 'A'; b <= 'Z'; b++ {
			region, err := language.ParseRegion(string([]rune{a, b}))
			if err != nil || !region.IsCountry() || region.Canonicalize() != region {
				continue
			}
			if name := english.Name(region); name != "" { // former countries have none
				byName[strings.ToLower(name)] = region.String()
			}
		}
	}
	return byName
})

// appendCountry adds a country by its code or English name. Others are left out: a missing country lowers no score.
func appendCountry(all []string, text string) []string {
	text = strings.TrimSpace(text)
	if len(text) == 2 {
		region, err := language.ParseRegion(text)
		if err == nil && region.IsCountry() {
			return append(all, region.String())
		}
		return all
	}
	if code := countryNames()[strings.ReplaceAll(strings.ToLower(text), " and ", " & ")]; code != "" {
		return append(all, code)
	}
	return all
}
