package endpoint

import (
	"context"
	"net/netip"
	"strings"
	"time"

	"kontor/server/access"
	"kontor/server/apierr"
)

// Context is the context of one request. Its strings are copies: it may outlive the request.
type Context struct {
	context.Context
	Caller    *access.Caller
	Language  string // en, de, fr or it
	RequestID string
	Address   netip.Addr // of the client, behind trusted proxies
	DeviceID  string     // X-Device-ID

	DeviceToken string    // X-Device-Token, of a sign-in
	IfMatch     string    // the header as sent
	Now         time.Time // when the request came in, by the service's clock

	events []Event // see Report
}

type contextKey struct{}

// Value gives the caller under [access.ContextKey] and the whole of it to the functions of this package.
func (c *Context) Value(key any) any {
	switch key.(type) {
	case access.ContextKey:
		return c.Caller
	case contextKey:
		return c
	default:
		return c.Context.Value(key)
	}
}

var nowhere = &Context{Language: "en"}

// Of gives what is known about the request of a context; outside a request an empty Context in English.
func Of(ctx context.Context) *Context {
	if c, ok := ctx.Value(contextKey{}).(*Context); ok {
		return c
	}
	return nowhere
}

// Language is the language of the request: en, de, fr or it.
func Language(ctx context.Context) string { return Of(ctx).Language }

// Network is the part of the client's address that is counted as one client: /32 for IPv4, /64 for IPv6.
func (c *Context) Network() string { return Network(c.Address) }

// unknownNetwork is where clients count whose address a proxy does not name.
const unknownNetwork = "unknown"

// Network is the part of an address that is counted as one client: /32 for IPv4, /64 for IPv6, where a single
// subscriber usually holds the whole prefix.
func Network(address netip.Addr) string {
	if !address.IsValid() {
		return unknownNetwork
	}
	address = address.Unmap()
	if address.Is6() {
		if prefix, err := address.WithZone("").Prefix(64); err == nil {
			return prefix.String()
		}
	}
	return address.String()
}

// CheckMatch compares If-Match with the state of the record that is about to change (RFC 9110, section 13.1.1). Call it
// in the transaction that changes the record. Without the header everything matches. It returns
// [apierr.PreconditionFailed].
func CheckMatch(ctx context.Context, etag string) error {
	header := Of(ctx).IfMatch
	if header == "" || matches(header, etag, false) {
		return nil
	}
	return apierr.PreconditionFailed
}

// NoneMatch reports whether If-None-Match names the tag, so that 304 is the answer (RFC 9110, section 13.1.2).
func NoneMatch(header, etag string) bool { return header != "" && matches(header, etag, true) }

// matches looks for a tag in a list of quoted tags. The weak comparison passes over W/.
func matches(header, etag string, weak bool) bool {
	for candidate := range strings.SplitSeq(header, ",") {
		candidate = strings.TrimSpace(candidate)
		if candidate == "*" {
			return true
		}
		if weak {
			candidate = strings.TrimPrefix(candidate, "W/")
		}
		if candidate == `"`+etag+`"` {
			return true
		}
	}
	return false
}
