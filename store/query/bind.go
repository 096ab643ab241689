package query

import (
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"reflect"

	"kontor/store/clock"
	"kontor/store/engine"
)

// bind sets the arguments of a statement.
func bind(s engine.Statement, args []any) error {
	if len(args) != s.Args() {
		return fmt.Errorf("statement takes %d arguments, not %d", s.Args(), len(args))
	}
	for i, arg := range args {
		if err := bindOne(s, i+1, arg); err != nil {
			return fmt.Errorf("argument $%d: %w", i+1, err)
		}
	}
	return nil
}

func bindOne(s engine.Statement, n int, arg any) error {
	switch v := arg.(type) {
	case nil:
		return s.BindNull(n)
	case string:
		return s.BindText(n, v)
	case int64:
		return s.BindInt(n, v)
	case int:
		return s.BindInt(n, int64(v))
	case clock.Time:
		return s.BindInt(n, int64(v))
	case bool:
		return s.BindBool(n, v)
	case float64:
		return s.BindFloat(n, v)
	case json.RawMessage:
		if v == nil {
			return s.BindNull(n)
		}
		return s.BindTextBytes(n, v)
	case []byte:
		if v == nil {
			return s.BindNull(n)
		}
		return s.BindBytes(n, v)
	case *string:
		if v == nil {
			return s.BindNull(n)
		}
		return s.BindText(n, *v)
	case *clock.Time:
		if v == nil {
			return s.BindNull(n)
		}
		return s.BindInt(n, int64(*v))
	default:
		return bindOther(s, n, arg)
	}
}

// bindOther binds values of rare types: those with a Value method, pointers, and types made from the basic ones.
func bindOther(s engine.Statement, n int, arg any) error {
	v := reflect.ValueOf(arg)
	if v.Kind() == reflect.Pointer && v.IsNil() {
		return s.BindNull(n)
	}
	if valuer, ok := arg.(driver.Valuer); ok {
		value, err := valuer.Value()
		if err != nil {
			return err
		}
		if _, nested := value.(driver.Valuer); nested {
			return fmt.Errorf("%T returns another Valuer", arg)
		}
		return bindOne(s, n, value)
	}
	switch v.Kind() {
	case reflect.Pointer:
		return bindOne(s, n, v.Elem().Interface())
	case reflect.String:
		return s.BindText(n, v.String())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return s.BindInt(n, v.Int())
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return s.BindInt(n, int64(v.Uint()))
	case reflect.Bool:
		return s.BindBool(n, v.Bool())
	case reflect.Float32, reflect.Float64:
		return s.BindFloat(n, v.Float())
	}
	return fmt.Errorf("%T cannot be stored", arg)
}
