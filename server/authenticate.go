package server

import (
	"context"
	"net/netip"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/utils"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
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
