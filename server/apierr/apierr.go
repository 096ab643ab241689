// Package apierr contains every error that a client of Kontor can receive.
//
// A [Kind] is one line of the catalogue: a machine code and an HTTP status. A service returns a Kind, or an [Error]
// made from it. The server writes it as the error envelope, in the language of the request. The cause is written to the log
// and never to the client.
package apierr

import (
	"errors"
	"maps"
	"time"
)

// Kind is an entry of the catalogue. Clients rely on it. Its text has the key "error.<code>" in the locale files.
type Kind struct {
	Code   string // machine code, "<module>.<what>"
	Status int    // HTTP status
}

// Error returns the code. It makes a Kind an error, for the common case without fields or cause.
func (k Kind) Error() string { return k.Code }

// Temporary reports whether the same request may succeed later: 429 and every 5xx, except that of a wrong search field, whose status
// the specification names.
func (k Kind) Temporary() bool {
	return (k.Status == 429 || k.Status >= 500) && k != QueryInvalidSearchField
}

// Final returns an error that no repetition of the request avoids, although the status of its kind is that of a failure. The text
// "error.<code>.<reason>" replaces that of the kind.
func (k Kind) Final(reason string) *Error { return &Error{Kind: k, Reason: reason, final: true} }

// Wrap returns an error with a cause, which is for the log only.
func (k Kind) Wrap(cause error) *Error { return &Error{Kind: k, Cause: cause} }

// Detail returns an error with one member of the details object.
func (k Kind) Detail(name string, value any) *Error { return (&Error{Kind: k}).Detail(name, value) }

// RetryAfter returns an error with the header Retry-After, in whole seconds, rounded up.
func (k Kind) RetryAfter(d time.Duration) *Error { return &Error{Kind: k, Retry: d} }

// Because returns an error with a reason: the member reason of its details. The text "error.<code>.<reason>" replaces that of
// the kind.
func (k Kind) Because(reason string) *Error {
	e := k.Detail("reason", reason)
	e.Reason = reason
	return e
}

// With returns an error with values for the placeholders of its text.
func (k Kind) With(args Args) *Error { return &Error{Kind: k, Args: args} }

// Args are the values of a text, by the names of its placeholders.
type Args map[string]any

// Error is one occurrence of a kind.
type Error struct {
	Kind
	Cause   error          // for the log
	Args    Args           // values of the message
	Reason  string         // which text of the kind; empty: the one of its code
	Fields  *Fields        // wrong input, field by field
	Details map[string]any // further members of the details object, as they are
	Retry   time.Duration  // zero: no Retry-After of its own
	final   bool           // see Kind.Final
}

// Temporary reports whether the same request may succeed later.
func (e *Error) Temporary() bool { return !e.final && e.Kind.Temporary() }

// Error returns the code and the cause, for the log.
func (e *Error) Error() string {
	if e.Cause == nil {
		return e.Code
	}
	return e.Code + ": " + e.Cause.Error()
}

// Unwrap returns the cause, for errors.Is and errors.As.
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

// Of returns the Error or Kind in a chain of errors. Without one it returns a [ServerError] with the chain as its cause.
func Of(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	if kind, ok := errors.AsType[Kind](err); ok {
		return &Error{Kind: kind, Cause: err}
	}
	return ServerError.Wrap(err)
}

// Text is a translatable sentence: a key of the locale files and the values of its placeholders.
type Text struct {
	Key  string
	Args Args
}

// Fields collects the wrong fields of an input, with one sentence each, so that all are reported at once. The first sentence
// of a field wins. Nested members are named with dots and indexes, such as "address.city" or "documents.0.type". The zero
// value is ready to use.
type Fields struct {
	names []string
	texts map[string]Text
}

// Add adds a wrong field. The key is one of the locale files, usually "invalid.<rule>"; args is optional.
func (f *Fields) Add(field, key string, args ...Args) {
	if _, known := f.texts[field]; known {
		return
	}
	if f.texts == nil {
		f.texts = map[string]Text{}
	}
	text := Text{Key: key}
	if len(args) > 0 {
		text.Args = args[0]
	}
	f.names = append(f.names, field)
	f.texts[field] = text
}

// Has reports whether the field is wrong.
func (f *Fields) Has(field string) bool {
	_, known := f.texts[field]
	return known
}

// Get returns the sentence about a field.
func (f *Fields) Get(field string) (text Text, wrong bool) {
	if f == nil {
		return Text{}, false
	}
	text, wrong = f.texts[field]
	return text, wrong
}

// Len returns the number of wrong fields.
func (f *Fields) Len() int {
	if f == nil {
		return 0
	}
	return len(f.names)
}

// Empty reports whether no field is wrong.
func (f *Fields) Empty() bool { return f == nil || len(f.names) == 0 }

// All yields the fields in the order in which they were added.
func (f *Fields) All(yield func(field string, text Text) bool) {
	if f == nil {
		return
	}
	for _, name := range f.names {
		if !yield(name, f.texts[name]) {
			return
		}
	}
}

// Err returns nil if no field is wrong, otherwise [InvalidInput] with the fields.
func (f *Fields) Err() error {
	if f.Empty() {
		return nil
	}
	return &Error{Kind: InvalidInput, Fields: f}
}

// Invalid returns [InvalidInput] for a single field.
func Invalid(field, key string, args ...Args) error {
	var f Fields
	f.Add(field, key, args...)
	return f.Err()
}
