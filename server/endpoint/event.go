package endpoint

import (
	"context"
	"net/netip"
	"time"
)

// EventKind is a kind of security event, as the audit trail names it.
type EventKind string

// The kinds of security events.
const (
	FailedSignIn EventKind = "sign_in"  // a wrong password, code, key or refresh token
	Denial       EventKind = "denial"   // a request that was rejected with 403
	Throttling   EventKind = "throttle" // a request that was rejected with 429
	Recovery     EventKind = "recovery" // a step of regaining access to an account
	Reading      EventKind = "read"     // access to confidential data
	SessionEnd   EventKind = "session"  // a session that ended because its user opened too many
)

// Event is a security event for the audit trail. Handlers report one with [Report]; the server completes it.
type Event struct {
	Kind    EventKind
	Action  string // such as "customers.kyc_read"
	RecType string
	RecID   string
	Subject string // the target of an attempt without a record; a keyed hash, never a name
	Note    string // a further word, such as "document_numbers"

	// Completed by the server.
	At        time.Time
	Actor     string // id of the user or API key; empty if unknown
	Session   string
	Network   string // see [AuditNetwork]
	RequestID string
	Endpoint  string // its key, such as "GET /v1/customers/{id}"
}

// Report passes an event to the audit trail after the request is answered. Outside a request it does nothing.
func Report(ctx context.Context, e Event) {
	if i := Of(ctx); i != noRequest {
		i.events = append(i.events, e)
	}
}

// Events returns the events that were reported during the request.
func (i *Info) Events() []Event { return i.events }

// AuditNetwork returns a client's address in the form of the audit trail: the first 24 bits of an IPv4 address, the first 48
// of an IPv6 address. That is enough to recognize attacks and to block networks, and does not identify a household. It returns
// an empty text for an invalid address.
func AuditNetwork(address netip.Addr) string {
	const ipv4Bits, ipv6Bits = 24, 48
	address = address.Unmap().WithZone("")
	bits := ipv6Bits
	if address.Is4() {
		bits = ipv4Bits
	}
	prefix, err := address.Prefix(bits)
	if err != nil || !prefix.IsValid() {
		return ""
	}
	return prefix.String()
}
