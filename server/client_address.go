package server

import (
	"bytes"
	"net"
	"net/netip"
	"net/url"
	"slices"
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
	return slices.ContainsFunc(s.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(address) })
}

// Rows at these paths exist for programs on this machine only, see [Server.hides].
const (
	sandboxPaths = "/v1/sandbox/" // begins the paths of the sandbox
	localSignIn  = "/authenticate/local"
)

// lookUp is [router.match] for a request: rows that the client must not see do not exist.
func (s *Server) lookUp(ctx *fasthttp.RequestCtx, method string, path []byte, params []string) (row *route, values, allowed []string) {
	if s.hides(ctx, path) {
		return nil, nil, nil
	}
	return s.routes.match(method, path, params)
}

// hides reports whether a path is one for this machine alone, and the request may come from another one. The address of the connection
// decides, and not what headers claim. A proxy on this machine has a loopback address, too: it shows by the headers that it adds, by
// the name that the client called, or by the settings. The name also stops pages of the web that let a browser on this machine
// call it under their own name.
func (s *Server) hides(ctx *fasthttp.RequestCtx, path []byte) bool {
	inSandbox := bytes.HasPrefix(path, []byte(sandboxPaths)) && !s.SandboxPublic
	if !inSandbox && string(path) != localSignIn {
		return false
	}
	peer, _ := netip.AddrFromSlice(addressBytes(ctx.RemoteAddr()))
	header := &ctx.Request.Header
	return !peer.Unmap().IsLoopback() || len(s.TrustedProxies) > 0 || !loopbackURL(s.BaseURL) ||
		!loopbackHost(string(header.Host())) || !loopbackHost(string(ctx.URI().Host())) || forwarded(header)
}

// proxyHeaders are headers that proxies add to requests, besides those that begin with X-Forwarded.
var proxyHeaders = []string{"Forwarded", "Via", "X-Real-Ip", "X-Client-Ip", "X-Cluster-Client-Ip", "True-Client-Ip", "Cf-Connecting-Ip", "Fastly-Client-Ip",
	"X-Original-Host", "X-Original-Url", "X-Envoy-External-Address"}

// forwarded reports whether a proxy has sent the request on.
func forwarded(header *fasthttp.RequestHeader) bool {
	for name := range header.All() {
		if len(name) >= len("X-Forwarded") && strings.EqualFold(string(name[:len("X-Forwarded")]), "X-Forwarded") {
			return true
		}
		if slices.ContainsFunc(proxyHeaders, func(known string) bool { return strings.EqualFold(string(name), known) }) {
			return true
		}
	}
	return false
}

// loopbackURL reports whether an address of the service names this machine. An empty one does.
func loopbackURL(address string) bool {
	if address == "" {
		return true
	}
	parsed, err := url.Parse(address)
	return err == nil && loopbackHost(parsed.Host)
}

// loopbackHost reports whether a host with or without a port is this machine, whatever its resolver says: localhost and the names
// below it (RFC 6761, section 6.3), and the addresses of the loopback interface.
func loopbackHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(host)
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	address, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
	return err == nil && address.Unmap().IsLoopback() && address.Zone() == ""
}
