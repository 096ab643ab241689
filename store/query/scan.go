package query

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"reflect"

	"kontor/store/clock"
	"kontor/store/engine"
)

// scan reads the current row of s into the destinations, one for each column.
func scan(s engine.Statement, dest []any) error {
	if len(dest) != s.Columns() {
		return fmt.Errorf("scan: %d destinations for %d columns", len(dest), s.Columns())
	}
	for i, d := range dest {
		if err := scanOne(s, i, d); err != nil {
			return fmt.Errorf("scan column %d (%s): %w", i+1, s.Name(i), err)
		}
	}
	return nil
}

// ignored is the type of Ignored.
type ignored struct{}

// Ignored is the destination of a column that is not read.
var Ignored any = ignored{}

// ReusedText is the destination of a text whose memory is used again by the next scan. It cannot hold NULL.
type ReusedText []byte

// scanOne reads a column. NULL fits pointers to pointers, []byte, json.RawMessage and any, which become nil, and a
// sql.Scanner that accepts it. It is an error for every other destination.
func scanOne(s engine.Statement, i int, dest any) error {
	if dest == Ignored {
		return nil
	}
	kind := s.Type(i)
	null := kind == engine.Null
	switch d := dest.(type) {
	case *ReusedText:
		if kind != engine.Text {
			return fmt.Errorf("a value that is no text cannot be read into %T", dest)
		}
		*d = s.AppendText((*d)[:0], i)
		return nil
	case **string:
		return scanPointer(d, null, func(p *string) error { return scanOne(s, i, p) })
	case **clock.Time:
		return scanPointer(d, null, func(p *clock.Time) error { return scanOne(s, i, p) })
	case **int64:
		return scanPointer(d, null, func(p *int64) error { return scanOne(s, i, p) })
	case **int:
		return scanPointer(d, null, func(p *int) error { return scanOne(s, i, p) })
	case **bool:
		return scanPointer(d, null, func(p *bool) error { return scanOne(s, i, p) })
	case **float64:
		return scanPointer(d, null, func(p *float64) error { return scanOne(s, i, p) })
	case *[]byte:
		*d = nil
		if !null {
			*d = s.Bytes(i)
		}
		return nil
	case *json.RawMessage:
		*d = nil
		if !null {
			*d = s.Bytes(i)
		}
		return nil
	case sql.Scanner:
		return d.Scan(value(s, i))
	case *any:
		*d = value(s, i)
		return nil
	}
	if !null {
		return scanValue(s, i, kind, dest)
	}
	if v := reflect.ValueOf(dest); v.Kind() == reflect.Pointer && v.Elem().Kind() == reflect.Pointer {
		v.Elem().SetZero()
		return nil
	}
	return fmt.Errorf("NULL cannot be read into %T", dest)
}

func scanPointer[T any](d **T, null bool, read func(*T) error) error {
	*d = nil
	if null {
		return nil
	}
	v := new(T)
	if err := read(v); err != nil {
		return err
	}
	*d = v
	return nil
}

// scanValue reads a column that is not NULL.
func scanValue(s engine.Statement, i int, kind engine.Type, dest any) error {
	if d, ok := dest.(*string); ok {
		*d = s.Text(i)
		return nil
	}
	if kind == engine.Text || kind == engine.Bytes {
		return scanText(s, i, dest)
	}
	switch d := dest.(type) {
	case *int64:
		*d = s.Int(i)
	case *int:
		*d = int(s.Int(i))
	case *clock.Time:
		*d = clock.Time(s.Int(i))
	case *bool:
		*d = s.Int(i) != 0
	case *float64:
		*d = s.Float(i)
	default:
		return scanOther(s, i, dest)
	}
	return nil
}

// scanText reads a text into types made from string. It does not convert a text to a number, as some engines would.
func scanText(s engine.Statement, i int, dest any) error {
	v := reflect.ValueOf(dest)
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	if v.Kind() == reflect.Pointer || v.Kind() == reflect.String {
		return scanOther(s, i, dest)
	}
	return fmt.Errorf("a text cannot be read into %T", dest)
}

// scanOther reads into types made from the basic ones.
func scanOther(s engine.Statement, i int, dest any) error {
	p := reflect.ValueOf(dest)
	if p.Kind() != reflect.Pointer || p.IsNil() {
		return fmt.Errorf("%T is not a pointer to a value", dest)
	}
	v := p.Elem()
	switch v.Kind() {
	case reflect.Pointer:
		target := reflect.New(v.Type().Elem())
		if err := scanOne(s, i, target.Interface()); err != nil {
			return err
		}
		v.Set(target)
	case reflect.String:
		v.SetString(s.Text(i))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(s.Int(i))
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		v.SetUint(uint64(s.Int(i)))
	case reflect.Bool:
		v.SetBool(s.Int(i) != 0)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(s.Float(i))
	default:
		return fmt.Errorf("%T cannot be read", dest)
	}
	return nil
}

// value returns a column in the form that a sql.Scanner expects.
func value(s engine.Statement, i int) any {
	switch s.Type(i) {
	case engine.Integer:
		return s.Int(i)
	case engine.Boolean:
		return s.Int(i) != 0
	case engine.Float:
		return s.Float(i)
	case engine.Text:
		return s.Text(i)
	case engine.Bytes:
		return s.Bytes(i)
	default:
		return nil
	}
}
