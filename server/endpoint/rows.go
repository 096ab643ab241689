package endpoint

import (
	"context"
	"reflect"

	"kontor/server/access"
)

// RowPage is implemented by the answers of lists: the rows of one page. A handler of [JSON] whose Out implements it, and whose
// input implements [Pageable], can also be read as a whole, see [Handler.Rows].
type RowPage interface{ Rows() Rows }

// Rows are the rows of a page.
type Rows struct {
	Slice any   // the rows; its type does not depend on the page
	Total int64 // on all pages
	More  bool  // further rows follow
}

// Type returns the type of the rows.
func (r Rows) Type() reflect.Type { return reflect.TypeOf(r.Slice).Elem() }

// Len returns the number of rows.
func (r Rows) Len() int { return reflect.ValueOf(r.Slice).Len() }

// At returns a pointer to a row.
func (r Rows) At(i int) any { return reflect.ValueOf(r.Slice).Index(i).Addr().Interface() }

// Pageable is implemented by inputs of lists, or by their field with the whole query string.
type Pageable interface {
	// SetPage replaces the number of rows of a page and the number of rows before it. limit may exceed that of clients.
	SetPage(limit int, offset int64)
}

// ReadPage reads a page of a list.
type ReadPage func(ctx context.Context, limit int, offset int64) (RowPage, error)

// Listed reports whether the handler answers with the pages of a list.
func (h Handler) Listed() bool { return h.rows != nil }

// RowType returns the type of the rows of a list.
func (h Handler) RowType() reflect.Type {
	return reflect.Zero(h.Out).Interface().(RowPage).Rows().Type()
}

// Rows decodes the input of a list once and returns the function that reads its pages, which may outlive the request. It must
// be called only if [Handler.Listed] reports true, and the function not concurrently.
func (h Handler) Rows(ctx context.Context, r *Request) (ReadPage, error) { return h.rows(ctx, r) }

// rowsOf returns what [Handler.Rows] runs; nil for handlers of other answers than lists.
func rowsOf(p *plan, out reflect.Type, f operation) func(ctx context.Context, r *Request) (ReadPage, error) {
	if !out.Implements(reflect.TypeFor[RowPage]()) || p.pageable(reflect.New(p.input)) == nil {
		return nil
	}
	return func(ctx context.Context, r *Request) (ReadPage, error) {
		in, err := p.read(ctx, r)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context, limit int, offset int64) (RowPage, error) {
			p.pageable(reflect.ValueOf(in)).SetPage(limit, offset)
			page, err := f(ctx, in)
			if err != nil {
				return nil, err
			}
			return page.(RowPage), nil
		}, nil
	}
}

// pageable returns the part of an input that selects the page, or nil. in is a pointer to the input.
func (p *plan) pageable(in reflect.Value) Pageable {
	if own, ok := in.Interface().(Pageable); ok {
		return own
	}
	if p.binder < 0 {
		return nil
	}
	part, _ := in.Elem().Field(p.binder).Addr().Interface().(Pageable)
	return part
}

// Turns bounds how many requests read and encode long answers at the same time.
type Turns interface {
	// TakeTurn waits until the request may read a long answer. It returns the error of the context. A second call returns at once.
	TakeTurn(ctx context.Context) error
}

// TakeTurn waits until the request of the context may read an answer that may be long. It must not be called while the request holds a
// connection of the database. Outside a server there is no limit.
func TakeTurn(ctx context.Context) error {
	if turns := Of(ctx).Turns; turns != nil {
		return turns.TakeTurn(ctx)
	}
	return nil
}

// Transfers supervises answers that are written after their request has ended: exports, tables and downloads. The server
// implements it.
type Transfers interface {
	// BeginExport takes a place for an export by the caller of the request. It returns apierr.TooManyAtOnce without a free one.
	// release may be called more than once.
	BeginExport(request *Info) (release func(), err error)
	// Caller returns the caller with the session, the roles and the policy as of now. It returns apierr.Unauthorized when the
	// session has ended or the user was disabled.
	Caller(ctx context.Context, caller *access.Caller) (*access.Caller, error)
	// Principal returns a context whose database work counts for the caller of the request.
	Principal(ctx context.Context, request *Info) context.Context
}

// BeginExport takes a place for an export, see [Transfers]. Outside a server there is no limit.
func BeginExport(ctx context.Context) (release func(), err error) {
	info := Of(ctx)
	if info.Transfers == nil {
		return func() {}, nil
	}
	return info.Transfers.BeginExport(info)
}

// Detach returns a context for an answer that is written after its request has ended. It has the caller and what is known about
// the request, and ends with parent.
func Detach(parent, request context.Context) context.Context {
	info := Of(request)
	copied := &Info{Caller: access.From(request), Language: info.Language, RequestID: info.RequestID, AuditID: info.AuditID, Address: info.Address,
		Now: info.Now, Transfers: info.Transfers}
	if copied.Transfers != nil {
		parent = copied.Transfers.Principal(parent, copied)
	}
	return With(access.With(parent, copied.Caller), copied)
}

// Continue returns a context of [Detach] with the caller as of now. Call it before each part of an answer, always with the context
// of Detach. It returns an error when the caller's session has ended: then the answer must end, too.
func Continue(ctx context.Context) (context.Context, error) {
	info := Of(ctx)
	if err := ctx.Err(); err != nil || info.Transfers == nil {
		return ctx, err
	}
	caller, err := info.Transfers.Caller(ctx, access.From(ctx))
	if err != nil {
		return nil, err
	}
	copied := *info
	copied.Caller, copied.events = caller, nil
	return With(access.With(ctx, caller), &copied), nil
}
