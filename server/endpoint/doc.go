package endpoint

// Doc is what the API document tells about a row beyond what its types, faults and rules say themselves. A type says
// more about its members with these tags: enum, format, pattern, example, minimum, maximum, minLength, maxLength,
// minItems, maxItems, required, nullable, default, items (format of the entries), type ("any" for any value) and doc (a
// sentence). A format "-" takes away the one that the name suggests; an example
// "-" leaves the member out of examples.
type Doc struct {
	Description string        // further sentences, in Markdown
	Body        any           // a value of the type that describes the body of an Upload or Raw handler
	Answers     []Answer      // successes in place of the one that the handler's type gives
	Search      []SearchField // the fields of a list, by which it is searched, sorted and stacked
	Headers     []string      // request headers that act here and nowhere else, such as X-Device-ID
}

// Answer is one way in which an operation ends.
type Answer struct {
	Status  int
	Says    string // when it is given, or what it holds
	Media   string // empty: application/json
	Body    any    // a value of its type; nil for JSON: any value
	Example any    // empty: one is made from the type
}

// SearchField is a field of a list as the API document shows it.
type SearchField struct{ Name, Type string }
