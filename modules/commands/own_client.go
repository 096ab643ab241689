package commands

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"time"
)

// ownClient returns a client of the server at a listen address, and the origin for its requests. It does not verify the
// certificate, because it connects to this machine by address; name is the name in the handshake.
func ownClient(listen string, overTLS bool, name string, timeout time.Duration) (client *http.Client, origin string) {
	transport := &http.Transport{DisableKeepAlives: true}
	client = &http.Client{Timeout: timeout, Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	origin = "http://" + dialable(listen)
	if overTLS {
		transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: true, ServerName: name, MinVersion: tls.VersionTLS12} //nolint:gosec // see above
		origin = "https://" + dialable(listen)
	}
	return client, origin
}

// dialable returns the address at which this machine reaches a listener.
func dialable(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return listen
	}
	switch address, err := netip.ParseAddr(host); {
	case host == "", err == nil && address.Is4() && address.IsUnspecified():
		host = "127.0.0.1"
	case err == nil && address.IsUnspecified():
		host = "::1"
	}
	return net.JoinHostPort(host, port)
}
