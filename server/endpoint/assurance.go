package endpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"kontor/server/access"
	"kontor/server/apierr"
)

// FreshFor is the time after an authentication in which a session may do what needs a recent one. Refreshing a token does not
// extend it: a stolen token must not be enough to take over an account or to pass on rights.
const FreshFor = 10 * time.Minute

// DecisionFor is the default of the time after an authentication in which a session may decide about customers: a working day.
const DecisionFor = 12 * time.Hour

type assuranceLevel uint8

const (
	levelAny assuranceLevel = iota
	levelDecision
	levelFresh
	levelSecondFactor
)

// Assurance declares how recently the caller of an endpoint must have authenticated. The zero Assurance accepts any session.
type Assurance struct {
	level assuranceLevel
	when  string
}

// The assurances.
var (
	// AnySession accepts every active session.
	AnySession = Assurance{}
	// Decision requires an authentication by any factor within the time of the setting auth.decision_hours, for decisions about
	// customers.
	Decision = Assurance{level: levelDecision}
	// Fresh requires an authentication by any factor within [FreshFor].
	Fresh = Assurance{level: levelFresh}
	// SecondFactor requires a fresh session, and of users with a second factor that they have shown one within [FreshFor].
	SecondFactor = Assurance{level: levelSecondFactor}
)

// When returns an assurance that only some requests need, with the condition in words. The service behind the row must call
// [RequireAssurance] for these requests.
func (a Assurance) When(condition string) Assurance {
	a.when = condition
	return a
}

// Condition returns the condition in words; empty: every request needs the assurance.
func (a Assurance) Condition() string { return a.when }

// Always reports whether every request needs the assurance.
func (a Assurance) Always() bool { return a.level != levelAny && a.when == "" }

// Level returns the name of the level: any, decision, fresh or second_factor.
func (a Assurance) Level() string {
	switch a.level {
	case levelDecision:
		return "decision"
	case levelFresh:
		return "fresh"
	case levelSecondFactor:
		return "second_factor"
	default:
		return "any"
	}
}

// String returns the level and the condition.
func (a Assurance) String() string {
	if a.when == "" {
		return a.Level()
	}
	return a.Level() + " when " + a.when
}

// Check returns apierr.StaleSession if an authentication does not have the level at the time now. For a service account it returns
// apierr.PersonRequired: no token of a program proves that a person is present. decisionFor is for decisions; zero: [DecisionFor].
func (a Assurance) Check(s access.Authentication, now time.Time, decisionFor time.Duration) error {
	within := FreshFor
	if a.level == levelDecision {
		within = cmp.Or(decisionFor, DecisionFor)
	}
	switch {
	case a.level == levelAny:
		return nil
	case s.Machine:
		return apierr.PersonRequired
	case a.level == levelSecondFactor && s.FactorFresh(now, within), a.level != levelSecondFactor && s.Fresh(now, within):
		return nil
	}
	stale := apierr.StaleSession.Detail("max_age", int(within/time.Second))
	if a.level == levelSecondFactor && s.HasFactor {
		stale = stale.Detail("acr_values", []string{access.TwoFactors})
	}
	return stale
}

// RequireAssurance returns apierr.StaleSession unless the session of the request has the assurance. It is for rows with a
// condition; the server checks all others. It reads no database.
func RequireAssurance(ctx context.Context, a Assurance) error {
	info := Of(ctx)
	return a.Check(access.From(ctx).SignedIn, info.Now, info.DecisionFor)
}

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
