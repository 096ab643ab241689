package server

import "kontor/server/apierr"

// checkAssurance rejects callers whose authentication is not recent enough for the row, and users who have not enrolled a required
// second factor in time. It also keeps service accounts from rows for people. All is decided from the session in memory.
func (s *Server) checkAssurance(r *call) error {
	if !r.row.Access.TakesBearer() {
		return nil
	}
	if r.row.PeopleOnly && r.Caller.SignedIn.Machine {
		return apierr.PersonRequired
	}
	if !r.row.WithoutFactor && r.Caller.SignedIn.MustEnrol(r.Now) {
		return apierr.FactorRequired
	}
	if r.row.Assurance.Condition() != "" {
		return nil // the service decides whether the request needs it
	}
	return r.row.Assurance.Check(r.Caller.SignedIn, r.Now)
}
