package settings

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Report says what a configuration would do.
type Report struct {
	Mistakes []error // each prevents the start; one line with the setting, the rule and the location
	Result   *Result // nil with mistakes
	Risks    []Risk  // valid values that weaken a protection; none with mistakes
}

// Risk is a valid value that weakens a protection.
type Risk struct {
	Name    string `json:"name"` // of the setting
	Meaning string `json:"meaning"`
}

// Check reads all sources as [Load] does, and reports every mistake instead of the first one. It opens no file but that of the
// settings, and connects to nothing.
func Check(in Input) Report {
	r, mistakes := load(in)
	if len(mistakes) > 0 {
		return Report{Mistakes: mistakes}
	}
	return Report{Result: r, Risks: append(r.risks(), r.fileRisks(in.File)...)}
}

// Changed returns the settings whose value differs from the default, in the order of the registry.
func (r *Result) Changed() []Line {
	var changed []Line
	for _, l := range r.Lines() {
		if !reflect.DeepEqual(l.Value, l.Default) {
			changed = append(changed, l)
		}
	}
	return changed
}

// risks returns the values that weaken a protection.
func (r *Result) risks() (risks []Risk) {
	s := &r.Settings
	add := func(condition bool, name, meaning string) {
		if condition {
			risks = append(risks, Risk{name, meaning})
		}
	}
	add(isOpen(s.Server.Listen) && !s.Server.OverTLS() && len(s.Server.TrustedProxies) == 0, "server.listen",
		"Other machines reach this address without TLS, and the network can read passwords and tokens. Set server.domain or server.tls_cert, or listen on 127.0.0.1 behind a proxy.")
	base, err := url.Parse(s.Server.BaseURL)
	add(err == nil && base.Scheme == "http" && !local(base), "server.base_url", "Links in messages open without TLS. Use https://.")
	add(containsAny(s.Server.TrustedProxies, documentation), "server.trusted_proxies", "Callers on any address can invent the address that limits and audit entries see. Name the proxies alone.")
	add(s.Server.ConsoleDir != "", "server.console_dir", "The console comes from a directory. All who can write there can act as every user that opens it.")
	add(s.Metrics.Listen != "" && isOpen(s.Metrics.Listen), "metrics.listen", "Other machines read the metrics without signing in.")
	add(containsAny(s.Webhooks.AllowedNetworks, internal), "webhooks.allowed_networks", "Webhooks can call this machine, or the metadata service of a cloud provider. Name the networks of receivers alone.")
	for _, origin := range s.CORS.AllowedOrigins {
		u, err := url.Parse(origin)
		add(err == nil && u.Scheme == "http" && !local(u), "cors.allowed_origins", "The network can change the page at "+origin+", which may call the API. Use https://.")
	}
	add(len(s.Auth.MFA.RequiredRoles) == 0, "auth.mfa.required_roles", "No role needs a second factor: a stolen password of an administrator is enough.")
	add(!s.RateLimits.Enabled, "rate_limits.enabled", "Nothing limits requests, guesses of passwords included.")
	add(s.Notifications.Trigger.Enabled == TriggerOn && isOpen(s.Server.Listen), "notifications.trigger.enabled", "A test endpoint is open to other machines.")
	add(s.Notifications.Email.AllowPlaintext, "notifications.email.allow_plaintext", "Mail with one-time codes may be sent without TLS.")
	add(s.Notifications.SMS.AllowPlaintext, "notifications.sms.allow_plaintext", "One-time codes may be sent without TLS.")
	add(s.KYC.FourEyes == "off", "kyc.four_eyes", "One person alone verifies customers.")
	return risks
}

// fileRisks returns the secrets in a file that other users of the machine can read. Windows has other permissions.
func (r *Result) fileRisks(name string) (risks []Risk) {
	info, err := os.Stat(name)
	if name == "" || err != nil || runtime.GOOS == "windows" || info.Mode().Perm()&0o007 == 0 {
		return nil
	}
	for _, s := range rowsOf(&r.Settings) {
		if s.secret && r.sources[s.Name] == FromFile && s.show() != "" {
			risks = append(risks, Risk{s.Name, "Every user of this machine can read the secret in " + name + ". Use chmod 600, or the environment variable " + s.Env + "."})
		}
	}
	return risks
}

