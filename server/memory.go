package server

import (
	"context"

	"kontor/server/apierr"
)

// Memory says whether this process may use what it remembers of sessions, grants and keys.
type Memory interface {
	// Remembers reports whether this process has heard of all changes that were acknowledged before. It must take nanoseconds.
	Remembers() bool
	// Renew reads again what has changed, except sessions and keys of callers: their caches ask Remembers.
	Renew(ctx context.Context) error
}

// takePolicy takes the policy that is in force for the request. A node of a shared database that may have missed changes reads
// everything again: a change that another node has acknowledged before counts for this request. What the process remembers must not
// be used before this step.
func (s *Server) takePolicy(r *call) error {
	if s.Memory != nil && !s.Memory.Remembers() {
		if err := s.Memory.Renew(&r.context); err != nil {
			return apierr.AuthUnavailable.Wrap(err)
		}
	}
	if s.Policy != nil {
		r.policy = s.Policy.Load()
	}
	return nil
}
