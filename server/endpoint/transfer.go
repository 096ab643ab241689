package endpoint

import (
	"context"

	"kontor/server/access"
)

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
