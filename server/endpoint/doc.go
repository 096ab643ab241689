package endpoint

// Doc describes a row in the API document, in addition to its types, errors and rules. Types describe their members with
// these tags:
//
//	enum:"a,b"                    the values; separated by | if they contain commas
//	format, pattern, default      as in JSON Schema; format:"-" removes the one that the name suggests
//	minimum, maximum, minLength, maxLength, minItems, maxItems
//	items:"uuid"                  the format of the entries of an array
//	required:"true"               overrides the rules of the input and omitzero
//	nullable:"false"              never null, although the type allows it
//	type:"any"                    any value
//	example:"Anna"                "-" omits the member from examples
//	hidden:"true"                 not in the document: another spelling that is kept for old clients
//	doc:"…"                       a sentence
type Doc struct {
	Description string        // further sentences, in Markdown
	Body        any           // a value of the type of the body of an Upload or Raw handler
	Example     string        // of a body that is text
	Answers     []Answer      // successes, instead of the one of the handler's type
	Search      []SearchField // the fields of a list, for searching, sorting and stacking
	Linked      bool          // an array with further pages in the header Link
	Headers     []string      // request headers of this operation only, such as X-Device-ID
	Sends       []string      // headers of its successes that do not follow from the rest, such as X-Page-Count
}

// Answer is one possible response of an operation.
type Answer struct {
	Status  int
	Says    string  // when it is sent, or what it contains
	Media   string  // empty: application/json
	Body    any     // a value of its type; nil for JSON: any value
	Example any     // empty: derived from the type
	Frames  []Frame // of an event stream
}

// Frame is an event of an event stream.
type Frame struct {
	Event string
	Body  any // a value of the type of its data
}

// SearchField is a field of a list in the API document.
type SearchField struct{ Name, Type string }
