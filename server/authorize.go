package server

import (
	"kontor/server/access"
	"kontor/server/apierr"
)

// The reasons of a 403 that the request has without a record.
const (
	reasonScope      = "scope"      // the API key or token is not for the endpoint
	reasonNoRole     = "no_role"    // the user has no role yet
	reasonEndpoint   = "endpoint"   // no role of the user has the endpoint
	reasonPermission = "permission" // no role of the user may create records of the type
)

// authorize checks the grant on the endpoint, the scope of an API key or of the token of a service account, and for rows that create, the permission to create
// records of the type. Other permissions on records are checked by the statements that read them. Each refusal names its reason.
func (s *Server) authorize(r *call) error {
	rule := r.row.Access
	switch {
	case rule.IsPublic():
		return nil
	case !r.Caller.InScope(r.row.Name):
		return apierr.NoAccess.Because(reasonScope).Detail("endpoint", r.row.key)
	case rule.TakesAPIKey():
		return nil
	case !r.Caller.MayCall(r.row.key):
		reason := reasonEndpoint
		if len(r.Caller.Roles) == 0 {
			reason = reasonNoRole
		}
		return apierr.NoAccess.Because(reason).Detail("endpoint", r.row.key)
	}
	if t, permission, ok := rule.Record(); ok && permission == access.Create && !r.Caller.May(t, access.Create) {
		return apierr.NoAccess.Because(reasonPermission).Detail("permission", t.Name+":"+permission.String())
	}
	return nil
}
