// Package access declares callers, permissions and rules of access.
//
// A permission comes from a grant on a record type or on one record, to a user or to a role, or from a relation to the
// record (such as its creator, a participant or an assignee). Grants on types and on endpoints are few and are kept in
// memory as a [Policy]. Grants on single records are checked by the statement that reads the record.
package access

import (
	"slices"
	"strings"
)

// Permission is an action on records, as a bit, so that a set of permissions is their sum.
type Permission uint8

// The permissions. ReadAll removes the record filter from lists; it implies Read.
const (
	Create Permission = 1 << iota
	Read
	Update
	Delete
	ReadAll

	None Permission = 0
	All             = Create | Read | Update | Delete | ReadAll
)

var permissionNames = []struct {
	name       string
	permission Permission
}{{"create", Create}, {"read", Read}, {"update", Update}, {"delete", Delete}, {"read_all", ReadAll}}

// ParsePermission parses the name of one permission; ok is false for any other text.
func ParsePermission(name string) (p Permission, ok bool) {
	for _, known := range permissionNames {
		if known.name == name {
			return known.permission, true
		}
	}
	return None, false
}

// Names returns the names of the permissions of a set in a fixed order.
func (p Permission) Names() []string {
	names := make([]string, 0, len(permissionNames))
	for _, known := range permissionNames {
		if p&known.permission != 0 {
			names = append(names, known.name)
		}
	}
	return names
}

// String returns the names of the permissions of a set, joined by plus signs.
func (p Permission) String() string {
	return strings.Join(p.Names(), "+")
}

// Has reports whether the set contains all wanted permissions. ReadAll counts as Read, too.
func (p Permission) Has(wanted Permission) bool {
	if p&ReadAll != 0 {
		p |= Read
	}
	return p&wanted == wanted
}

// RecordType is a type of records on which permissions are granted. Its id never changes.
type RecordType struct {
	ID    string // UUID
	Name  string // plural, as in paths
	Shown string // the endpoint that shows a record, such as GET /v1/payers/{id}; empty: none does
	index int
}

// String returns the name.
func (t RecordType) String() string { return t.Name }

// Index returns the position in [RecordTypes], for tables by type.
func (t RecordType) Index() int { return t.index }

// The record types.
var (
	Personas      = recordType("0193a000-0000-7000-8000-000000000001", "personas", "GET /v1/personas/{persona_id}")
	Customers     = recordType("0193a000-0000-7000-8000-000000000002", "customers", "GET /v1/customers/{id}")
	Payers        = recordType("0193a000-0000-7000-8000-000000000003", "payers", "GET /v1/payers/{id}")
	Users         = recordType("0193a000-0000-7000-8000-000000000004", "users", "GET /v1/users/{id}")
	Credentials   = recordType("0193a000-0000-7000-8000-000000000005", "credentials", "")
	Sessions      = recordType("0193a000-0000-7000-8000-000000000006", "sessions", "")
	Chats         = recordType("0193a000-0000-7000-8000-000000000007", "chats", "GET /v1/chats/{id}")
	Tasks         = recordType("0193a000-0000-7000-8000-000000000008", "tasks", "GET /v1/customers/{customer_id}/tasks/{id}")
	Notifications = recordType("0193a000-0000-7000-8000-000000000009", "notifications", "")
	Deliveries    = recordType("0193a000-0000-7000-8000-00000000000a", "deliveries", "")
	Profiles      = recordType("0193a000-0000-7000-8000-00000000000b", "profiles", "")
	Invoices      = recordType("0193a000-0000-7000-8000-00000000000c", "invoices", "")
	Roles         = recordType("0193a000-0000-7000-8000-00000000000d", "roles", "GET /v1/rbac/roles/{id}")
	Grants        = recordType("0193a000-0000-7000-8000-00000000000e", "grants", "")
	RateLimits    = recordType("0193a000-0000-7000-8000-00000000000f", "rate_limits", "")
	APIKeys       = recordType("0193a000-0000-7000-8000-000000000010", "api_keys", "")
	Audit         = recordType("0193a000-0000-7000-8000-000000000011", "audit", "")
	Factors       = recordType("0193a000-0000-7000-8000-000000000012", "factors", "")
	Identities    = recordType("0193a000-0000-7000-8000-000000000013", "identities", "")
	Services      = recordType("0193a000-0000-7000-8000-000000000014", "service_accounts", "GET /v1/service-accounts/{id}")
	Webhooks      = recordType("0193a000-0000-7000-8000-000000000015", "webhooks", "GET /v1/webhooks/{id}")
)

var recordTypes []RecordType

func recordType(id, name, shown string) RecordType {
	t := RecordType{ID: id, Name: name, Shown: shown, index: len(recordTypes)}
	recordTypes = append(recordTypes, t)
	return t
}

// RecordTypes returns all record types.
func RecordTypes() []RecordType { return slices.Clone(recordTypes) }

// LookupType returns the record type with a name.
func LookupType(name string) (RecordType, bool) {
	for _, t := range recordTypes {
		if t.Name == name {
			return t, true
		}
	}
	return RecordType{}, false
}
