package access

import (
	"context"
	"maps"
	"slices"
	"time"
)

// Caller is the principal of a request: a signed-in user, a service account, the holder of an API key, or an anonymous client (an empty Caller). It is shared
// between requests of a session and must not be changed.
type Caller struct {
	UserID    string
	SessionID string   // or the id of the token of a service account
	KeyID     string   // the API key, on routes that take one
	Scopes    []string // names of the endpoints that the API key or token of a service account may call; nil: no restriction
	Roles     []string // role ids of the user, see [HeldRoles]
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

// ActsForBank reports whether what the caller records of a type is the work of the bank: they may update or read all of its records.
func (c *Caller) ActsForBank(t RecordType) bool { return c.May(t, Update) || c.May(t, ReadAll) }

// Source returns the role or user whose grant gives the caller a permission on a type.
func (c *Caller) Source(t RecordType, p Permission) (source, id string, ok bool) {
	return c.holder(func(principal string) bool { return c.policy.Permissions(principal, t).Has(p) })
}

// EndpointSource returns the role or user whose grant lets the caller call an endpoint.
func (c *Caller) EndpointSource(endpoint string) (source, id string, ok bool) {
	return c.holder(func(principal string) bool { return c.policy.MayCall(principal, endpoint) })
}

// holder returns the first role of the caller that holds a right, or else the user who holds it.
func (c *Caller) holder(holds func(principal string) bool) (source, id string, ok bool) {
	if c.policy == nil {
		return "", "", false
	}
	for _, role := range c.Roles {
		if holds(role) {
			return "role", role, true
		}
	}
	if holds(c.UserID) {
		return "user", c.UserID, true
	}
	return "", "", false
}

// MayCall reports whether the caller or one of the caller's roles has the grant on the endpoint.
func (c *Caller) MayCall(endpoint string) bool {
	_, _, granted := c.EndpointSource(endpoint)
	return granted
}

// GivenRole reports whether the caller has a role that somebody gave them.
func (c *Caller) GivenRole() bool {
	return slices.ContainsFunc(c.Roles, func(role string) bool { return role != Everyone })
}

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

// The assurance levels of a session, named as in NIST SP 800-63B.
const (
	OneFactor  = "aal1"
	TwoFactors = "aal2"
)

// Authentication describes how the session of a caller was authenticated.
type Authentication struct {
	At        time.Time // the latest authentication by any factor
	FactorAt  time.Time // the latest verification of a second factor or a passkey; zero: never
	ACR       string    // OneFactor or TwoFactors
	HasFactor bool      // the user has an active second factor
	Machine   bool      // the caller is a service account, which cannot authenticate again
	EnrolBy   time.Time // by when the user must enrol a second factor; zero: they need not
}

// clockLeeway is the tolerance for a clock that was set back.
const clockLeeway = 5 * time.Second

// Fresh reports whether the session was authenticated within a time before now.
func (a Authentication) Fresh(now time.Time, within time.Duration) bool {
	return recent(a.At, now, within)
}

// FactorFresh reports whether the session is fresh, and whether a user with a second factor has shown one within a time before
// now.
func (a Authentication) FactorFresh(now time.Time, within time.Duration) bool {
	return a.Fresh(now, within) && (!a.HasFactor || recent(a.FactorAt, now, within))
}

// MustEnrol reports whether the user may do nothing before they enrol a second factor.
func (a Authentication) MustEnrol(now time.Time) bool {
	return !a.HasFactor && !a.EnrolBy.IsZero() && !now.Before(a.EnrolBy)
}

// recent reports whether a time lies within a duration before now. A time in the future does not: otherwise a session would stay
// fresh for as long as the clock was set back.
func recent(at, now time.Time, within time.Duration) bool {
	return !at.After(now.Add(clockLeeway)) && now.Before(at.Add(within))
}

// Staff reports whether a principal works for the bank: it is the role Administrator, or it may read all records of some
// type. A user is staff when they or one of their roles are.
func (p *Policy) Staff(principal string) bool {
	return principal == Administrator || slices.ContainsFunc(p.types[principal], readsAll)
}

func readsAll(held Permission) bool { return held&ReadAll != 0 }

// StaffPrincipals returns the ids of all roles and users for which [Policy.Staff] is true, in their order.
func (p *Policy) StaffPrincipals() []string {
	ids := []string{Administrator}
	for id, held := range p.types {
		if id != Administrator && slices.ContainsFunc(held, readsAll) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// Staff reports whether the caller works for the bank: see [Policy.Staff].
func (c *Caller) Staff() bool {
	if c.policy == nil || c.UserID == "" {
		return false
	}
	return slices.ContainsFunc(c.Roles, c.policy.Staff) || c.policy.Staff(c.UserID)
}

// Subject declares whose rights an operation uses, gives away or takes away: those of a user, or of a role. A caller must hold every
// right that the subject holds, or be an administrator. Otherwise callers who may reset the sign-in of others could become any of
// them. The zero Subject is no decision.
type Subject struct {
	kind   SubjectKind
	param  string
	reason string
}

// SubjectKind is the kind of record that the path names, from which the subject is found.
type SubjectKind uint8

// The kinds.
const (
	SubjectUndecided  SubjectKind = iota
	SubjectUser                   // a user
	SubjectSelf                   // the caller: the handler refuses all others, whatever they hold
	SubjectAccount                // a service account, which is a user
	SubjectCredential             // the user who has a credential
	SubjectInvitation             // the roles that an invitation gives
	SubjectRole                   // a role
	SubjectGrant                  // the user or role that has a grant
	SubjectPersona                // the users who are, or were, a persona
	SubjectExempt                 // none
)

// The following functions return a subject by the name of the path's parameter with the id.

// UserIn returns the user with the id. Operations of users on themselves need no comparison.
func UserIn(param string) Subject { return Subject{kind: SubjectUser, param: param} }

// SelfIn returns the caller, whose id the path must have. The handler checks it, and a test of all rows does.
func SelfIn(param string) Subject { return Subject{kind: SubjectSelf, param: param} }

// AccountIn returns the user of a service account.
func AccountIn(param string) Subject { return Subject{kind: SubjectAccount, param: param} }

// CredentialIn returns the user who has a credential.
func CredentialIn(param string) Subject { return Subject{kind: SubjectCredential, param: param} }

// InvitationIn returns the roles of an invitation.
func InvitationIn(param string) Subject { return Subject{kind: SubjectInvitation, param: param} }

// RoleIn returns a role.
func RoleIn(param string) Subject { return Subject{kind: SubjectRole, param: param} }

// GrantIn returns the user or role that has a grant.
func GrantIn(param string) Subject { return Subject{kind: SubjectGrant, param: param} }

// PersonaIn returns the users who are, or were, a persona.
func PersonaIn(param string) Subject { return Subject{kind: SubjectPersona, param: param} }

// NoSubject states why an operation needs no comparison of rights.
func NoSubject(reason string) Subject { return Subject{kind: SubjectExempt, reason: reason} }

// Kind returns the kind.
func (s Subject) Kind() SubjectKind { return s.kind }

// Param returns the name of the path's parameter; empty for none.
func (s Subject) Param() string { return s.param }

// Reason returns why there is no subject.
func (s Subject) Reason() string { return s.reason }

// Lacking returns the rights that a holder has by grants on types and endpoints and that the caller does not have, in a fixed
// order: "customers:update", "GET /v1/audit". Only an administrator has the rights of an administrator. Endpoints that everyone may call
// are no rights in this sense. Only administrators have the rights of the role Everyone itself: they decide what everyone may call.
func (c *Caller) Lacking(holder *Caller) []string {
	switch {
	case c.Administrator():
		return nil
	case holder.Administrator(), holder.UserID == "" && slices.Contains(holder.Roles, Everyone):
		return []string{"administrator"}
	}
	var lacking []string
	for _, t := range recordTypes {
		for _, name := range holder.Permissions(t).Names() {
			if p, _ := ParsePermission(name); !c.May(t, p) {
				lacking = append(lacking, t.Name+":"+name)
			}
		}
	}
	for _, key := range holder.endpoints() {
		if !c.MayCall(key) && !holder.policy.MayCall(Everyone, key) {
			lacking = append(lacking, key)
		}
	}
	return lacking
}
