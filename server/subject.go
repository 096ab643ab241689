package server

import (
	"context"

	"github.com/google/uuid"

	"kontor/server/apierr"
	"kontor/server/endpoint"
)

// Rights compares the rights of callers with those of the subjects of operations.
type Rights interface {
	// CheckSubject returns an error unless the caller of the context holds every right that the subject of a row holds. It returns nil
	// for an unknown subject: the service behind the row answers.
	CheckSubject(ctx context.Context, row *endpoint.Endpoint, id string) error
}

// checkSubject keeps callers from operations on users and roles that hold more than they do. See access.Subject.
func (s *Server) checkSubject(r *call) error {
	if r.row.subject < 0 {
		return nil
	}
	given := r.request.Params[r.row.subject]
	id, err := uuid.Parse(given)
	if err != nil || len(given) != len(id.String()) {
		return apierr.Invalid(r.row.Subject.Param(), "invalid.uuid") // as the decoding does: what is not compared is not done
	}
	if id.String() == r.Caller.UserID {
		return nil
	}
	return s.Rights.CheckSubject(&r.context, &r.row.Endpoint, id.String())
}
