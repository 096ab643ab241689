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
	JSON  []byte
	Parts [][]byte // if there are any, the JSON is these parts in their order
	Tag   string   // see [Tagged]
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

// JSONEncoded returns a handler of [JSON] whose answers are those of encode, which must be the same as those of f. CSV is made of
// those of f.
func JSONEncoded[In, Out any](status int, f func(ctx context.Context, in In) (Out, error), encode func(ctx context.Context, in In) (*Encoded, error)) Handler {
	return JSON(status, f).encodedBy(func(ctx context.Context, in any) (*Encoded, error) { return encode(ctx, *in.(*In)) })
}

func (h Handler) encodedBy(encode func(ctx context.Context, in any) (*Encoded, error)) Handler {
	h.serve = func(ctx context.Context, r *Request) (Result, error) {
		in, err := h.plan.read(ctx, r)
		if err != nil {
			return Result{}, err
		}
		encoded, err := encode(ctx, in)
		return Result{Encoded: encoded}, err
	}
	return h
}

// Length returns the length of the JSON.
func (e *Encoded) Length() int {
	length := len(e.JSON)
	for _, part := range e.Parts {
		length += len(part)
	}
	return length
}

// Size returns the memory that the answer takes, in bytes.
func (e *Encoded) Size() int {
	return cap(e.JSON) + len(e.Tag) + int(reflect.TypeFor[Encoded]().Size())
}

// Texts returns texts of the locale files.
type Texts interface {
	Text(lang, key string, args map[string]any) string
}

// Message is the answer of operations that only confirm.
type Message struct {
	Message string `json:"message"`
}

// Confirm returns a confirmation in the language of the request.
func Confirm(ctx context.Context, texts Texts, key string) Message {
	return Message{Message: texts.Text(Language(ctx), key, nil)}
}
