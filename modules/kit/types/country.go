package types

// Country is an ISO 3166-1 country, by its alpha-3 code: CHE.
type Country string

// ParseCountry parses an alpha-3 code in upper case, the only form in which the API takes a
// nationality. It returns RuleAlpha3 for codes that are not officially assigned, including
// user-assigned codes such as XKX and withdrawn codes such as ANT.
func ParseCountry(s string) (Country, error) {
	if _, known := alpha2ByAlpha3[s]; !known {
		return "", RuleAlpha3
	}
	return Country(s), nil
}

// CountryOf parses an alpha-2 or an alpha-3 code in upper case, as in a postal address, which keeps
// the code unchanged. It returns RuleCountry for other texts.
func CountryOf(s string) (Country, error) {
	if alpha3, known := alpha3ByAlpha2[s]; known {
		return Country(alpha3), nil
	}
	if _, known := alpha2ByAlpha3[s]; known {
		return Country(s), nil
	}
	return "", RuleCountry
}

// String returns the alpha-3 code.
func (c Country) String() string { return string(c) }

var alpha2ByAlpha3, alpha3ByAlpha2 = countryTables()

func countryTables() (byAlpha3, byAlpha2 map[string]string) {
	n := len(countryCodes) / countryCodeStep
	byAlpha3, byAlpha2 = make(map[string]string, n), make(map[string]string, n)
	for i := 0; i < len(countryCodes); i += countryCodeStep {
		alpha2, alpha3 := countryCodes[i:i+2], countryCodes[i+2:i+5]
		byAlpha3[alpha3], byAlpha2[alpha2] = alpha2, alpha3
	}
	return byAlpha3, byAlpha2
}
