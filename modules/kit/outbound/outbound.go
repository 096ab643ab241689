// Package outbound sends requests to addresses that users have entered.
//
// Such a request must not reach what only this machine can reach: the machine itself, its network, metadata services of clouds. So
// the name is resolved once, all of its addresses must be public or in a network that the operator allows, and the connection goes
// to one of these addresses. The check is repeated on the address that is dialled. There are no redirects, no proxies from the
// environment, and no answers of any size. Certificates are verified.
//
// Requests to addresses that the operator has set (the mail server, the gateway for SMS, the provider of OpenID Connect) do not
// use this package: the operator's own network is where they often are.
package outbound

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Options configure a client.
type Options struct {
	Allowed []netip.Prefix // networks beside public addresses
	Timeout time.Duration  // of a request as a whole
	Roots   *x509.CertPool // nil: those of the system
	// Resolve returns the addresses of a name; nil: the resolver of the system.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	Now     func() time.Time
}

// Client sends requests. Make one with [New].
type Client struct {
	options Options
	client  *http.Client
	dialer  net.Dialer
}

const (
	// maxAnswer is the number of bytes of an answer that are read, so that its connection can be used again.
	maxAnswer = 64 << 10
	// maxDialled is the number of addresses of a name that are tried.
	maxDialled = 3
	// idleTime is how long an unused connection stays open.
	idleTime = 30 * time.Second
)

// Errors of requests. Their texts are shown to the owners of webhooks.
var (
	ErrForbidden   = errors.New("the name of the receiver has an address that is not public and that webhooks.allowed_networks does not contain")
	ErrUnencrypted = errors.New("http:// is possible only to addresses in webhooks.allowed_networks")
	ErrUnknownHost = errors.New("the name of the receiver cannot be resolved")

	errAddress     = errors.New("the address is not a URL")
	errCertificate = errors.New("the certificate of the receiver is not valid")
	errTime        = errors.New("the receiver did not answer in time")
	errRefused     = errors.New("the receiver refused the connection")
	errClosed      = errors.New("the receiver closed the connection without an answer")
	errUnreachable = errors.New("the receiver cannot be reached, or does not answer as HTTP says")
)

// codes has the errors by the code that programs compare.
var codes = map[string]error{
	"forbidden": ErrForbidden, "unencrypted": ErrUnencrypted, "unknown_host": ErrUnknownHost, "invalid_address": errAddress,
	"certificate": errCertificate, "timeout": errTime, "refused": errRefused, "closed": errClosed, "unreachable": errUnreachable,
}

// Code returns the code of the text of an error: forbidden, unencrypted, unknown_host, invalid_address, certificate, timeout, refused,
// closed or unreachable. It returns an empty text for any other.
func Code(text string) string {
	for code, err := range codes {
		if text == err.Error() || strings.HasPrefix(text, err.Error()+":") {
			return code
		}
	}
	return ""
}

// New returns a client.
func New(o Options) *Client {
	if o.Resolve == nil {
		o.Resolve = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	c := &Client{options: o}
	c.dialer = net.Dialer{Timeout: o.Timeout, ControlContext: c.checkDialled}
	c.client = &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Proxy: nil, DialContext: c.dial, ForceAttemptHTTP2: true, DisableCompression: true,
			TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: o.Roots}, TLSHandshakeTimeout: o.Timeout,
			ResponseHeaderTimeout: o.Timeout, MaxResponseHeaderBytes: maxAnswer, IdleConnTimeout: idleTime, MaxIdleConns: 64, MaxIdleConnsPerHost: 8,
		},
	}
	return c
}

// Close closes idle connections.
func (c *Client) Close() { c.client.CloseIdleConnections() }

// Answer is what a receiver has answered.
type Answer struct {
	Status     int
	RetryAfter time.Duration // 0: none
}

// Post sends a body. The context of the dialled connection carries whether it is encrypted.
func (c *Client) Post(ctx context.Context, address string, header http.Header, body []byte) (Answer, error) {
	target, err := Parse(address)
	if err != nil {
		return Answer{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(withTarget(ctx, target), http.MethodPost, target.String(), bytes.NewReader(body))
	if err != nil {
		return Answer{}, errAddress
	}
	request.Header = header
	response, err := c.client.Do(request)
	if err != nil {
		return Answer{}, describe(err)
	}
	defer response.Body.Close()
	_, _ = io.CopyN(io.Discard, response.Body, maxAnswer)
	return Answer{Status: response.StatusCode, RetryAfter: RetryAfter(response.Header.Get("Retry-After"), c.options.Now())}, nil
}

// describe returns a sentence for the owner of a webhook. The errors of libraries name addresses of this machine.
func describe(err error) error {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err
	}
	for _, known := range []error{ErrForbidden, ErrUnencrypted, ErrUnknownHost} {
		if errors.Is(err, known) {
			return known
		}
	}
	var network net.Error
	if certificate, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return fmt.Errorf("%w: %w", errCertificate, certificate.Err)
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return errTime
	case errors.Is(err, context.Canceled):
		return context.Canceled
	case errors.Is(err, syscall.ECONNREFUSED):
		return errRefused
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return errClosed
	}
	return errUnreachable
}

