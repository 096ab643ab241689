package server

import (
	"net"
	"net/netip"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

// clientAddress returns the client's address. It is the peer's, or, behind trusted proxies, the right-most address of
// X-Forwarded-For that is not a trusted proxy: clients can forge the addresses to the left of it.
//
// When a trusted proxy reports no valid address, such as "unknown", the result is the zero address: neither loopback nor the
// proxy. All such clients share one network in the limits.
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

// forwardedAddress parses one element of X-Forwarded-For. Proxies write an address with or without a port, IPv6 with or
// without brackets, and some with the quotes of RFC 7239, section 6. Addresses with a zone are rejected: zones are local to
// another machine.
func forwardedAddress(element string) (netip.Addr, bool) {
	element = strings.Trim(element, " \t")
	if unquoted, ok := strings.CutPrefix(element, `"`); ok {
		if element, ok = strings.CutSuffix(unquoted, `"`); !ok {
			return netip.Addr{}, false
		}
	}
	address, err := netip.ParseAddr(element)
	if err != nil {
		var withPort netip.AddrPort
		if withPort, err = netip.ParseAddrPort(element); err == nil {
			address = withPort.Addr()
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

// overTLS reports whether the client uses TLS. It may end here, or at a proxy: then the public address is https, and the proxy
// does not report another protocol.
func (s *Server) overTLS(ctx *fasthttp.RequestCtx) bool {
	if s.TLS != nil {
		return true
	}
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
