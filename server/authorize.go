package server

import (
	"context"
	"net/http"
	"net/netip"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/utils"
	"github.com/google/uuid"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
)

const apiKeyHeader = "X-API-Key"

// Authenticator authenticates callers.
type Authenticator interface {
	// Known returns the caller of a bearer token from memory alone, if it was verified before and its session is active. Tokens
	// of service accounts may restrict the client's address, from. The token is valid during the call only: it must not be kept.
	Known(token string, from netip.Addr) (caller *access.Caller, ok bool)
	// Bearer verifies the bearer token of a request and its session. It reads with the request's UserContext. It returns
	// apierr.Unauthorized, or apierr.AuthUnavailable when neither cache nor table can be read.
	Bearer(c *fiber.Ctx) (*access.Caller, error)
	// APIKey verifies an API key. It returns apierr.Unauthorized.
	APIKey(ctx context.Context, key string) (*access.Caller, error)
	// Session returns the caller of a bearer token with their present roles, without a policy. It returns apierr.Unauthorized when
	// the session has ended, and apierr.AuthUnavailable when it cannot be read.
	Session(ctx context.Context, caller *access.Caller) (*access.Caller, error)
}

// recognizeCaller finds the caller of a bearer token that is known in memory. Such a request is not counted for its network.
func (s *Server) recognizeCaller(r *call) error {
	if !r.row.Access.TakesBearer() || repeated(&r.fiber.Request().Header, fiber.HeaderAuthorization) {
		return nil
	}
	token := utils.UnsafeString(endpoint.CutBearer(r.fiber.Request().Header.PeekCanonical(nameAuthorization))) // not copied
	if caller, ok := s.Auth.Known(token, r.Address); ok {
		r.caller, r.recognized = *caller.WithPolicy(r.policy), true
	}
	return nil
}

// checkCredentials rejects requests with both a bearer token and an API key, and repeated credentials.
func (s *Server) checkCredentials(r *call) error {
	header := &r.fiber.Request().Header
	hasKey := len(header.PeekCanonical(nameAPIKey)) > 0
	switch rule := r.row.Access; {
	case rule.TakesBearer():
		if !r.recognized { // recognizeCaller has counted them
			if err := checkSingle(header, fiber.HeaderAuthorization); err != nil {
				return err
			}
		}
		if hasKey && endpoint.BearerToken(r.fiber) != "" {
			return apierr.Invalid(apiKeyHeader, "invalid.key_and_bearer")
		}
	case rule.TakesAPIKey() && hasKey:
		if len(header.Peek(fiber.HeaderAuthorization)) > 0 {
			return apierr.Invalid(apiKeyHeader, "invalid.key_and_bearer")
		}
		return checkSingle(header, apiKeyHeader)
	}
	return nil
}

// authenticate verifies the credentials that the row asks for.
func (s *Server) authenticate(r *call) error {
	switch rule := r.row.Access; {
	case r.recognized || rule.IsPublic():
		return nil
	case rule.TakesAPIKey():
		return s.authenticateKey(r)
	}
	r.fiber.SetUserContext(&r.context)
	caller, err := s.Auth.Bearer(r.fiber)
	if err != nil {
		return err
	}
	r.caller = *caller.WithPolicy(r.policy)
	return nil
}

// authenticateKey verifies an API key. A valid key takes its request out of the count of the network, so that only wrong keys
// remain counted there. A network that has used up its limit is rejected before, even with a valid key: otherwise the
// difference between the answers would confirm guesses.
func (s *Server) authenticateKey(r *call) error {
	key := string(r.fiber.Request().Header.Peek(apiKeyHeader))
	if key == "" {
		return apierr.Unauthorized
	}
	caller, err := s.Auth.APIKey(&r.context, key)
	if err != nil {
		return err
	}
	s.refund(r, endpoint.Network(r.Address))
	r.caller = *caller
	return nil
}

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
		if !r.Caller.GivenRole() {
			reason = reasonNoRole
		}
		return apierr.NoAccess.Because(reason).Detail("endpoint", r.row.key)
	}
	if t, permission, ok := rule.Record(); ok && permission == access.Create && !r.Caller.May(t, access.Create) {
		return apierr.NoAccess.Because(reasonPermission).Detail("permission", t.Name+":"+permission.String())
	}
	return nil
}