type targetKey struct{}

// target is what the dialled connection is for.
type target struct{ plain bool }

func withTarget(ctx context.Context, u *url.URL) context.Context {
	return context.WithValue(ctx, targetKey{}, target{plain: u.Scheme == "http"})
}

// dial resolves the name once, checks all of its addresses, and connects to one of them.
func (c *Client) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	addresses, err := c.resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, err
	}
	for _, found := range addresses {
		if err := c.check(ctx, netip.AddrPortFrom(found, uint16(number))); err != nil {
			return nil, err
		}
	}
	for _, found := range addresses[:min(len(addresses), maxDialled)] {
		var connection net.Conn
		if connection, err = c.dialer.DialContext(ctx, network, netip.AddrPortFrom(found, uint16(number)).String()); err == nil {
			return connection, nil
		}
	}
	return nil, err
}

func (c *Client) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if literal, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{literal}, nil
	}
	addresses, err := c.options.Resolve(ctx, host)
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil || len(addresses) == 0 {
		return nil, ErrUnknownHost
	}
	return addresses, nil
}

// checkDialled checks the address of a socket before it connects.
func (c *Client) checkDialled(ctx context.Context, _, address string, _ syscall.RawConn) error {
	dialled, err := netip.ParseAddrPort(address)
	if err != nil {
		return ErrForbidden
	}
	return c.check(ctx, dialled)
}

// check returns ErrForbidden or ErrUnencrypted for an address that a request must not go to.
func (c *Client) check(ctx context.Context, a netip.AddrPort) error {
	if within(c.options.Allowed, a.Addr()) {
		return nil
	}
	purpose, known := ctx.Value(targetKey{}).(target)
	switch {
	case !Public(a.Addr()) || !publicPort(a.Port()):
		return ErrForbidden
	case !known || purpose.plain:
		return ErrUnencrypted
	}
	return nil
}

// publicPort reports whether a receiver at a public address may have a port: that of HTTPS, or one that belongs to no well-known
// service.
func publicPort(port uint16) bool { return port == 443 || port >= 1024 }

// maxURL is the largest length of an address.
const maxURL = 2000

// Parse reads the address of a receiver. Its errors are keys of texts, without the prefix "invalid.".
func Parse(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil, len(address) > maxURL, u.Opaque != "", u.Hostname() == "", strings.ContainsFunc(address, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return nil, errors.New("receiver_url")
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, errors.New("receiver_url")
	case u.User != nil, u.Fragment != "" || strings.Contains(address, "#"):
		return nil, errors.New("receiver_secret")
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return nil, errors.New("receiver_url")
		}
	}
	return u, nil
}

// CheckURL returns the error of [Parse], or "receiver_forbidden" for an address that is forbidden without resolving a name: a
// literal address, a port, or http:// where no network is allowed. Names are checked when they are dialled.
func (c *Client) CheckURL(address string) error {
	u, err := Parse(address)
	if err != nil {
		return err
	}
	literal, failed := netip.ParseAddr(u.Hostname())
	if failed != nil {
		if len(c.options.Allowed) == 0 && (u.Scheme == "http" || u.Port() != "" && !publicPortText(u.Port())) {
			return errors.New("receiver_forbidden")
		}
		return nil
	}
	port := uint64(443)
	if u.Scheme == "http" {
		port = 80
	}
	if u.Port() != "" {
		port, _ = strconv.ParseUint(u.Port(), 10, 16) // Parse has checked it
	}
	if c.check(withTarget(context.Background(), u), netip.AddrPortFrom(literal, uint16(port))) != nil {
		return errors.New("receiver_forbidden")
	}
	return nil
}

func publicPortText(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && publicPort(uint16(n))
}

// RetryAfter returns the pause of the header Retry-After, which holds seconds or a date (RFC 9110, section 10.2.3); 0 without one.
func RetryAfter(header string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseInt(header, 10, 32); err == nil && seconds > 0 {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(header); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// special are the addresses that are not those of receivers on the internet: the registries of special-purpose addresses of IANA
// (RFC 6890), and metadata services of clouds at public addresses.
var special = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
	"192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24",
	"203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
	"168.63.129.16/32", // the platform's own service on virtual machines of Azure
	"2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20",
)

// unicast are the addresses of IPv6 that are in use on the internet. Everything else is refused: loopback, link-local and unique
// local addresses, and those that contain one of IPv4 (mapped, compatible, NAT64).
var unicast = netip.MustParsePrefix("2000::/3")

func prefixes(texts ...string) []netip.Prefix {
	list := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		list[i] = netip.MustParsePrefix(text)
	}
	return list
}

// Public reports whether an address is one of a receiver on the internet.
func Public(a netip.Addr) bool {
	if a.Zone() != "" {
		return false
	}
	a = a.Unmap() // the system connects to the address of IPv4
	if !a.IsValid() || a.Is6() && !unicast.Contains(a) {
		return false
	}
	return !within(special, a)
}

// within reports whether one of the prefixes contains an address, also in its form as an address of IPv6.
func within(prefixes []netip.Prefix, a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	for _, p := range prefixes {
		if p.Contains(a) {
			return true
		}
	}
	return false
}
