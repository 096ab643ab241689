package server

import (
	"context"
	"errors"
	"net/http"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/shares"
)

// step is a check of the pipeline. It may end the request with an error, or with [errAnswered] after it has written the
// response itself.
type step func(*Server, *call) error

// errAnswered ends the pipeline: the response is written.
var errAnswered = endOfPipeline{}

type endOfPipeline struct{}

// Error describes the end.
func (endOfPipeline) Error() string { return "the request is answered" }

// checksBeforeBody are the checks that need the head of a request only, in their order.
var checksBeforeBody = [...]step{
	(*Server).checkOrigin,          // headers.go: preflights end here
	(*Server).findRoute,            // router.go: 404, 405 and files of the console
	(*Server).checkContentEncoding, // body.go: no compressed bodies
	(*Server).echoRequestID,        // documents.go: the request id of a client of the AuthZEN interface
	(*Server).checkDraining,        // health.go: 503 while the service shuts down
	(*Server).takePolicy,           // authorize.go: 503 for a node that can neither hear of changes nor read them
	(*Server).recognizeCaller,      // authorize.go: a bearer token that is in memory
	(*Server).limitNetwork,         // rate_limit.go: 429, before credentials are verified
	(*Server).checkCredentials,     // authorize.go: a bearer token or an API key, not both
	(*Server).authenticate,         // authorize.go: 401
	(*Server).limitCaller,          // rate_limit.go: 429
	(*Server).limitConcurrency,     // rate_limit.go: 429
	(*Server).authorize,            // authorize.go: 403
	(*Server).checkPerson,          // authorize.go: 403 for a service account, and without a required second factor
	(*Server).checkSubject,         // authorize.go: 403 for an operation on a user or role that holds more than the caller
}

// checksWithBody follow when the caller is authorized.
var checksWithBody = [...]step{
	(*Server).readBody,       // body.go: 413
	(*Server).checkMediaType, // body.go: 415
	(*Server).checkAssurance, // authorize.go: 400, 404 and 403 of the record, then 401 for an authentication that is not recent
	(*Server).restartTime,    // pipeline.go: a long upload does not use up the time of its handler
	(*Server).callHandler,    // pipeline.go: decoding, rules of the input, service, answer
}

// call is one request on its way through the pipeline.
type call struct {
	endpoint.Info
	fiber    *fiber.Ctx
	initials initials // of the headers
	context  requestContext
	began    time.Time

	row        *route           // nil until findRoute
	request    endpoint.Request // what the handler reads
	paramSpace [4]string        // for request.Params
	policy     *access.Policy   // in force at the beginning of the request; nil until takePolicy
	recognized bool             // the caller is known from memory
	caller     access.Caller    // of this request, with the policy at its beginning

	responder responder
	answered  atomic.Pointer[Encoded] // what a transaction of the request has answered
	refused   string                  // code of the error that was answered
	refusal   *apierr.Error           // the error that was answered; nil: none
	turn      bool                    // the request may read a long answer
	ignored   string                  // query parameters without effect
	uploaded  int                     // bytes of the body that count against uploadBudget
	share     shares.Share            // of them
}

// serve takes a request through the whole pipeline. Every request gets an answer.
func (s *Server) serve(c *fiber.Ctx) {
	s.handle(c, func(r *call) error {
		if err := s.run(r, checksBeforeBody[:]); err != nil {
			return err
		}
		return s.run(r, checksWithBody[:])
	})
}

func (s *Server) run(r *call, steps []step) error {
	for _, check := range steps {
		if err := check(s, r); err != nil {
			return err
		}
	}
	return nil
}

// handle prepares a call, takes it through some steps and writes the error that ended them. A panic is answered as an error.
func (s *Server) handle(c *fiber.Ctx, steps func(r *call) error) {
	r := s.newCall(c)
	defer func() { r.context.end() }()
	defer s.finish(r)
	defer s.discardUnreadBody(r)
	defer s.releaseBody(r)
	defer r.endTurn()
	defer func() {
		if cause := recover(); cause != nil {
			s.Log.Error("panic in a handler", "request_id", r.RequestID, "cause", cause, "stack", string(debug.Stack()))
			s.fail(r, apierr.ServerError)
		}
	}()
	s.identify(r)
	if err := steps(r); err != nil && !errors.Is(err, errAnswered) {
		s.fail(r, err)
	}
}

func (s *Server) newCall(c *fiber.Ctx) *call {
	r := &call{fiber: c, began: time.Now()}
	r.responder = responder{s, r}
	r.Caller, r.Transfers, r.Turns = &r.caller, s.transfers, r
	r.request.Fiber = c
	r.context.info, r.context.callerKey = &r.Info, s.CallerKey
	r.context.restart(r.began.Add(s.RequestTime))
	return r
}

