package access

import (
	"slices"
	"sync/atomic"
)

// The built-in roles. They cannot be deleted; their ids never change.
const (
	Administrator = "0193b000-0000-7000-8000-000000000001" // may do everything
	Advisor       = "0193b000-0000-7000-8000-000000000002" // works with all customers
	Customer      = "0193b000-0000-7000-8000-000000000003" // works with records of their own
	Registrant    = "0193b000-0000-7000-8000-000000000004" // validates their first credential
	Everyone      = "0193b000-0000-7000-8000-000000000005" // every active user, for data of their own: see [HeldRoles]
)

// HeldRoles returns the roles that a user holds, of those that they were given. Active people hold Everyone, too, which is not assigned.
// Registrants do not: as long as Registrant is their only role, they have proven no credential. Service accounts do not either: a program
// may call what it was given, and nothing else.
func HeldRoles(given []string, activePerson bool) []string {
	registrant := len(given) == 1 && given[0] == Registrant
	if !activePerson || registrant {
		return given
	}
	return append(slices.Clip(given), Everyone)
}

// Policy is an immutable snapshot of the grants on record types and endpoints and of the stored rate-limit rules.
type Policy struct {
	types     map[string][]Permission // principal (user or role id) → permissions by record type index
	endpoints map[string]map[string]struct{}
	limits    map[string]int
}

// PolicyData is what a [Policy] is built from. A principal is the id of a user or of a role.
type PolicyData struct {
	Types     map[string]map[string]Permission // principal → record type name → permissions
	Endpoints map[string][]string              // principal → endpoints, as "GET /v1/customers/{id}"
	Limits    map[string]int                   // endpoint → requests a minute
}

// NewPolicy builds a snapshot. It skips unknown record types.
func NewPolicy(data PolicyData) *Policy {
	p := &Policy{
		types:     make(map[string][]Permission, len(data.Types)),
		endpoints: make(map[string]map[string]struct{}, len(data.Endpoints)),
		limits:    data.Limits,
	}
	for principal, byName := range data.Types {
		set := make([]Permission, len(recordTypes))
		for name, permissions := range byName {
			if t, ok := LookupType(name); ok {
				set[t.index] |= permissions
			}
		}
		p.types[principal] = set
	}
	for principal, keys := range data.Endpoints {
		p.endpoints[principal] = make(map[string]struct{}, len(keys))
		for _, key := range keys {
			p.endpoints[principal][key] = struct{}{}
		}
	}
	return p
}

// Permissions returns the permissions that grants on a type give one principal.
func (p *Policy) Permissions(principal string, t RecordType) Permission {
	if principal == Administrator {
		return All
	}
	if set := p.types[principal]; set != nil {
		return set[t.index]
	}
	return None
}

// MayCall reports whether one principal has the grant on an endpoint.
func (p *Policy) MayCall(principal, endpoint string) bool {
	if principal == Administrator {
		return true
	}
	_, ok := p.endpoints[principal][endpoint]
	return ok
}

// Limit returns the stored rate limit of an endpoint in requests a minute; ok is false without one.
func (p *Policy) Limit(endpoint string) (perMinute int, ok bool) {
	perMinute, ok = p.limits[endpoint]
	return perMinute, ok
}

// Current holds the policy in force. The zero value denies everything.
type Current struct {
	policy  atomic.Pointer[Policy]
	changed []func()
}

var denyAll = NewPolicy(PolicyData{})

// Load returns the policy in force.
func (c *Current) Load() *Policy {
	if p := c.policy.Load(); p != nil {
		return p
	}
	return denyAll
}

// OnChange registers a function that runs after each new policy is in force and before Store returns. It must be quick.
// Call it before the first request.
func (c *Current) OnChange(f func()) { c.changed = append(c.changed, f) }

// Store puts a policy in force for the next requests.
func (c *Current) Store(p *Policy) {
	c.policy.Store(p)
	for _, f := range c.changed {
		f()
	}
}
