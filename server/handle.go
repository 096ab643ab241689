package server

import (
	"net/http"

	"kontor/server/access"
	"kontor/server/endpoint"
)

// Uses notes which endpoints users call.
type Uses interface {
	// NoteUse is called after the service behind a row has succeeded, with the key of the row and the values in its path. It must be quick
	// and must not keep the texts.
	NoteUse(caller *access.Caller, row *endpoint.Endpoint, key string, values []string)
}

// callHandler decodes the input, calls the service behind the row and writes its result.
func (s *Server) callHandler(r *call) error {
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

// noteUse notes a request that succeeded.
func (s *Server) noteUse(r *call, err error) {
	if err == nil && s.Uses != nil && r.Caller != nil {
		s.Uses.NoteUse(r.Caller, &r.row.Endpoint, r.row.key, r.request.Params)
	}
}
