package server

import (
	"bytes"
	"net"
	"net/netip"
	"net/url"
	"strings"

	"github.com/valyala/fasthttp"
)

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
		for _, known := range proxyHeaders {
			if strings.EqualFold(string(name), known) {
				return true
			}
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
