package server

import (
	"errors"
	"net/http"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
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
	(*Server).checkOrigin,          // cors.go: preflights end here
	(*Server).findRoute,            // router.go: 404, 405 and files of the console
	(*Server).checkContentEncoding, // media_type.go: no compressed bodies
	(*Server).echoRequestID,        // authzen.go: the request id of a client of the AuthZEN interface
	(*Server).checkDraining,        // shutdown.go: 503 while the service shuts down
	(*Server).takePolicy,           // memory.go: 503 for a node that can neither hear of changes nor read them
	(*Server).recognizeCaller,      // authenticate.go: a bearer token that is in memory
	(*Server).limitNetwork,         // rate_limit.go: 429, before credentials are verified
	(*Server).checkCredentials,     // authenticate.go: a bearer token or an API key, not both
	(*Server).authenticate,         // authenticate.go: 401
	(*Server).limitCaller,          // rate_limit.go: 429
	(*Server).limitConcurrency,     // concurrency.go: 429
	(*Server).authorize,            // authorize.go: 403
	(*Server).checkAssurance,       // assurance.go: 401 for an authentication that is not recent, 403 without a required second factor
	(*Server).checkSubject,         // subject.go: 403 for an operation on a user or role that holds more than the caller
}

// checksWithBody follow when the caller is authorized.
var checksWithBody = [...]step{
	(*Server).readBody,       // body.go: 413
	(*Server).checkMediaType, // media_type.go: 415
	(*Server).restartTime,    // request_context.go: a long upload does not use up the time of its handler
	(*Server).callHandler,    // handle.go: decoding, rules of the input, service, answer
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
	uploaded  int                     // bytes of the body that count against uploadBudget
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
	defer r.context.end()
	defer s.finish(r)
	defer s.discardUnreadBody(r)
	defer s.releaseBody(r)
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
	r.Caller, r.Transfers = &r.caller, s.transfers
	r.request.Fiber = c
	r.context.start(&r.Info, r.began.Add(s.RequestTime), s.CallerKey)
	return r
}

// reads reports whether the method reads a record without changing it.
func (r *call) reads() bool {
	method := r.fiber.Method()
	return method == http.MethodGet || method == http.MethodHead
}
