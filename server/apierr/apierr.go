// Package apierr keeps every error that a client of Kontor can see.
//
// A [Kind] is one line of the catalogue: a machine code and an HTTP status. A service returns a Kind, or an [Error]
// made from it, and the server writes it as the one error envelope, worded in the language of the request. The cause
// goes to the log and never to the client.
package apierr

import (
	"errors"
	"maps"
	"time"
)

// Kind is an entry of the catalogue: what went wrong, as a promise to clients. The text of a kind has the key
// "error.<code>" in the locale files.
type Kind struct {
	Code   string // machine code, "<module>.<what>"
	Status int    // HTTP status
}

// Error makes a Kind an error of its own, for the common case without fields or cause.
func (k Kind) Error() string { return k.Code }

// Temporary reports whether the same request may succeed later: 429 and every 5xx but those that blame the request.
func (k Kind) Temporary() bool { return k.Status == 429 || k.Status >= 500 }

// Wrap gives the kind a cause. The cause is for the log only.
func (k Kind) Wrap(cause error) *Error { return &Error{Kind: k, Cause: cause} }

// Detail gives the kind one member of the details object.
func (k Kind) Detail(name string, value any) *Error { return (&Error{Kind: k}).Detail(name, value) }

// RetryAfter tells the client how long to wait. The header carries whole seconds, rounded up.
func (k Kind) RetryAfter(d time.Duration) *Error { return &Error{Kind: k, Retry: d} }

// With gives the text of the kind its values, by the names of its placeholders.
func (k Kind) With(args Args) *Error { return &Error{Kind: k, Args: args} }

// Args are the values of a text, by the names of its placeholders.
type Args map[string]any

// Error is a kind with what is known about this occurrence.
type Error struct {
	Kind
	Cause   error          // for the log
	Args    Args           // values of the message
	Fields  *Fields        // wrong input, field by field
	Details map[string]any // further members of the details object, as they are
	Retry   time.Duration  // zero: no Retry-After of its own
}

// Error names the code and the cause, for the log.
func (e *Error) Error() string {
	if e.Cause == nil {
		return e.Code
	}
	return e.Code + ": " + e.Cause.Error()
}

// Unwrap gives the cause to errors.Is and errors.As.
func (e *Error) Unwrap() error { return e.Cause }

// Is makes errors.Is(err, apierr.TaskNotFound) true for every error of that kind.
func (e *Error) Is(target error) bool {
	kind, ok := target.(Kind)
	return ok && kind == e.Kind
}

// Detail adds one member to the details object and returns a new error.
func (e *Error) Detail(name string, value any) *Error {
	next := *e
	next.Details = maps.Clone(e.Details)
	if next.Details == nil {
		next.Details = map[string]any{}
	}
	next.Details[name] = value
	return &next
}

// Of finds the fault in a chain of errors. What is no fault is a [ServerError] with the chain as its cause.
func Of(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	if kind, ok := errors.AsType[Kind](err); ok {
		return &Error{Kind: kind, Cause: err}
	}
	return ServerError.Wrap(err)
}
