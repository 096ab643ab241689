package endpoint

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"kontor/server/access"
)

// accounts are the record types whose records make or end the access of users.
var accounts = []access.RecordType{access.Users, access.Credentials, access.Sessions, access.Factors, access.Identities, access.Services,
	access.Roles, access.Grants}

// subjectNames are the parameters of paths that name a user beside another record.
var subjectNames = []string{"user_id", "assignee_id"}

// NeedsSubject reports whether a row must state its [access.Subject]: it changes something of users, roles or grants, or reads so
// much of a user that it takes an assurance.
func (e Endpoint) NeedsSubject() bool {
	if !e.Access.TakesBearer() || e.Method == http.MethodGet && e.Assurance == AnySession {
		return false
	}
	t, _, _ := e.Access.Record()
	return slices.Contains(accounts, t) || strings.HasPrefix(e.Path, "/v1/users/") ||
		slices.ContainsFunc(PathNames(e.Path), func(name string) bool { return slices.Contains(subjectNames, name) })
}

// checkSubject returns an error for a row without a subject that needs one, and for a subject that the path does not have.
func (e Endpoint) checkSubject() error {
	switch e.Subject.Kind() {
	case access.SubjectUndecided:
		if e.NeedsSubject() {
			return errors.New("the subject is not declared: whose rights must the caller hold?")
		}
		return nil
	case access.SubjectExempt:
		if e.Subject.Reason() == "" {
			return errors.New("an exemption from the comparison of rights needs a reason")
		}
		return nil
	}
	switch {
	case !e.Access.TakesBearer():
		return errors.New("a subject needs a signed-in caller")
	case !slices.Contains(PathNames(e.Path), e.Subject.Param()):
		return fmt.Errorf("path has no {%s}, which the subject names", e.Subject.Param())
	}
	return nil
}

// SubjectPosition returns the position of the subject's parameter among those of the path; -1 for rows whose handler needs no
// comparison, because there is no subject or because users do it on themselves only.
func (e Endpoint) SubjectPosition() int {
	if e.Subject.Kind() == access.SubjectSelf {
		return -1
	}
	return slices.Index(PathNames(e.Path), e.Subject.Param())
}
