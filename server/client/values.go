package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"reflect"
	"slices"
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

// Opt is a member of a request that may be absent, null or a value. The zero Opt is absent: an update keeps the present value.
type Opt[T any] struct {
	value *T
	given bool
}

// Set returns a member with a value.
func Set[T any](value T) Opt[T] { return Opt[T]{&value, true} }

// Null returns a member that is null: an update removes the present value.
func Null[T any]() Opt[T] { return Opt[T]{nil, true} }

// IsZero reports whether the member is absent. Package json leaves it out then.
func (o Opt[T]) IsZero() bool { return !o.given }

// MarshalJSON returns the value, or null.
func (o Opt[T]) MarshalJSON() ([]byte, error) { return json.Marshal(o.value) }

// UnmarshalJSON reads a value, or null.
func (o *Opt[T]) UnmarshalJSON(data []byte) error {
	o.given = true
	return json.Unmarshal(data, &o.value)
}

// Date is a day without a time.
type Date struct {
	Year  int
	Month time.Month
	Day   int
}

// DateOf returns the day of a time in its location.
func DateOf(t time.Time) Date {
	year, month, day := t.Date()
	return Date{year, month, day}
}

// In returns the beginning of the day in a location.
func (d Date) In(l *time.Location) time.Time { return time.Date(d.Year, d.Month, d.Day, 0, 0, 0, 0, l) }

// String returns the day as 2026-01-31.
func (d Date) String() string { return fmt.Sprintf("%04d-%02d-%02d", d.Year, d.Month, d.Day) }

// MarshalText returns the day as 2026-01-31.
func (d Date) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads a day such as 2026-01-31.
func (d *Date) UnmarshalText(text []byte) error {
	t, err := time.Parse(time.DateOnly, string(text))
	if err == nil {
		*d = DateOf(t)
	}
	return err
}

// File is a file that is sent or received.
type File struct {
	Name      string // of a file that is sent; "file" by default
	MediaType string
	Data      []byte
	// ETag identifies this version of a received file, for [IfNoneMatch].
	ETag string
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// encodeForm encodes a struct as multipart/form-data, by the names of its json tags.
func encodeForm(form any) (body []byte, media string, err error) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	v := reflect.ValueOf(form)
	for field, value := range v.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		file, ok := value.Interface().(File)
		if !ok {
			if !value.IsZero() {
				err = w.WriteField(name, fmt.Sprint(value.Interface()))
			}
		} else {
			err = writeFile(w, name, file)
		}
		if err != nil {
			return nil, "", err
		}
	}
	if err := w.Close(); err != nil {
		return nil, "", err
	}
	return b.Bytes(), w.FormDataContentType(), nil
}

func writeFile(w *multipart.Writer, name string, file File) error {
	if file.Name == "" {
		file.Name = "file"
	}
	if file.MediaType == "" {
		file.MediaType = "application/octet-stream"
	}
	part, err := w.CreatePart(textproto.MIMEHeader{
		"Content-Disposition": {multipart.FileContentDisposition(name, file.Name)}, "Content-Type": {file.MediaType},
	})
	if err == nil {
		_, err = part.Write(file.Data)
	}
	return err
}

// Filter is the value of a search parameter, as the service reads it: values separated by commas, patterns with *, ranges such as
// "2026-01-01..". [Is] makes one of plain values.
type Filter string

// IsNull selects the records without a value.
const IsNull Filter = "null"

// Is returns a filter for any of the values, which may contain commas and quotation marks. In a text, * matches any text.
func Is[T ~string | ~int | ~int64 | ~bool](values ...T) Filter {
	quoted := make([]string, len(values))
	for i, v := range values {
		text := fmt.Sprint(v)
		if text == "" || text == "null" || strings.ContainsAny(text, `", `+"\t") {
			text = `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
		}
		quoted[i] = text
	}
	return Filter(strings.Join(quoted, ","))
}

// Between returns a filter for times from a first to a last one, both included. A zero time leaves an end open.
func Between(first, last time.Time) Filter {
	end := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.UTC().Format("2006-01-02T15:04:05.000Z")
	}
	return Filter(end(first) + ".." + end(last))
}

// stacked are the parameters of a list whose rows are grouped by a field.
type stacked struct {
	Stack  string `query:"stack"`
	Params any
}

// encodeQuery returns the parameters of a query, without those that have their zero value.
func encodeQuery(params any) url.Values {
	values := url.Values{}
	if s, ok := params.(stacked); ok {
		values = encodeQuery(s.Params)
		values.Set("stack", s.Stack)
		return values
	}
	if params == nil {
		return values
	}
	v := reflect.ValueOf(params)
	for field, value := range v.Fields() {
		if value.IsZero() {
			continue
		}
		if value.Kind() == reflect.Pointer {
			value = value.Elem()
		}
		name := field.Tag.Get("query")
		if value.Kind() != reflect.Slice {
			values.Set(name, queryText(value))
			continue
		}
		for i := range value.Len() {
			values.Add(name, queryText(value.Index(i)))
		}
	}
	return values
}

func queryText(value reflect.Value) string {
	if at, ok := value.Interface().(time.Time); ok {
		return at.UTC().Format(time.RFC3339Nano)
	}
	return fmt.Sprint(value.Interface())
}

// pageSize is the number of rows that the methods All request at once, unless their parameters say otherwise.
const pageSize = 100

var errEndless = errors.New("the list has more rows, but the page does not lead to them")

// rows returns the rows of all pages of a list with offsets.
func rows[T any](limit, offset int, page func(limit, offset int) ([]T, bool, error)) iter.Seq2[T, error] {
	if limit <= 0 {
		limit = pageSize
	}
	return func(yield func(T, error) bool) {
		for {
			found, more, err := page(limit, offset)
			if err == nil && more && len(found) == 0 {
				err = fmt.Errorf("%w: %w", ErrUnexpected, errEndless)
			}
			if !yieldAll(found, err, yield) || !more {
				return
			}
			offset += len(found)
		}
	}
}

// after returns the rows of all pages of a list with cursors. A page may be empty although there are more.
func after[T any](cursor string, page func(after string) ([]T, string, bool, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for {
			found, next, more, err := page(cursor)
			if err == nil && more && (next == "" || next == cursor) {
				err = fmt.Errorf("%w: %w", ErrUnexpected, errEndless)
			}
			if !yieldAll(found, err, yield) || !more {
				return
			}
			cursor = next
		}
	}
}

// linked returns the rows of all pages of a list whose answers link to the next page.
func linked[T any](page func(before string, options []CallOption) ([]T, error), options []CallOption) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for before := ""; ; {
			var meta Meta
			found, err := page(before, append(options[:len(options):len(options)], Into(&meta)))
			next := cursor(meta.next)
			if err == nil && next != "" && next == before {
				err = fmt.Errorf("%w: %w", ErrUnexpected, errEndless)
			}
			if !yieldAll(found, err, yield) || next == "" {
				return
			}
			before = next
		}
	}
}

// yieldAll yields rows or an error. It reports whether to continue.
func yieldAll[T any](found []T, err error, yield func(T, error) bool) bool {
	if err != nil {
		var none T
		yield(none, err)
		return false
	}
	for _, row := range found {
		if !yield(row, nil) {
			return false
		}
	}
	return true
}
