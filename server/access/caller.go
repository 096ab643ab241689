package access

import (
	"context"
	"maps"
	"slices"
)

// Caller is the principal of a request: a signed-in user, a service account, the holder of an API key, or an anonymous client (an empty Caller). It is shared
// between requests of a session and must not be changed.
type Caller struct {
	UserID    string
	SessionID string   // or the id of the token of a service account
	KeyID     string   // the API key, on routes that take one
	Scopes    []string // names of the endpoints that the API key or token of a service account may call; nil: no restriction
	Roles     []string // role ids of the user
	SignedIn  Authentication

	policy *Policy
}

// WithPolicy returns a copy of the caller whose permissions are those of the policy.
func (c Caller) WithPolicy(p *Policy) *Caller {
	c.policy = p
	return &c
}

// InScope reports whether the key or token of the caller is for the endpoint with the name.
func (c *Caller) InScope(name string) bool { return c.Scopes == nil || slices.Contains(c.Scopes, name) }

// Permissions returns the permissions that grants on a type give the caller or one of the caller's roles.
func (c *Caller) Permissions(t RecordType) Permission {
	if c.policy == nil {
		return None
	}
	held := c.policy.Permissions(c.UserID, t)
	for _, role := range c.Roles {
		held |= c.policy.Permissions(role, t)
	}
	return held
}

// May reports whether grants on a type give the caller the permission.
func (c *Caller) May(t RecordType, p Permission) bool { return c.Permissions(t).Has(p) }

// Source returns the role or user whose grant gives the caller a permission on a type.
func (c *Caller) Source(t RecordType, p Permission) (source, id string, ok bool) {
	if c.policy == nil {
		return "", "", false
	}
	for _, role := range c.Roles {
		if c.policy.Permissions(role, t).Has(p) {
			return "role", role, true
		}
	}
	if c.policy.Permissions(c.UserID, t).Has(p) {
		return "user", c.UserID, true
	}
	return "", "", false
}

// MayCall reports whether the caller or one of the caller's roles has the grant on the endpoint, or needs none.
func (c *Caller) MayCall(endpoint string) bool {
	if c.policy == nil {
		return false
	}
	if _, own := c.policy.own[endpoint]; own && c.UserID != "" && !c.SignedIn.Machine && !c.onlyRegistered() {
		return true
	}
	for _, role := range c.Roles {
		if c.policy.MayCall(role, endpoint) {
			return true
		}
	}
	return c.policy.MayCall(c.UserID, endpoint)
}

// onlyRegistered reports whether the caller still validates their first credential.
func (c *Caller) onlyRegistered() bool { return len(c.Roles) == 1 && c.Roles[0] == Registrant }

// endpoints returns the endpoints on which the caller or one of the caller's roles has a grant, in their order.
func (c *Caller) endpoints() []string {
	if c.policy == nil {
		return nil
	}
	all := map[string]struct{}{}
	for _, principal := range append([]string{c.UserID}, c.Roles...) {
		maps.Copy(all, c.policy.endpoints[principal])
	}
	return slices.Sorted(maps.Keys(all))
}

// Administrator reports whether the caller has the built-in role Administrator.
func (c *Caller) Administrator() bool { return slices.Contains(c.Roles, Administrator) }

// ContextKey is the key under which a context has the caller of its request.
type ContextKey struct{}

// From returns the caller of a request. Without one it returns an empty Caller, which has no permissions.
func From(ctx context.Context) *Caller {
	if caller, ok := ctx.Value(ContextKey{}).(*Caller); ok && caller != nil {
		return caller
	}
	return &Caller{}
}

// With returns a context with the caller, for jobs and tests.
func With(ctx context.Context, caller *Caller) context.Context {
	return context.WithValue(ctx, ContextKey{}, caller)
}