// isOpen reports whether other machines can reach a listen address.
func isOpen(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	return err == nil && !loopback(host)
}

// Addresses that a list of networks must not contain.
var (
	documentation = []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")} // of no machine: RFC 5737, RFC 3849
	internal      = []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("::1"), netip.MustParseAddr("169.254.169.254")}
)

// containsAny reports whether one of the networks contains one of the addresses.
func containsAny(networks []netip.Prefix, addresses []netip.Addr) bool {
	return slices.ContainsFunc(networks, func(network netip.Prefix) bool { return slices.ContainsFunc(addresses, network.Contains) })
}

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

// triggerMode accepts auto and the values of a switch. The setting was a switch in earlier versions.
var triggerMode = func() kind[string] {
	k := text("auto, true or false", func(raw string) (string, error) {
		if strings.EqualFold(raw, TriggerAuto) {
			return TriggerAuto, nil
		}
		on, err := toggle.parse(raw)
		if err != nil {
			return "", errors.New("must be auto, true or false")
		}
		return strconv.FormatBool(on), nil
	})
	k.json = func(mode string) any {
		if mode == TriggerAuto {
			return mode
		}
		return mode == TriggerOn
	}
	k.choices, k.isSwitch = []string{TriggerAuto, TriggerOn, TriggerOff}, true
	return k
}()

// TriggerEnabled reports whether the endpoint for test notifications exists. TriggerAuto disables it if other machines may reach
// the service: if it listens on an address other than loopback, has a trusted proxy, or has a base URL of another machine.
func (s *Settings) TriggerEnabled() bool {
	switch s.Notifications.Trigger.Enabled {
	case TriggerOn:
		return true
	case TriggerOff:
		return false
	}
	host, _, err := net.SplitHostPort(s.Server.Listen)
	if err != nil || !loopback(host) || len(s.Server.Domain) > 0 || len(s.Server.TrustedProxies) > 0 {
		return false
	}
	if s.Server.BaseURL == "" {
		return true
	}
	base, err := url.Parse(s.Server.BaseURL)
	return err == nil && loopback(base.Hostname())
}

// loopback reports whether only this machine can reach a host.
func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.Unmap().IsLoopback()
}

// Audit configures the changed fields of the audit trail, and the targets of its continuous export.
type Audit struct {
	ChangedFields time.Duration // how long they are kept; 0: not at all

	ExportFile string // empty: no file
	SyslogURL  string // empty: no server
}

// syslogURL parses the address of a syslog server.
var syslogURL = text("syslog address", func(raw string) (string, error) {
	u, ok := parseURL(raw, "udp", "tcp", "tls")
	if !ok || u.User != nil || u.Path != "" || u.RawQuery != "" || u.Fragment != "" {
		return "", errors.New("must be an address such as tls://logs.example:6514, with udp, tcp or tls")
	}
	return raw, nil
})

// issuerName is the name of the bank in authenticators. A colon would separate it from the account (key URI format).
var issuerName = text("name", func(raw string) (string, error) {
	name, err := providerName.parse(raw)
	if err == nil && (name == "" || strings.Contains(name, ":")) {
		err = errors.New("must not be empty or contain a colon")
	}
	return name, err
})

const (
	maxClientID     = 255
	maxClaim        = 100
	maxProviderName = 40
	maxRoleMap      = 200
)

// OIDC configures the sign-in of staff with the operator's OpenID Connect provider; without Issuer it is off.
type OIDC struct {
	Issuer       string
	ClientID     string
	ClientSecret Secret // empty: a public client
	Name         string // on the button; empty: the host of the issuer
	Scopes       []string
	RolesClaim   string
	RoleMap      []MappedRole
	CreateUsers  bool
}

// MappedRole states that users with a value of the roles claim hold a role.
type MappedRole struct {
	Claim string // value of the claim
	Role  string // name of the role
}

