// Package endpoint declares operations of the API: the rows of the table that drives routing, access checks, rate limits,
// grants and the OpenAPI document. It also decodes the input of operations.
package endpoint

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/ratelimit"
)

// Endpoint is a row of the table.
type Endpoint struct {
	Name   string          // "customers.create": module and operation, unique
	Method string          // GET, POST, PUT, PATCH or DELETE; HEAD is answered as GET
	Path   string          // "/v1/customers/{id}"; {name} stands for one segment
	Access access.Rule     // who may call it; there is no default
	Limit  ratelimit.Class // which rate limit applies; there is no default
	// Subject is whose rights the caller must hold; there is no default for rows that [Endpoint.NeedsSubject].
	Subject access.Subject
	// Assurance is how recently the caller must have authenticated.
	Assurance Assurance
	// Find looks up what a request names, for a caller whose authentication is not recent enough: a missing record and a missing right are
	// reported first. It gets the ids of the path in lower case, and the input of a handler of [JSON], as a pointer. Rows need it whose
	// path names a record and that always need an assurance.
	Find func(ctx context.Context, ids []string, in any) error
	// WithoutFactor keeps the row open to users who must enrol a second factor and have not done so in time.
	WithoutFactor bool
	// PeopleOnly closes the row to service accounts. Rows with an unconditional assurance are closed to them anyway.
	PeopleOnly bool
	// SecretID keeps the id in the path out of the audit trail and the request log: it is all that the operation takes.
	SecretID bool
	Roles    []string      // built-in roles that get the grant at the first start; administrators always have it
	Tag      string        // group in the API document
	Summary  string        // imperative, without a full stop
	Faults   []apierr.Kind // errors in addition to those that every row of its kind may return
	MaxBody  int           // bytes; zero means DefaultMaxBody
	OwnTime  bool          // the service limits its own time: the deadline of requests does not apply
	// AuthZEN makes the row answer as the AuthZEN Authorization API 1.0 says: an error is a message (a JSON string), a body of another media
	// type is a bad request, and any X-Request-ID of the client is returned.
	AuthZEN     bool
	Draining    string      // plain text of the 503 while the service shuts down; empty: the health map
	Doc         Doc         // what the API document cannot derive from the rest
	Compression Compression // whether answers may be compressed; the default is safe
	Reports     Event       // the security event of a success; without an action: none
	Handle      Handler
}

// ForMachines reports whether service accounts may have a scope for the row.
func (e Endpoint) ForMachines() bool {
	return e.Access.TakesBearer() && !e.PeopleOnly && !e.Assurance.Always()
}

// HeldByEveryone reports whether the role Everyone gets the grant on the row.
func (e Endpoint) HeldByEveryone() bool { return slices.Contains(e.Roles, access.Everyone) }

// DefaultMaxBody is the maximum size of a JSON body, in bytes.
const DefaultMaxBody = 1 << 20

// Key returns the name of the endpoint in grants and rate-limit rules: "GET /v1/customers/{id}".
func (e Endpoint) Key() string { return e.Method + " " + e.Path }

// BodyLimit returns the maximum size of a request's body, in bytes.
func (e Endpoint) BodyLimit() int {
	if e.MaxBody > 0 {
		return e.MaxBody
	}
	return DefaultMaxBody
}

var methods = []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

// Check returns an error that lists what is missing in a row.
func (e Endpoint) Check() error {
	var problems []error
	complain := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if e.Name == "" || e.Tag == "" || e.Summary == "" {
		complain("name, tag and summary are required")
	}
	if !slices.Contains(methods, e.Method) {
		complain("method %q is not served", e.Method)
	}
	if !strings.HasPrefix(e.Path, "/") {
		complain("path %q does not start with a slash", e.Path)
	}
	if !e.Access.Decided() {
		complain("access is not declared")
	}
	if err := e.checkSubject(); err != nil {
		problems = append(problems, err)
	}
	if e.Limit == ratelimit.Undecided {
		complain("the rate limit is not declared")
	}
	if e.Assurance != AnySession && !e.Access.TakesBearer() {
		complain("assurance needs a session")
	}
	if e.Assurance.Always() && len(PathNames(e.Path)) > 0 && e.Find == nil {
		complain("a recent authentication is asked for after the record was found: Find is missing")
	}
	if e.Handle.serve == nil {
		complain("there is no handler")
	}
	if e.Handle.Streams && !e.OwnTime {
		complain("a streamed body needs OwnTime")
	}
	if e.Handle.plan != nil {
		for _, problem := range e.Handle.plan.undeclared {
			complain("%s", problem)
		}
	}
	if err := e.Handle.checkPath(e.Path); err != nil {
		problems = append(problems, err)
	}
	if len(problems) == 0 {
		return nil
	}
	return fmt.Errorf("endpoint %s (%s): %w", e.Key(), e.Name, errors.Join(problems...))
}

// ByID is the input of an operation on the record in the path.
type ByID struct {
	ID string `path:"id"`
}

// Group gives all rows a tag, and those without a rate limit this one.
func Group(tag string, limit ratelimit.Class, rows []Endpoint) []Endpoint {
	for i := range rows {
		rows[i].Tag = tag
		if rows[i].Limit == ratelimit.Undecided {
			rows[i].Limit = limit
		}
	}
	return rows
}

// CheckAll returns an error that lists incomplete rows and duplicate names or keys of a table.
func CheckAll(table []Endpoint) error {
	var problems []error
	names, keys := map[string]bool{}, map[string]bool{}
	for _, e := range table {
		if err := e.Check(); err != nil {
			problems = append(problems, err)
		}
		if names[e.Name] {
			problems = append(problems, fmt.Errorf("endpoint name %s is duplicate", e.Name))
		}
		if keys[e.Key()] {
			problems = append(problems, fmt.Errorf("endpoint %s is duplicate", e.Key()))
		}
		names[e.Name], keys[e.Key()] = true, true
	}
	return errors.Join(problems...)
}

// Compression is whether the answers of a row may be compressed. The length of a compressed answer tells whether two of its parts
// are alike. An observer who can place text in an answer could guess a secret in the same answer (BREACH).
type Compression uint8

// The choices.
const (
	// ByMethod compresses the answers to GET with credentials. Tokens, keys, codes and other secrets are answers to other
	// methods, where they are shown once.
	ByMethod Compression = iota
	// Uncompressed is for answers to GET that contain secrets, such as codes in messages or addresses that are secrets themselves.
	Uncompressed
	// Compressed is for long answers to other methods without any secret.
	Compressed
)

// Compressible reports whether answers of the row may be compressed.
func (e Endpoint) Compressible() bool {
	switch e.Compression {
	case Uncompressed:
		return false
	case Compressed:
		return true
	default:
		return e.Method == http.MethodGet && !e.Access.IsPublic()
	}
}

// Doc describes a row in the API document, in addition to its types, errors and rules. Types describe their members with
// these tags:
//
//	enum:"a,b"                    the values; separated by | if they contain commas
//	format, pattern, default      as in JSON Schema; format:"-" removes the one that the name suggests
//	minimum, maximum, minLength, maxLength, minItems
//	maxItems, maxProperties       the decoder rejects longer arrays and objects; each of an input needs one
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