// checkPerson keeps service accounts from rows for people, and rejects users who have not enrolled a required second factor in time.
func (s *Server) checkPerson(r *call) error {
	if !r.row.Access.TakesBearer() {
		return nil
	}
	if (r.row.PeopleOnly || r.row.Assurance.Always()) && r.Caller.SignedIn.Machine {
		return apierr.PersonRequired
	}
	if !r.row.WithoutFactor && r.Caller.SignedIn.MustEnrol(r.Now) {
		return apierr.FactorRequired
	}
	return nil
}

// checkAssurance rejects callers whose authentication is not recent enough for the row, decided from the session in memory. People
// authenticate again only for what can succeed: malformed input, a missing record and a missing right are reported first. The service
// decides about rows with a condition.
func (s *Server) checkAssurance(r *call) error {
	if !r.row.Assurance.Always() {
		return nil
	}
	stale := r.row.Assurance.Check(r.Caller.SignedIn, r.Now, s.DecisionFor)
	if stale == nil {
		return nil
	}
	r.request.Row = &r.row.Endpoint
	in, err := r.row.Handle.Check(&r.context, &r.request)
	if err != nil {
		return err
	}
	if r.row.Find == nil {
		return stale
	}
	ids := make([]string, len(r.request.Params))
	for i, given := range r.request.Params {
		ids[i] = strings.ToLower(given)
	}
	err = r.row.Find(&r.context, ids, in)
	if err == nil || apierr.Of(err).Status == http.StatusConflict { // a conflict is for callers who may change the record
		return stale
	}
	return err
}

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

// failedSignIns maps the errors for wrong secrets to the action of the audit trail. Handlers that know more about a failure
// report it themselves.
var failedSignIns = map[string]string{
	apierr.InvalidRefresh.Code:      "auth.refresh_refused",
	apierr.ChallengeExpired.Code:    "auth.challenge_refused",
	apierr.InvalidOTP.Code:          "users.otp_refused",
	apierr.OTPExpired.Code:          "users.otp_refused",
	apierr.OTPAttemptsExceeded.Code: "users.otp_refused",
}

// reportEvents reports the security events of a request: those of the handler, that of the row for a success, and rejections.
func (s *Server) reportEvents(r *call, status int) {
	if s.Observe == nil || r.row == nil {
		return
	}
	reported := r.Events()
	for _, e := range reported {
		s.report(r, e)
	}
	switch {
	case status < http.StatusBadRequest:
		if r.row.Reports.Action != "" {
			s.report(r, r.row.Reports)
		}
	case len(reported) > 0: // the handler reported the cause
	case failedSignIns[r.refused] != "":
		s.report(r, endpoint.Event{Kind: endpoint.FailedSignIn, Action: failedSignIns[r.refused]})
	case status == http.StatusForbidden:
		s.report(r, endpoint.Event{Kind: endpoint.Denial, Action: "access.denied"})
	case status == http.StatusTooManyRequests:
		s.report(r, endpoint.Event{Kind: endpoint.Throttling, Action: "access.throttled"})
	case status == http.StatusUnauthorized && r.row.Access.TakesAPIKey() && len(r.fiber.Request().Header.Peek(apiKeyHeader)) > 0:
		s.report(r, endpoint.Event{Kind: endpoint.FailedSignIn, Action: "api_keys.refused"})
	}
}

// report completes an event with time, actor, origin and record, and passes it on.
func (s *Server) report(r *call, e endpoint.Event) {
	e.At, e.RequestID, e.Endpoint = r.Now, r.AuditID, r.row.key
	e.Network, e.Session = endpoint.AuditNetwork(r.Address), r.Caller.SessionID
	if e.Actor = r.Caller.UserID; e.Actor == "" {
		e.Actor = r.Caller.KeyID
	}
	if t, _, ok := r.row.Access.Record(); ok && e.RecType == "" {
		e.RecType = t.Name
	}
	if e.RecID == "" && len(r.request.Params) > 0 && !r.row.SecretID {
		if id, err := uuid.Parse(r.request.Params[len(r.request.Params)-1]); err == nil { // other values may be anything that a client sent
			e.RecID = id.String()
		}
	}
	s.Observe(e)
}

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
