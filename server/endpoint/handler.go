package endpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"kontor/server/apierr"
)

// Handler implements an endpoint. Make one with [JSON], [Upload] or [Raw].
type Handler struct {
	Status  int          // status of success
	In      reflect.Type // type of the input; nil for Raw and Upload
	Out     reflect.Type // type of the answer; nil for Raw
	Media   []string     // media types of the request body; empty: the body is not read
	Streams bool         // the handler reads Request.Body; the body is never in memory as a whole
	plan    *plan
	serve   func(ctx context.Context, r *Request) (Result, error)
	rows    func(ctx context.Context, r *Request) (ReadPage, error) // of a list; nil for others
}

// Request is the request that a handler reads. It must not be used after the handler returns.
type Request struct {
	Fiber  *fiber.Ctx
	Params []string // values of the path's {names}, in order, copied
	Row    *Endpoint
	// Body is the body of a handler of [Streamed]. It ends with an error of apierr for a body that is longer than the row allows, is
	// cut off, or arrives too slowly.
	Body io.Reader
}

// Result is an answer with more than a body. A handler of [JSON] whose Out is Result chooses the status of each answer.
type Result struct {
	Status int // zero: the status of the handler
	Body   any // encoded as JSON; nil is the JSON null
	Raw    []byte
	// Encoded is sent instead of Body.
	Encoded *Encoded
	// Location is the target of a redirect, whose status must be 303. A redirect has no body and must not be cached.
	Location string
	// SetCookie is a value of the header Set-Cookie; empty: none.
	SetCookie string
	// Rest returns further entries of the array in Body, as a slice of the same type, until there are none. Then it returns nil. It may be
	// called after the request has ended, with another context: long arrays are read while they are written.
	Rest func(ctx context.Context) (entries any, err error)
	Next string // path and query of the next page of a list, for the header Link (RFC 8288); empty: no further page
	Sent bool   // the handler has written the response itself
}

// Tagged is implemented by records. The tag is an opaque validator of the record's state without quotes, usually its
// version (RFC 9110, section 8.8.3).
type Tagged interface{ ETag() string }

// VersionTag returns the tag of a record with a version number.
func VersionTag(version int64) string { return "v" + strconv.FormatInt(version, 10) }

// None is the input of operations that read nothing from the request.
type None struct{}

// JSON returns a handler for a typed function. In is a struct whose fields each have exactly one source, by tag:
//
//	ID    string  `path:"id"`        a segment of the path; a UUID unless tagged `path:"id,text"`
//	Limit *int    `query:"limit"`    a query parameter: string, int, bool or a pointer to one, or []string
//	Query Params  `query:"*"`        the whole query string, for a type with BindQuery
//	Name  string  `json:"name"`      a member of the body
//
// Members are matched by their exact names; unknown members are ignored. All members of a wrong type are reported at once,
// together with the errors of the optional method Validate(*apierr.Fields) of In, which may also take the context. Out is
// encoded as JSON. An Out with a method ETag supports conditional requests, see [Tagged]; one with a method EachUser gets
// the member people, see [NamesUsers].
func JSON[In, Out any](status int, f func(ctx context.Context, in In) (Out, error)) Handler {
	return newJSON(status, reflect.TypeFor[In](), reflect.TypeFor[Out](), func(ctx context.Context, in any) (any, error) { return f(ctx, *in.(*In)) })
}

// operation is the function of a handler without its types: in is a pointer to the input. The answer counts only without an error.
type operation func(ctx context.Context, in any) (any, error)

// newJSON returns what [JSON] does.
func newJSON(status int, in, out reflect.Type, f operation) Handler {
	p := newPlan(in)
	h := Handler{Status: status, In: in, Out: out, plan: p, rows: rowsOf(p, out, f)}
	if p.hasBody() {
		h.Media = []string{fiber.MIMEApplicationJSON}
	}
	h.serve = func(ctx context.Context, r *Request) (Result, error) {
		in, err := p.read(ctx, r)
		if err != nil {
			return Result{}, err
		}
		out, err := f(ctx, in)
		if err != nil {
			return Result{}, err
		}
		if result, ok := out.(Result); ok {
			return result, nil
		}
		return Result{Body: out}, nil
	}
	return h
}

// Rejecting returns the handler with another error for each input that is not valid: convert receives [apierr.InvalidInput] with the wrong
// fields.
func (h Handler) Rejecting(convert func(ctx context.Context, invalid *apierr.Error) error) Handler {
	serve := h.serve
	h.serve = func(ctx context.Context, r *Request) (Result, error) {
		result, err := serve(ctx, r)
		if errors.Is(err, apierr.InvalidInput) {
			return Result{}, convert(ctx, apierr.Of(err))
		}
		return result, err
	}
	return h
}

// EventStream is the media type of event streams.
const EventStream = "text/event-stream"

