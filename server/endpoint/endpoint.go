// Package endpoint says what an operation of the API is: one row of the table that drives routing, the order of checks,
// rate limits, grants, the OpenAPI document and the console's view of them.
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
	Name     string          // "customers.create": module and operation, unique
	Method   string          // GET, POST, PUT, PATCH or DELETE; HEAD is answered as GET
	Path     string          // "/v1/customers/{id}"; {name} stands for one segment
	Access   access.Rule     // who may come in; there is no default
	Limit    ratelimit.Class // which rate limit holds; there is no default
	Roles    []string        // built-in roles that get the grant at first boot; administrators always hold it
	Tag      string          // group in the API document
	Summary  string          // one sentence
	Faults   []apierr.Kind   // what may go wrong beyond what can go wrong in every row of its kind
	MaxBody  int             // bytes; zero means DefaultMaxBody
	OwnTime  bool            // the service bounds its own time, so that the deadline of all requests does not hold
	Draining string          // plain text answered with 503 while the service shuts down; empty: the health map
	Doc      Doc             // what the API document cannot find out from the rest
	Reports  Event           // the security event that a success is; one without an action is none
	Handle   Handler
}

// DefaultMaxBody is the size that a JSON body may have, in bytes.
const DefaultMaxBody = 1 << 20

// Key is how grants and rate-limit rules name the endpoint: "GET /v1/customers/{id}".
func (e Endpoint) Key() string { return e.Method + " " + e.Path }

// BodyLimit is the size in bytes that a request's body may have.
func (e Endpoint) BodyLimit() int {
	if e.MaxBody > 0 {
		return e.MaxBody
	}
	return DefaultMaxBody
}

var methods = []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

// Check says what is missing in a row, or nil.
func (e Endpoint) Check() error {
	var problems []error
	complain := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if e.Name == "" || e.Tag == "" || e.Summary == "" {
		complain("name, tag and summary are needed")
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
		complain("access is not decided")
	}
	if e.Limit == ratelimit.Undecided {
		complain("the rate limit is not decided")
	}
	if e.Handle.serve == nil {
		complain("there is no handler")
	}
	if err := e.Handle.checkPath(e.Path); err != nil {
		problems = append(problems, err)
	}
	if len(problems) == 0 {
		return nil
	}
	return fmt.Errorf("endpoint %s (%s): %w", e.Key(), e.Name, errors.Join(problems...))
}

// CheckAll says what is wrong with a table: rows that are incomplete, and names or keys that stand twice.
func CheckAll(table []Endpoint) error {
	var problems []error
	names, keys := map[string]bool{}, map[string]bool{}
	for _, e := range table {
		if err := e.Check(); err != nil {
			problems = append(problems, err)
		}
		if names[e.Name] {
			problems = append(problems, fmt.Errorf("endpoint name %s stands twice", e.Name))
		}
		if keys[e.Key()] {
			problems = append(problems, fmt.Errorf("endpoint %s stands twice", e.Key()))
		}
		names[e.Name], keys[e.Key()] = true, true
	}
	return errors.Join(problems...)
}
