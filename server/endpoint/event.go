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
	Denial       EventKind = "denial"   // a request that was refused with 403
	Throttling   EventKind = "throttle" // a request that was refused with 429
	Recovery     EventKind = "recovery" // a step of regaining access to an account
	Reading      EventKind = "read"     // a look at what few may see
)

// Event is something that concerns the security of the service, for the audit trail. Handlers report one with [Report];
// the server completes it with who and where.
type Event struct {
	Kind    EventKind
	Action  string // such as "customers.kyc_read"
	RecType string
	RecID   string
	Subject string // who or what was tried, where no record says so; a keyed hash, never a name
	Note    string // one word more, such as "document_numbers"

	// Completed by the server.
	At        time.Time
	Actor     string // id of the user or API key; empty for nobody
	Session   string
	Network   string // see [AuditNetwork]
	RequestID string
	Endpoint  string // as grants name it
}

// Report hands an event to the audit trail once the request has been answered. Outside a request it does nothing.
func Report(ctx context.Context, e Event) {
	if i := Of(ctx); i != noRequest {
		i.events = append(i.events, e)
	}
}

// Events are what was reported during the request.
func (i *Info) Events() []Event { return i.events }

// AuditNetwork is a client's address as the audit trail keeps it: the first 24 bits of an IPv4 address, the first 48 of
// an IPv6 address. That is enough to recognise an attack and to block a provider's network, and names no household. An
// invalid address is empty.
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
