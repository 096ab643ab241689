package client

import (
	"errors"
	"fmt"
	"iter"
	"net/url"
	"reflect"
	"strings"
	"time"
)

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
