package settings

import (
	"errors"
	"net"
	"net/netip"
	"net/url"
	"strings"
)

// checkPlaintext rejects gateways to which messages, such as one-time codes, might be sent unencrypted. Gateways on this machine
// are allowed: their traffic cannot be intercepted, and test servers have no TLS.
func (s *Settings) checkPlaintext() error {
	mail, err := url.Parse(string(s.Notifications.Email.SMTPURL))
	// With a user name, STARTTLS is mandatory: see modules/reach/notifications.
	if err == nil && mail.Scheme == "smtp" && mail.User.Username() == "" && !local(mail) && !s.Notifications.Email.AllowPlaintext {
		return errors.New("notifications.email.smtp_url sends mail unencrypted to a server without TLS: use smtps://, or a user and a password, " +
			"with which STARTTLS is required, or set notifications.email.allow_plaintext")
	}
	gateway, err := url.Parse(string(s.Notifications.SMS.WebhookURL))
	if err == nil && strings.EqualFold(gateway.Scheme, "http") && !local(gateway) && !s.Notifications.SMS.AllowPlaintext {
		return errors.New("notifications.sms.webhook_url sends codes unencrypted: use https://, or set notifications.sms.allow_plaintext")
	}
	return nil
}

// local reports whether a URL refers to this machine.
func local(u *url.URL) bool {
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.Unmap().IsLoopback()
}

// IsLoopback reports whether only this machine can reach a listen address.
func IsLoopback(address net.Addr) bool {
	tcp, ok := address.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}
