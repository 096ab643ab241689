// Package types keeps the small types that several modules share: countries, calendar dates,
// languages, phone numbers, e-mail addresses, ids and plain texts. Each is parsed once, at the
// border, and may be trusted afterwards: a Country that exists is a real one.
//
// Every parser here refuses with a [Rule], which names what the text breaks, so that the caller can
// word the refusal in the reader's language. The package knows nothing of HTTP, of storage or of
// translations.
package types

// Rule is the error of every parser in this package. Its text is a stable name, for example
// "country"; the wording for people is kept with the other texts under "invalid.<rule>", and a test
// compares the two.
type Rule string

// The rules, by what the text should have been.
const (
	RuleRequired Rule = "required"           // something that is not empty
	RuleTooLong  Rule = "max_length"         // no longer than allowed; the text names Max, which the caller knows
	RuleText     Rule = "control_characters" // text without control characters, in valid UTF-8
	RuleCountry  Rule = "country"            // an ISO 3166-1 country
	RuleAlpha3   Rule = "country_alpha3"     // an ISO 3166-1 country by its alpha-3 code
	RuleDate     Rule = "date"               // a calendar date that exists, YYYY-MM-DD
	RuleLanguage Rule = "language"           // en, de, fr or it
	RulePhone    Rule = "phone"              // a phone number that can be dialled
	RuleEmail    Rule = "email"              // a well-formed e-mail address
	RuleID       Rule = "uuid"               // a UUID
)

// Error returns the name of the rule.
func (r Rule) Error() string { return string(r) }

// Text gives the key under which the refusal is worded, for decoders that tell the rule to the client.
func (r Rule) Text() (key string, args map[string]any) { return "invalid." + string(r), nil }
