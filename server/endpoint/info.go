package endpoint

import (
	"bytes"
	"context"
	"net/netip"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/etag"
)

// Info is what is known about one request. Its strings are copies: it may outlive the request.
type Info struct {
	Caller    *access.Caller
	Language  string // en, de, fr or it
	RequestID string
	AuditID   string     // RequestID in the audit trail; another one if a client has sent what is no random number
	Address   netip.Addr // of the client, behind trusted proxies
	DeviceID  string     // X-Device-ID, of the rows that document it

	DeviceToken string // X-Device-Token, of the rows that document it
	IfMatch     string // the header as sent
	Cookie      string // the header as sent; no session depends on it

	AsksLanguage bool // whether Accept-Language names a language

	Now         time.Time     // when the request arrived, by the service's clock
	DecisionFor time.Duration // the setting auth.decision_hours; zero: the default

	Transfers Transfers // nil outside a server
	Turns     Turns     // likewise
	// Explanation is nil unless it was asked for: then lists note how they read their rows.
	Explanation *Explanation

	events []Event // see Report
}

// InfoKey is the key under which the context of a request has its *[Info].
type InfoKey struct{}

// With returns a context with what is known about a request, for jobs and tests.
func With(ctx context.Context, info *Info) context.Context {
	return context.WithValue(ctx, InfoKey{}, info)
}

var noRequest = &Info{Language: "en"}

// Of returns what is known about the request of a context; outside a request, an empty Info in English.
func Of(ctx context.Context) *Info {
	if info, ok := ctx.Value(InfoKey{}).(*Info); ok {
		return info
	}
	return noRequest
}

// Language returns the language of the request: en, de, fr or it.
func Language(ctx context.Context) string { return Of(ctx).Language }

// Network returns the client's network, see [Network].
func (i *Info) Network() string { return Network(i.Address) }

// unknownNetwork is the network of clients for which a proxy reports no address.
const unknownNetwork = "unknown"

// Network returns the part of an address that counts as one client: /32 for IPv4, and /64 for IPv6, where a single
// subscriber usually has the whole prefix.
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

// BearerToken returns the token of the header Authorization, or an empty text (RFC 6750, section 2.1).
func BearerToken(c *fiber.Ctx) string {
	return string(CutBearer(c.Request().Header.Peek(fiber.HeaderAuthorization)))
}

// CutBearer returns the token in the value of the header Authorization, as a part of it, or nothing.
func CutBearer(header []byte) []byte {
	scheme, token, ok := bytes.Cut(header, []byte{' '})
	if !ok || !strings.EqualFold(string(scheme), "Bearer") {
		return nil
	}
	return bytes.TrimSpace(token)
}

// CheckMatch compares If-Match with the tag of the record that is about to change (RFC 9110, section 13.1.1). It must be
// called in the transaction of the change, or before it if the transaction compares the tag again. Without the header, every
// tag matches. It returns [apierr.PreconditionFailed].
func CheckMatch(ctx context.Context, tag string) error {
	header := Of(ctx).IfMatch
	if header == "" || etag.Match(header, tag) {
		return nil
	}
	return apierr.PreconditionFailed
}

// Headers of requests about the device of the client. A handler gets those that its row lists in its Doc.
const (
	DeviceHeader = "X-Device-ID"
	TokenHeader  = "X-Device-Token"
)

// MaxDeviceID is the maximum number of characters of a device's name.
const MaxDeviceID = 128

// BindDevice sets the device of a request from the headers that the row documents. header returns the value of one. BindDevice returns
// apierr.InvalidInput for a malformed name.
func (e *Endpoint) BindDevice(info *Info, header func(name string) string) error {
	if slices.Contains(e.Doc.Headers, TokenHeader) {
		info.DeviceToken = header(TokenHeader)
	}
	if !slices.Contains(e.Doc.Headers, DeviceHeader) {
		return nil
	}
	id := header(DeviceHeader)
	hidden := func(r rune) bool { return !unicode.IsPrint(r) }
	if !utf8.ValidString(id) || utf8.RuneCountInString(id) > MaxDeviceID || strings.ContainsFunc(id, hidden) {
		return apierr.Invalid(DeviceHeader, "invalid.device_id", apierr.Args{"Max": MaxDeviceID})
	}
	info.DeviceID = id
	return nil
}

// Answered is a request with its answer, for the log of requests. It must not outlive the call that passes it on.
type Answered struct {
	Row       *Endpoint // nil: no endpoint has the path or the method
	At        time.Time // when the request arrived, by the service's clock
	Took      time.Duration
	Status    int
	Refusal   *apierr.Error // nil for a success
	Caller    *access.Caller
	RequestID string
	Ignored   string     // the query parameters without effect, see [Handler.Ignored]
	Fiber     *fiber.Ctx // the request and its answer
}
