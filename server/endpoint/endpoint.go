// Package endpoint declares operations of the API: the rows of the table that drives routing, access checks, rate limits,
// grants and the OpenAPI document. It also decodes the input of operations.
package endpoint

import (
	"errors"
	"fmt"
	"net/http"
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
	// WithoutFactor keeps the row open to users who must enrol a second factor and have not done so in time.
	WithoutFactor bool
	// PeopleOnly closes the row to service accounts. Rows with an unconditional assurance are closed to them anyway.
	PeopleOnly bool
	Roles      []string      // built-in roles that get the grant at the first start; administrators always have it
	Tag        string        // group in the API document
	Summary    string        // imperative, without a full stop
	Faults     []apierr.Kind // errors in addition to those that every row of its kind may return
	MaxBody    int           // bytes; zero means DefaultMaxBody
	OpenQuery  bool          // unknown query parameters are ignored, because another program builds the address
	OwnTime    bool          // the service limits its own time: the deadline of requests does not apply
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
	return e.Access.TakesBearer() && !e.PeopleOnly && (e.Assurance == AnySession || e.Assurance.Condition() != "")
}

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
	known := false
	for _, method := range methods {
		known = known || method == e.Method
	}
	if !known {
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
	if e.Handle.serve == nil {
		complain("there is no handler")
	}
	if e.Handle.Streams && !e.OwnTime {
		complain("a streamed body needs OwnTime")
	}
	if err := e.Handle.checkPath(e.Path); err != nil {
		problems = append(problems, err)
	}
	if len(problems) == 0 {
		return nil
	}
	return fmt.Errorf("endpoint %s (%s): %w", e.Key(), e.Name, errors.Join(problems...))
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
