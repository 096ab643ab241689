package server

import (
	"net"
	"net/netip"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

// clientAddress is the address that is counted: the peer, or, behind trusted proxies, the right-most address of
// X-Forwarded-For that is not one of them. What stands further left is whatever the client wrote.
//
// Where a trusted proxy names a client that is no address, such as "unknown" or nothing, the address is the zero one: it is
// neither loopback nor the proxy, and all such clients share one network in the limits.
func (s *Server) clientAddress(ctx *fasthttp.RequestCtx) netip.Addr {
	peer, _ := netip.AddrFromSlice(addressBytes(ctx.RemoteAddr()))
	peer = peer.Unmap()
	if len(s.TrustedProxies) == 0 || !s.trusted(peer) {
		return peer
	}
	var forwarded []string
	for _, line := range ctx.Request.Header.PeekAll(fiber.HeaderXForwardedFor) {
		forwarded = append(forwarded, strings.Split(string(line), ",")...)
	}
	for i := len(forwarded) - 1; i >= 0; i-- {
		address, ok := forwardedAddress(forwarded[i])
		if !ok {
			return netip.Addr{}
		}
		if !s.trusted(address) {
			return address
		}
		peer = address
	}
	return peer
}

// forwardedAddress reads one element of X-Forwarded-For. Proxies write an address alone or with a port, IPv6 in brackets or
// without, and some the quotes of RFC 7239, section 6. Zones are local to another machine and are no addresses here.
func forwardedAddress(element string) (netip.Addr, bool) {
	element = strings.Trim(element, " \t")
	if unquoted, ok := strings.CutPrefix(element, `"`); ok {
		if element, ok = strings.CutSuffix(unquoted, `"`); !ok {
			return netip.Addr{}, false
		}
	}
	address, err := netip.ParseAddr(element)
	if err != nil {
		var with netip.AddrPort
		if with, err = netip.ParseAddrPort(element); err == nil {
			address = with.Addr()
		}
	}
	if bare, ok := strings.CutPrefix(element, "["); err != nil && ok {
		if bare, ok = strings.CutSuffix(bare, "]"); ok {
			if address, err = netip.ParseAddr(bare); err == nil && address.Is4() {
				return netip.Addr{}, false // brackets are for IPv6
			}
		}
	}
	if err != nil || address.Zone() != "" || address.IsUnspecified() {
		return netip.Addr{}, false
	}
	return address.Unmap(), true
}

// forwardedHeaders are what a proxy adds. Their presence says that the peer is not the client.
var forwardedHeaders = []string{fiber.HeaderXForwardedFor, fiber.HeaderForwarded, "X-Real-IP", fiber.HeaderXForwardedHost, fiber.HeaderXForwardedProto, fiber.HeaderVia}

// proxied reports whether a request came through a proxy, also one that names nobody.
func proxied(header *fasthttp.RequestHeader) bool {
	raw := header.RawHeaders()
	for _, name := range forwardedHeaders {
		if countLines(raw, name) > 0 {
			return true
		}
	}
	return false
}

// strictTransport keeps browsers from plain HTTP for a year. It says nothing of subdomains, which may be somebody else's.
const strictTransport = "max-age=31536000"

// overTLS reports whether the client speaks TLS, which ends at a proxy: the public address says so, and the proxy does not say
// otherwise.
func (s *Server) overTLS(ctx *fasthttp.RequestCtx) bool {
	if !strings.HasPrefix(s.BaseURL, "https://") {
		return false
	}
	protocol := ctx.Request.Header.Peek(fiber.HeaderXForwardedProto)
	return len(protocol) == 0 || strings.EqualFold(string(protocol), "https")
}

func addressBytes(address net.Addr) []byte {
	if tcp, ok := address.(*net.TCPAddr); ok {
		return tcp.IP
	}
	return nil
}

func (s *Server) trusted(address netip.Addr) bool {
	for _, prefix := range s.TrustedProxies {
		if prefix.Contains(address) {
			return true
		}
	}
	return false
}
