package endpoint

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"kontor/server/access"
)

// accounts are the record types whose records make or end the access of users, or act for them.
var accounts = []access.RecordType{access.Users, access.Credentials, access.Sessions, access.Factors, access.Identities, access.Services,
	access.Roles, access.Grants, access.APIKeys, access.Webhooks, access.Deliveries}

// subjectNames are the parameters of paths that name a user beside another record.
var subjectNames = []string{"user_id", "assignee_id"}

// givenNames are the members of bodies that name users, roles or accounts.
var givenNames = []string{"user_id", "userId", "user_ids", "participants", "assignees", "account_id", "role_id", "roles"}

// NeedsSubject reports whether a row must state its [access.Subject]: it changes something of users, roles or grants, names them
// in its body, or reads so much of a user that it takes an assurance.
func (e Endpoint) NeedsSubject() bool {
	if !e.Access.TakesBearer() || e.Method == http.MethodGet && e.Assurance == AnySession {
		return false
	}
	t, _, _ := e.Access.Record()
	return slices.Contains(accounts, t) || strings.HasPrefix(e.Path, "/v1/users/") ||
		slices.ContainsFunc(PathNames(e.Path), func(name string) bool { return slices.Contains(subjectNames, name) }) || e.Handle.names(givenNames)
}

// names reports whether the body of a request may have one of some members.
func (h Handler) names(members []string) bool {
	if h.In == nil || h.In.Kind() != reflect.Struct {
		return false
	}
	return slices.ContainsFunc(reflect.VisibleFields(h.In), func(field reflect.StructField) bool { // also those of embedded structs
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		return slices.Contains(members, name)
	})
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