// check checks the rules that involve several settings of the group.
func (o OIDC) check() error {
	switch {
	case o.Issuer == "" && (o.ClientID != "" || o.ClientSecret != "" || len(o.RoleMap) > 0 || o.CreateUsers):
		return errors.New("auth.oidc.issuer must be set together with the other settings of auth.oidc")
	case o.Issuer != "" && o.ClientID == "":
		return errors.New("auth.oidc.client_id must be set together with auth.oidc.issuer")
	case len(o.RoleMap) > 0 && o.RolesClaim == "":
		return errors.New("auth.oidc.roles_claim must be set together with auth.oidc.role_map")
	case o.CreateUsers && len(o.RoleMap) == 0:
		return errors.New("auth.oidc.role_map must be set together with auth.oidc.create_users: a user without a role could not do anything")
	}
	return nil
}

// issuerURL is the URL of an issuer. It keeps a final slash, because issuers are compared character by character.
var issuerURL = text("URL", func(raw string) (string, error) {
	u, ok := parseURL(raw, "http", "https")
	if !ok || u.User != nil || strings.ContainsAny(raw, "?#") {
		return "", errors.New("must be a URL that begins with https://, without user, query and fragment")
	}
	if u.Scheme == "http" && !local(u) {
		return "", errors.New("must begin with https://: only a provider on this machine may be reached by http://")
	}
	return raw, nil
})

// visible accepts texts of visible ASCII characters.
func visible(name string, longest int) kind[string] {
	return text(name, func(raw string) (string, error) {
		if raw == "" || len(raw) > longest || strings.ContainsFunc(raw, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return "", fmt.Errorf("must have at most %d visible ASCII characters and no spaces", longest)
		}
		return raw, nil
	})
}

var providerName = text("name", func(raw string) (string, error) {
	if !utf8.ValidString(raw) || utf8.RuneCountInString(raw) > maxProviderName || strings.TrimSpace(raw) != raw ||
		strings.ContainsFunc(raw, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return "", fmt.Errorf("must have at most %d printable characters and no outer spaces", maxProviderName)
	}
	return raw, nil
})

// scopes parses scopes of OAuth 2.0 (RFC 6749, section 3.3). The scope openid is required.
var scopes = func() kind[[]string] {
	k := list("scopes", func(raw string) (string, error) {
		if strings.ContainsFunc(raw, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }) {
			return "", errors.New("must be scopes, such as openid, separated by commas; " + strconv.Quote(shorten(raw)) + " is not a scope")
		}
		return raw, nil
	}, func(s string) string { return s })
	parse := k.parse
	k.parse = func(raw string) ([]string, error) {
		all, err := parse(raw)
		if err == nil && !slices.Contains(all, "openid") {
			err = errors.New("must contain openid")
		}
		return all, err
	}
	return k
}()

// roleMap parses pairs of a value of the claim and a role, separated by commas. Values and roles may contain spaces, but no
// commas; the last equals sign separates the two, because values may be names of a directory, such as cn=admins.
var roleMap = kind[[]MappedRole]{
	name: "pairs",
	list: true,
	parse: func(raw string) ([]MappedRole, error) {
		var all []MappedRole
		for pair := range strings.SplitSeq(raw, ",") {
			if pair = strings.TrimSpace(pair); pair == "" {
				continue
			}
			at := strings.LastIndexByte(pair, '=')
			if at < 0 || strings.TrimSpace(pair[:at]) == "" || strings.TrimSpace(pair[at+1:]) == "" ||
				!utf8.ValidString(pair) || strings.ContainsFunc(pair, unicode.IsControl) {
				return nil, errors.New("must be pairs such as bank-admins=Administrator, separated by commas; " + strconv.Quote(shorten(pair)) + " is none")
			}
			all = append(all, MappedRole{Claim: strings.TrimSpace(pair[:at]), Role: strings.TrimSpace(pair[at+1:])})
		}
		if len(all) > maxRoleMap {
			return nil, fmt.Errorf("must have at most %d pairs", maxRoleMap)
		}
		return all, nil
	},
	show: func(all []MappedRole) string { return strings.Join(pairs(all), ",") },
	json: func(all []MappedRole) any { return pairs(all) },
}

func pairs(all []MappedRole) []string {
	texts := make([]string, len(all))
	for i, m := range all {
		texts[i] = m.Claim + "=" + m.Role
	}
	return texts
}
