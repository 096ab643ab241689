package types

// Alpha2 returns the alpha-2 code: CH for CHE.
func (c Country) Alpha2() string { return alpha2ByAlpha3[string(c)] }

// Countries lists all countries in the order of their alpha-2 codes.
func Countries() []Country {
	all := make([]Country, 0, len(countryCodes)/countryCodeStep)
	for i := 0; i < len(countryCodes); i += countryCodeStep {
		all = append(all, Country(countryCodes[i+2:i+5]))
	}
	return all
}
