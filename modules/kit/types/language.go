package types

// Language is one of the languages in which Kontor answers.
type Language string

// The languages, in the order of preference.
const (
	English Language = "en"
	German  Language = "de"
	French  Language = "fr"
	Italian Language = "it"
)

// ParseLanguage parses the two-letter code of a language, in lower case, as it is stored and shown.
// It returns RuleLanguage for others. The server selects a language by the Accept-Language header.
func ParseLanguage(s string) (Language, error) {
	switch l := Language(s); l {
	case English, German, French, Italian:
		return l, nil
	}
	return "", RuleLanguage
}

// String returns the two-letter code.
func (l Language) String() string { return string(l) }