// JSONOrStream returns a handler of [JSON] that answers clients which prefer an event stream by another function. open reads the
// request and writes the response itself, as for [Raw].
func JSONOrStream[In, Out any](status int, f func(ctx context.Context, in In) (Out, error), open func(ctx context.Context, r *Request, in In) error) Handler {
	return JSON(status, f).orStream(func(ctx context.Context, r *Request, in any) error { return open(ctx, r, *in.(*In)) })
}

func (h Handler) orStream(open func(ctx context.Context, r *Request, in any) error) Handler {
	answer := h.serve
	h.serve = func(ctx context.Context, r *Request) (Result, error) {
		if r.Fiber.Accepts(fiber.MIMEApplicationJSON, EventStream) != EventStream {
			return answer(ctx, r)
		}
		in, err := h.plan.read(ctx, r)
		if err != nil {
			return Result{}, err
		}
		return Result{Sent: true}, open(ctx, r, in)
	}
	return h
}

// Raw returns a handler that reads the request and writes the response itself, for uploads, files and streams. media lists
// the types of body that it reads. Nothing of the request may outlive the function.
func Raw(media []string, f func(ctx context.Context, r *Request) error) Handler {
	return Handler{Status: http.StatusOK, Media: media, serve: func(ctx context.Context, r *Request) (Result, error) {
		return Result{Sent: true}, f(ctx, r)
	}}
}

// RawInput returns a handler that writes the response itself, as that of [Raw], and reads its input as that of [JSON]. So the document
// lists its parameters.
func RawInput[In any](f func(ctx context.Context, r *Request, in In) error) Handler {
	h := Handler{Status: http.StatusOK, In: reflect.TypeFor[In](), plan: newPlan(reflect.TypeFor[In]())}
	h.serve = func(ctx context.Context, r *Request) (Result, error) {
		in, err := h.plan.read(ctx, r)
		if err != nil {
			return Result{}, err
		}
		return Result{Sent: true}, f(ctx, r, *in.(*In))
	}
	return h
}

// Upload returns a handler that reads the request's body itself and answers with JSON.
func Upload[Out any](status int, media []string, f func(ctx context.Context, r *Request) (Out, error)) Handler {
	h := Handler{Status: status, Out: reflect.TypeFor[Out](), Media: media}
	h.serve = func(ctx context.Context, r *Request) (Result, error) {
		out, err := f(ctx, r)
		return Result{Body: out}, err
	}
	return h
}

// Streamed is [Upload] for bodies that the handler reads piece by piece, from Request.Body. The row needs OwnTime: the body arrives
// while the handler runs.
func Streamed[Out any](status int, media []string, f func(ctx context.Context, r *Request) (Out, error)) Handler {
	h := Upload(status, media, f)
	h.Streams = true
	return h
}

// StreamedWith is [Streamed] with an input: In has query parameters only, see [JSON].
func StreamedWith[In, Out any](status int, media []string, f func(ctx context.Context, r *Request, in In) (Out, error)) Handler {
	p := newPlan(reflect.TypeFor[In]())
	h := Streamed(status, media, func(ctx context.Context, r *Request) (Out, error) {
		in, err := p.read(ctx, r)
		if err != nil {
			var none Out
			return none, err
		}
		return f(ctx, r, *in.(*In))
	})
	h.In, h.plan = reflect.TypeFor[In](), p
	return h
}

// Serve runs the handler.
func (h Handler) Serve(ctx context.Context, r *Request) (Result, error) { return h.serve(ctx, r) }

// Check decodes the input of a request and applies its rules, without the service. It returns the errors of [Handler.Serve], and nil for
// a handler without an input.
func (h Handler) Check(ctx context.Context, r *Request) (in any, err error) {
	if h.plan == nil {
		return nil, nil
	}
	return h.plan.read(ctx, r)
}

// ReadsBody reports whether the handler reads the request's body.
func (h Handler) ReadsBody() bool { return len(h.Media) > 0 }

// checkPath compares the {names} of a path with the path fields of the input.
func (h Handler) checkPath(path string) error {
	if h.plan == nil {
		return nil
	}
	inPath := map[string]int{}
	for i, name := range PathNames(path) {
		inPath[name] = i
	}
	for _, field := range h.plan.path {
		position, ok := inPath[field.name]
		if !ok {
			return fmt.Errorf("path has no {%s}", field.name)
		}
		if position != field.position {
			return fmt.Errorf("{%s} is number %d of the path and number %d of the input", field.name, position, field.position)
		}
	}
	return nil
}

// PathNames returns the {names} of a path in their order.
func PathNames(path string) []string {
	var names []string
	for segment := range strings.SplitSeq(path, "/") {
		if name, ok := strings.CutPrefix(segment, "{"); ok {
			names = append(names, strings.TrimSuffix(name, "}"))
		}
	}
	return names
}
