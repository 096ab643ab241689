package endpoint

// Doc is what the API document tells about a row beyond what its types, faults and rules say themselves. A type says
// more about its members with these tags:
//
//	enum:"a,b"                    the values; separated by | where they hold commas
//	format, pattern, default      as in JSON Schema; format:"-" takes away the one that the name suggests
//	minimum, maximum, minLength, maxLength, minItems, maxItems
//	items:"uuid"                  the format of the entries of an array
//	required:"true"               overrules what the rules of the input and omitzero say
//	nullable:"false"              never null although its type allows it
//	type:"any"                    any value
//	example:"Anna"                "-" leaves the member out of examples
//	doc:"…"                       a sentence
type Doc struct {
	Description string        // further sentences, in Markdown
	Body        any           // a value of the type that describes the body of an Upload or Raw handler
	Answers     []Answer      // successes in place of the one that the handler's type gives
	Search      []SearchField // the fields of a list, by which it is searched, sorted and stacked
	Linked      bool          // an array whose rest the header Link names
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
