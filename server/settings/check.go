package settings

import (
	"net"
	"net/netip"
	"net/url"
	"os"
	"reflect"
	"runtime"
	"slices"
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
	for _, s := range registry {
		if s.secret() && r.sources[s.Name] == FromFile && s.show(&r.Settings) != "" {
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
