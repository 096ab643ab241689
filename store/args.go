package store

import (
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"reflect"

	"kontor/store/internal/sqlite"
)

// bind sets the parameters of s from the arguments of a call.
func bind(s *sqlite.Stmt, args []any) error {
	if len(args) != s.Args() {
		return fmt.Errorf("statement takes %d arguments, not %d", s.Args(), len(args))
	}
	for i, number := range s.Params() {
		if err := bindOne(s, i, args[number-1]); err != nil {
			return fmt.Errorf("argument $%d: %w", number, err)
		}
	}
	return nil
}

func bindOne(s *sqlite.Stmt, i int, arg any) error {
	switch v := arg.(type) {
	case nil:
		return s.BindNull(i)
	case string:
		return s.BindText(i, v)
	case int64:
		return s.BindInt(i, v)
	case int:
		return s.BindInt(i, int64(v))
	case Time:
		return s.BindInt(i, int64(v))
	case bool:
		return s.BindInt(i, boolInt(v))
	case float64:
		return s.BindFloat(i, v)
	case json.RawMessage:
		if v == nil {
			return s.BindNull(i)
		}
		return s.BindBytesAsText(i, v)
	case []byte:
		if v == nil {
			return s.BindNull(i)
		}
		return s.BindBlob(i, v)
	case *string:
		if v == nil {
			return s.BindNull(i)
		}
		return s.BindText(i, *v)
	case *Time:
		if v == nil {
			return s.BindNull(i)
		}
		return s.BindInt(i, int64(*v))
	default:
		return bindOther(s, i, arg)
	}
}

// bindOther takes the kinds that are rare: types with a Value method, pointers, and types made from
// the basic ones.
func bindOther(s *sqlite.Stmt, i int, arg any) error {
	v := reflect.ValueOf(arg)
	if v.Kind() == reflect.Pointer && v.IsNil() {
		return s.BindNull(i)
	}
	if valuer, ok := arg.(driver.Valuer); ok {
		value, err := valuer.Value()
		if err != nil {
			return err
		}
		if _, again := value.(driver.Valuer); again {
			return fmt.Errorf("%T gives another Valuer", arg)
		}
		return bindOne(s, i, value)
	}
	switch v.Kind() {
	case reflect.Pointer:
		return bindOne(s, i, v.Elem().Interface())
	case reflect.String:
		return s.BindText(i, v.String())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return s.BindInt(i, v.Int())
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return s.BindInt(i, int64(v.Uint()))
	case reflect.Bool:
		return s.BindInt(i, boolInt(v.Bool()))
	case reflect.Float32, reflect.Float64:
		return s.BindFloat(i, v.Float())
	}
	return fmt.Errorf("%T cannot be stored", arg)
}

func boolInt(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
