package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// ErrorCode is the code of an error. It is an error itself, so that errors.Is compares an [*Error] with it.
type ErrorCode string

func (c ErrorCode) Error() string { return string(c) }

// Error is an error that the service returned.
type Error struct {
	Operation  string    // such as customers.create
	Status     int       // of HTTP
	Code       ErrorCode // empty if the answer is not one of Kontor, but of a proxy, for example
	Message    string    // for people, in the language of the request
	Class      ErrorClass
	Retryable  bool              // the same request may succeed later
	Fields     map[string]string // a sentence for each wrong field
	Details    map[string]any    // all details, including the fields
	RequestID  string            // also in the log of the service
	RetryAfter time.Duration     // how long to wait before the next attempt; 0 if unknown

	shutdown bool // the service is about to end and has not looked at the request
}

func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d", e.Operation, e.Status)
	if e.Code != "" {
		fmt.Fprintf(&b, " %s", e.Code)
	}
	fmt.Fprintf(&b, ": %s", e.Message)
	for _, name := range sortedKeys(e.Fields) {
		fmt.Fprintf(&b, " %s: %s", name, e.Fields[name])
	}
	if e.RequestID != "" {
		fmt.Fprintf(&b, " (request %s)", e.RequestID)
	}
	return b.String()
}

// Is reports whether target is the code of the error.
func (e *Error) Is(target error) bool {
	code, ok := target.(ErrorCode)
	return ok && code == e.Code
}

// Errors of the client itself.
var (
	// ErrNotModified means that the record still is the version of [IfNoneMatch].
	ErrNotModified = errors.New("the record has not changed")
	// ErrNotSignedIn means that an operation needs a bearer token and the client has none.
	ErrNotSignedIn = errors.New("sign in first")
	// ErrNoAPIKey means that an operation needs an API key and the client has none.
	ErrNoAPIKey = errors.New("the operation needs an API key")
	// ErrTooLarge means that an answer is larger than the limit of [WithMaxAnswer].
	ErrTooLarge = errors.New("the answer is larger than the limit")
	// ErrUnexpected means that an answer is not one of this API: a redirect, another media type, or broken JSON.
	ErrUnexpected = errors.New("unexpected answer")
	// ErrTimeout means that an attempt took longer than [WithTimeout].
	ErrTimeout = errors.New("no complete answer in time")
)

// maxError is the largest body of an error that is read.
const maxError = 256 << 10

// newError returns the error that an answer with a status of 400 or more describes.
func newError(op operation, a *answer) *Error {
	e := &Error{
		Operation: op.name, Status: a.status, Message: http.StatusText(a.status), RequestID: a.header.Get("X-Request-ID"),
		RetryAfter: retryAfter(a.header, time.Now()),
	}
	var body struct {
		Message   string         `json:"message"`
		Code      ErrorCode      `json:"code"`
		Class     ErrorClass     `json:"class"`
		Retryable bool           `json:"retryable"`
		Details   map[string]any `json:"details"`
		Health    string         `json:"overall_status"`
	}
	if mediaType(a.header) != jsonMedia || json.Unmarshal(a.body, &body) != nil || body.Message == "" {
		return e
	}
	e.shutdown = a.status == http.StatusServiceUnavailable && body.Health != ""
	e.Code, e.Message, e.Class, e.Retryable, e.Details = body.Code, body.Message, body.Class, body.Retryable || e.shutdown, body.Details
	for name, value := range body.Details {
		if sentence, ok := value.(string); ok {
			if e.Fields == nil {
				e.Fields = map[string]string{}
			}
			e.Fields[name] = sentence
		}
	}
	return e
}

// retryAfter returns the pause that an answer demands, in either form of the header (RFC 9110, section 10.2.3).
func retryAfter(h http.Header, now time.Time) time.Duration {
	value := h.Get("Retry-After")
	if seconds, err := strconv.ParseInt(value, 10, 32); err == nil {
		return max(0, time.Duration(seconds)*time.Second)
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}
