// Package generate writes the generated parts of the Go client and of the TypeScript client from the API document.
//
// The document has one shape for errors, one for pages, named enumerations and no unions besides null, so that the package
// covers exactly what the document uses. It fails on anything else. The test of the package compares the generated files with
// the repository; "make clients" writes them.
package generate

import (
	"slices"
	"strings"

	"kontor/server/openapi"
)

// model is what both languages are written from.
type model struct {
	types      []namedType
	operations []operation
	codes      []string // of errors
}

// namedType is an object or an enumeration.
type namedType struct {
	name   string
	doc    string
	enum   []string
	fields []field
	input  bool // part of a request
	tagged bool // an answer with an ETag
	form   bool // sent as multipart/form-data

	generics bool // has a parameter T, the type of its rows
}

type field struct {
	wire     string
	doc      string
	typ      typeOf
	required bool
}

// eventStream is the media type of event streams.
const eventStream = "text/event-stream"

// kind is the kind of a type.
type kind int

const (
	anything kind = iota
	text
	integer
	number
	boolean
	moment
	date
	binary
	named
	list
	object
)

// typeOf is the type of a member, a parameter or an answer.
type typeOf struct {
	kind     kind
	name     string  // of a named type
	enum     bool    // the named type is an enumeration
	elem     *typeOf // of lists and objects
	nullable bool
}

// operation is one operation of the API.
type operation struct {
	id      string // such as users.credentials.list
	method  string
	path    string
	summary string
	notes   string
	bearer  bool
	apiKey  bool
	params  []string // of the path
	query   []queryParam
	headers []string // header parameters
	input   string   // named type of the body
	form    bool     // the body is multipart/form-data
	answers []answer
	etag    bool // the answer has an ETag
	link    bool // the answer has the header Link
	stacked string
	frames  openapi.Map[*openapi.Schema]
	page    *page
}

// queryParam is a parameter of the query.
type queryParam struct {
	wire, doc string
	typ       typeOf
}

// search reports whether a parameter filters a list.
func (p queryParam) search() bool { return strings.HasPrefix(p.wire, "search.") }

// answer is a successful answer.
type answer struct {
	status string
	media  []string
	typ    typeOf
}

// page describes an answer that is a page of a list. The next page follows an offset, a cursor in the header Link, or a cursor in a
// member.
type page struct {
	rows string // its member with the rows; "" if the answer is an array
	next string // its member with the cursor for the parameter "after"
	elem typeOf
}

// group returns the path of an operation's group, and its own name.
func (o operation) group() (path []string, name string) {
	parts := strings.Split(o.id, ".")
	return parts[:len(parts)-1], parts[len(parts)-1]
}

// queries reports whether an operation has a parameter in the query.
func (o operation) queries(name string) bool {
	return slices.ContainsFunc(o.query, func(p queryParam) bool { return p.wire == name })
}

func (o operation) accepts(header string) bool { return slices.Contains(o.headers, header) }

// target returns the name to which a reference points.
func target(ref string) string { return ref[strings.LastIndexByte(ref, '/')+1:] }
