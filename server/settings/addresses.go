package settings

import (
	"errors"
	"net"
	"net/mail"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

var listenAddress = text("address", func(raw string) (string, error) {
	wrong := errors.New("must be an address and a port, such as 127.0.0.1:8080")
	host, port, err := net.SplitHostPort(raw)
	if err != nil || !validPort(port, 0) {
		return "", wrong
	}
	if host != "" && !validHost(host) {
		return "", wrong
	}
	return raw, nil
})

// scannerAddress is the address of clamd: a host and a port, or the absolute path of a socket.
var scannerAddress = text("scanner address", func(raw string) (string, error) {
	host, port, err := net.SplitHostPort(raw)
	if filepath.IsAbs(raw) && !strings.ContainsFunc(raw, unicode.IsControl) || err == nil && validPort(port, 1) && host != "" && validHost(host) {
		return raw, nil
	}
	return "", errors.New("must be a host and a port, such as 127.0.0.1:3310, or the absolute path of a socket")
})

var webURL = text("URL", func(raw string) (string, error) {
	u, ok := parseURL(raw, "http", "https")
	if !ok || u.User != nil || u.RawQuery != "" || strings.ContainsAny(raw, "?#") {
		return "", errors.New("must be a URL that begins with http:// or https://, without user, query and fragment")
	}
	return strings.TrimRight(raw, "/"), nil
})

// linkURL is an address that users open in a browser.
var linkURL = text("HTTPS address", func(raw string) (string, error) {
	u, ok := parseURL(raw, "https")
	if !ok || u.User != nil {
		return "", errors.New("must be a URL that begins with https://, without user")
	}
	return raw, nil
})

// secretURL is a URL that may contain a password or a key, so that only its scheme and host are shown.
func secretURL(message string, schemes ...string) kind[Secret] {
	show := func(s Secret) string {
		u, err := url.Parse(string(s))
		if err != nil || u.Host == "" {
			return s.String()
		}
		shown := u.Scheme + "://"
		if u.User != nil {
			shown += mask + "@"
		}
		shown += u.Host
		if len(u.RequestURI()) > 1 {
			shown += "/" + mask
		}
		return shown
	}
	return kind[Secret]{
		name: "URL",
		parse: func(raw string) (Secret, error) {
			if u, ok := parseURL(raw, schemes...); !ok || u.Fragment != "" {
				return "", errors.New(message)
			}
			return Secret(raw), nil
		},
		show: show,
		json: func(s Secret) any { return show(s) },
	}
}

var (
	smtpURL      = secretURL("must be a URL that begins with smtp:// or smtps://", "smtp", "smtps")
	secretWebURL = secretURL("must be a URL that begins with http:// or https://", "http", "https")
)

func parseURL(raw string, schemes ...string) (*url.URL, bool) {
	if strings.ContainsFunc(raw, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }) {
		return nil, false
	}
	u, err := url.Parse(raw)
	if err != nil || u.Opaque != "" || !validHost(u.Hostname()) {
		return nil, false
	}
	if strings.HasSuffix(u.Host, ":") || (u.Port() != "" && !validPort(u.Port(), 1)) {
		return nil, false
	}
	return u, slices.Contains(schemes, u.Scheme)
}

func validPort(port string, lowest int64) bool {
	_, err := whole(port, lowest, 65535)
	return err == nil && !strings.HasPrefix(port, "+")
}

// validHost reports whether host is an IP address or a syntactically valid DNS name.
func validHost(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	if len(host) > 253 || strings.Trim(host, "0123456789.") == "" {
		return false
	}
	for label := range strings.SplitSeq(strings.TrimSuffix(host, "."), ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for _, r := range label {
			if !(r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z') {
				return false
			}
		}
	}
	return true
}

var mailAddress = text("e-mail address", func(raw string) (string, error) {
	a, err := mail.ParseAddress(raw)
	if err != nil || len(a.Address) > 254 || strings.ContainsFunc(raw, unicode.IsControl) {
		return "", errors.New("must be an e-mail address, such as bank@kontor.example")
	}
	return raw, nil
})

// networks parses addresses (10.0.0.7) and networks (10.0.0.0/8). It rejects networks with bits beyond the mask, such as
// 10.1.2.3/8, as likely mistakes.
var networks = list("networks", func(raw string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(raw); err == nil && addr.Zone() == "" {
		addr = addr.Unmap()
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	p, err := netip.ParsePrefix(raw)
	if err != nil || p != p.Masked() || p.Addr().Is4In6() {
		return netip.Prefix{}, errors.New("must be addresses or networks, such as 10.0.0.7 or 10.0.0.0/8, separated by commas; " +
			strconv.Quote(shorten(raw)) + " is neither")
	}
	return p, nil
}, netip.Prefix.String)

// origins parses values of the Origin header. Wildcards are not supported: the list must contain each origin.
var origins = list("origins", func(raw string) (string, error) {
	u, ok := parseURL(strings.ToLower(raw), "http", "https")
	if !ok || u.User != nil || u.Path != "" || strings.ContainsAny(raw, "?#") {
		return "", errors.New("must be origins, such as https://app.example, separated by commas, without a path; " +
			strconv.Quote(shorten(raw)) + " is not an origin")
	}
	// Browsers omit the default port.
	if u.Scheme == "https" && u.Port() == "443" || u.Scheme == "http" && u.Port() == "80" {
		u.Host = strings.TrimSuffix(u.Host, ":"+u.Port())
	}
	return u.Scheme + "://" + u.Host, nil
}, func(s string) string { return s })

// domains parses public names, for which an authority issues certificates.
var domains = list("domains", func(raw string) (string, error) {
	name := strings.ToLower(raw)
	if _, err := netip.ParseAddr(name); err == nil || !validHost(name) || !strings.Contains(strings.Trim(name, "."), ".") || strings.HasSuffix(name, ".") || strings.Contains(name, "_") {
		return "", errors.New("must be public names, such as bank.example, separated by commas; " + strconv.Quote(shorten(raw)) + " is not one")
	}
	return name, nil
}, func(s string) string { return s })

// OverTLS reports whether clients reach the server by TLS that ends here.
func (s *Server) OverTLS() bool { return s.TLSCert != "" || len(s.Domain) > 0 }

// BaseURLFor returns server.base_url, or the URL for a browser on this machine. addr is the actual listen address.
func (s *Settings) BaseURLFor(addr string) string {
	if s.Server.BaseURL != "" {
		return s.Server.BaseURL
	}
	host, port, err := net.SplitHostPort(addr)
	scheme, standard := "http://", "80"
	if s.Server.OverTLS() {
		scheme, standard = "https://", "443"
	}
	if err != nil {
		return scheme + addr
	}
	if len(s.Server.Domain) > 0 {
		host = s.Server.Domain[0]
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && (ip.IsUnspecified() || ip == netip.AddrFrom4([4]byte{127, 0, 0, 1})) {
		host = "localhost"
	}
	if port == standard {
		port = ""
	} else {
		port = ":" + port
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return scheme + host + port
}
