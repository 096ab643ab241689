// Package types holds small types that several modules share: countries, calendar dates, languages,
// phone numbers, e-mail addresses, names, ids and plain texts. Values are parsed once, where they
// enter the program, and are valid afterwards: every Country is an officially assigned one.
//
// Parsers return a [Rule] for invalid input, so that callers can report it in the reader's language.
// The package does not depend on HTTP, storage or translations.
package types

// Rule is the error of every parser in this package: the rule that the input breaks. It is a stable
// name, for example "country". The text for people has the key "invalid.<rule>"; a test compares the
// two.
type Rule string

// The rules, by what the input should have been.
const (
	RuleRequired Rule = "required"           // something that is not empty
	RuleTooLong  Rule = "max_length"         // no longer than allowed; the caller sets Max in the text
	RuleText     Rule = "control_characters" // text without control characters, in valid UTF-8
	RuleCountry  Rule = "country"            // an ISO 3166-1 country
	RuleAlpha3   Rule = "country_alpha3"     // an ISO 3166-1 country by its alpha-3 code
	RuleDate     Rule = "date"               // a calendar date that exists, YYYY-MM-DD
	RuleLanguage Rule = "language"           // en, de, fr or it
	RulePhone    Rule = "phone"              // a phone number that can be dialled
	RuleEmail    Rule = "email"              // a well-formed e-mail address
	RuleID       Rule = "uuid"               // a UUID

	RuleDisplayName Rule = "display_name" // a name of visible characters with at least one letter or digit
)

// Error returns the name of the rule.
func (r Rule) Error() string { return string(r) }

// Text returns the key of the text for people, for decoders that report the rule to the client.
func (r Rule) Text() (key string, args map[string]any) { return "invalid." + string(r), nil }
