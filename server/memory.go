package server

import (
	"context"

	"kontor/server/apierr"
	"kontor/server/ratelimit"
)

// Memory says whether this process may use what it remembers of sessions, grants and keys.
type Memory interface {
	// Remembers reports whether this process has received all changes that were acknowledged before. It must take nanoseconds.
	Remembers() bool
	// Renew reads the policy again, if it has changed, and keys of the database. Authentication reads for itself what it needs.
	Renew(ctx context.Context) error
}

// takePolicy takes the policy that is in force for the request. A node of a shared database that may have missed changes reads
// everything again: a change that another node has acknowledged before counts for this request. Later steps must not use the
// memory without it. Probes need nothing of it. Other public rows need rate-limit rules only, and go on with those in memory
// when they cannot be read.
func (s *Server) takePolicy(r *call) error {
	public := r.row.Access.IsPublic()
	if s.Memory != nil && !(public && r.row.Limit == ratelimit.None) && !s.Memory.Remembers() {
		if err := s.Memory.Renew(&r.context); err != nil && !public {
			return apierr.AuthUnavailable.Wrap(err)
		}
	}
	if s.Policy != nil {
		r.policy = s.Policy.Load()
	}
	return nil
}
