package server

import (
	"kontor/server/access"
	"kontor/server/apierr"
)

// authorize checks the grant on the endpoint, the scope of an API key or of the token of a service account, and for rows that create, the permission to create
// records of the type. Other permissions on records are checked by the statements that read them.
func (s *Server) authorize(r *call) error {
	rule := r.row.Access
	switch {
	case rule.IsPublic():
		return nil
	case rule.TakesAPIKey():
		if !r.Caller.InScope(r.row.Name) {
			return apierr.NoAccess
		}
		return nil
	case !r.Caller.MayCall(r.row.key) || !r.Caller.InScope(r.row.Name):
		return apierr.NoAccess
	}
	if t, permission, ok := rule.Record(); ok && permission == access.Create && !r.Caller.May(t, access.Create) {
		return apierr.NoAccess
	}
	return nil
}
