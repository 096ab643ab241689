package server

import (
	"context"
	"log/slog"
	"net/http"

	"kontor/server/endpoint"
)

const (
	// explainHeader asks for an explanation, with the value "true".
	explainHeader = "X-Explain"
	// explanationHeader has it: JSON on one line, an array of steps.
	explanationHeader = "X-Explanation"
)

// beginExplanation prepares the explanation of a list: for an administrator who asks for it, and for the log at the level debug. The header
// of all other callers has no effect: statements, and the time that single steps take, are not for them.
func (s *Server) beginExplanation(r *call) {
	if r.row.Method != http.MethodGet || !r.row.Handle.Listed() {
		return
	}
	thorough := r.asksForExplanation()
	if thorough || s.Log.Enabled(context.Background(), slog.LevelDebug) {
		r.Explanation = &endpoint.Explanation{Thorough: thorough}
	}
}

func (r *call) asksForExplanation() bool {
	return r.initials.may(explainHeader) && string(r.fiber.Request().Header.Peek(explainHeader)) == "true" && r.caller.Administrator()
}

// answerExplanation writes the explanation to the header of the answer, also of one that failed, and to the log.
func (s *Server) answerExplanation(r *call) {
	if r.Explanation == nil || len(r.Explanation.Steps) == 0 {
		return
	}
	if r.Explanation.Thorough {
		r.fiber.Response().Header.Set(explanationHeader, r.Explanation.Header())
	}
	r.Explanation.Log(func(attrs ...slog.Attr) {
		attrs = append(attrs, slog.String("endpoint", r.row.key), slog.String("request_id", r.RequestID))
		s.Log.LogAttrs(context.Background(), slog.LevelDebug, "list", attrs...)
	})
}
