package endpoint

import (
	"context"
	"reflect"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Encoding are the options of the encoder of answers. Duplicate names are not looked for, which would cost a twentieth of a list: our
// types cannot have them, and JSON of clients was checked when it came in.
var Encoding = json.JoinOptions(json.Deterministic(true), jsontext.AllowDuplicateNames(true))

// Encoded is an answer that was encoded before. It must not be changed: several requests may share it.
type Encoded struct {
	JSON []byte
	Tag  string // see [Tagged]
}

// Encode encodes an answer, which may be [Tagged]. It must not be one that names users.
func Encode(body any) (*Encoded, error) {
	e := &Encoded{}
	if tagged, ok := body.(Tagged); ok {
		e.Tag = tagged.ETag()
	}
	var err error
	e.JSON, err = json.Marshal(body, Encoding)
	return e, err
}

// Record returns a handler of [JSON] for a function that returns its answer encoded. Out is the type of the answer.
func Record[In, Out any](status int, f func(ctx context.Context, in In) (*Encoded, error)) Handler {
	h := JSON(status, f)
	h.Out = reflect.TypeFor[Out]()
	h.serve = func(ctx context.Context, r *Request) (Result, error) {
		in, err := bindInput[In](ctx, h.plan, r)
		if err != nil {
			return Result{}, err
		}
		encoded, err := f(ctx, in)
		return Result{Encoded: encoded}, err
	}
	return h
}

// Size returns the memory that the answer takes, in bytes.
func (e *Encoded) Size() int {
	return cap(e.JSON) + len(e.Tag) + int(reflect.TypeFor[Encoded]().Size())
}