// reads reports whether the method reads a record without changing it.
func (r *call) reads() bool {
	method := r.fiber.Method()
	return method == http.MethodGet || method == http.MethodHead
}

// requestTime is how long the service behind a row may take when Options do not say otherwise.
const requestTime = 10 * time.Second

// requestContext is the context of a request. It carries what is known about the request, names its principal to the
// database, and ends at the deadline or when the request is answered: then running queries are interrupted, and writes that
// still wait in the queue are cancelled.
type requestContext struct {
	context.Context
	end       context.CancelFunc
	info      *endpoint.Info
	callerKey any    // Options.CallerKey
	caller    string // a user, an API key or a network

	responderKey any        // Options.ResponderKey
	responder    *responder // of a creating request
}

// restart sets the deadline; zero: none. No goroutine may be waiting for the end.
func (c *requestContext) restart(at time.Time) {
	if c.end != nil {
		c.end()
	}
	if at.IsZero() {
		c.Context, c.end = context.WithCancel(context.Background())
	} else {
		c.Context, c.end = context.WithDeadline(context.Background(), at)
	}
}

// Value returns the caller, what is known about the request, or for the database the principal and the responder.
func (c *requestContext) Value(key any) any {
	switch key.(type) {
	case access.ContextKey:
		return c.info.Caller
	case endpoint.InfoKey:
		return c.info
	}
	switch {
	case key == c.callerKey:
		return c.caller
	case key == c.responderKey && c.responder != nil:
		return c.responder
	}
	return c.Context.Value(key)
}

// restartTime restarts the time of a request that may have a long body, once the body has arrived. A row whose service bounds
// its own time has no deadline.
func (s *Server) restartTime(r *call) error {
	if r.row.OwnTime {
		r.context.restart(time.Time{})
	} else if r.row.BodyLimit() > endpoint.DefaultMaxBody {
		r.context.restart(time.Now().Add(s.RequestTime))
	}
	return nil
}

// expired converts the error of a request that has reached its deadline. The result has no cause: under load it would fill
// the log.
func expired(err error) error {
	if errors.Is(err, context.DeadlineExceeded) && apierr.Of(err).Status == http.StatusInternalServerError {
		return apierr.DeadlineExceeded
	}
	return err
}

// Uses notes which endpoints users call.
type Uses interface {
	// NoteUse is called after the service behind a row has succeeded, with the key of the row and the values in its path. It must be quick
	// and must not keep the texts.
	NoteUse(caller *access.Caller, row *endpoint.Endpoint, key string, values []string)
}

// callHandler decodes the input, calls the service behind the row and writes its result.
func (s *Server) callHandler(r *call) error {
	s.nameIgnored(r)
	// Answers of public POST requests, such as tokens, must not be cached either (RFC 6749, section 5.1).
	if !r.row.Access.IsPublic() || r.row.Method == http.MethodPost {
		r.fiber.Response().Header.SetCanonical(nameCacheControl, valueNoStore)
	}
	if len(r.row.Doc.Headers) > 0 {
		header := func(name string) string { return string(r.fiber.Request().Header.Peek(name)) }
		if err := r.row.BindDevice(&r.Info, header); err != nil {
			return err
		}
	}
	ctx, err := s.withIdempotency(r)
	if err != nil {
		return err
	}
	r.request.Row = &r.row.Endpoint
	if wanted, mark := wantsCSV(r); wanted {
		err := s.answerCSV(ctx, r, mark)
		s.noteUse(r, err)
		return err
	}
	s.beginExplanation(r)
	result, err := r.row.Handle.Serve(ctx, &r.request)
	s.answerExplanation(r)
	s.noteUse(r, err)
	if err != nil || result.Sent {
		return err
	}
	return s.answer(r, result)
}

// nameIgnored names the query parameters that have no effect in a header of the answer, and in the log of requests.
func (s *Server) nameIgnored(r *call) {
	if len(r.fiber.Request().URI().QueryString()) == 0 {
		return
	}
	if r.ignored = r.row.Handle.Ignored(r.fiber.Request().URI().QueryArgs()); r.ignored != "" {
		r.fiber.Response().Header.Set(endpoint.IgnoredHeader, r.ignored)
	}
}

// noteUse notes a request that succeeded.
func (s *Server) noteUse(r *call, err error) {
	if err == nil && s.Uses != nil && r.Caller != nil {
		s.Uses.NoteUse(r.Caller, &r.row.Endpoint, r.row.key, r.request.Params)
	}
}
