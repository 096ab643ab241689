package server

import (
	"time"

	"kontor/server/endpoint"
)

// Requests keeps answered requests for administrators.
type Requests interface {
	// Note is called once for each answered request, before its connection takes the next one. It must be quick, must not keep
	// anything of the request that it does not copy, and must be safe for concurrent use.
	Note(a endpoint.Answered)
}

// noteRequest passes an answered request on. Files of the console are no requests of the API.
func (s *Server) noteRequest(r *call, status int, took time.Duration) {
	if s.Requests == nil || r.row == nil && r.refusal == nil {
		return
	}
	a := endpoint.Answered{At: r.Now, Took: took, Status: status, Refusal: r.refusal, Caller: r.Caller, RequestID: r.RequestID, Fiber: r.fiber}
	if r.row != nil {
		a.Row = &r.row.Endpoint
	}
	s.Requests.Note(a)
}
