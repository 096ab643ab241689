package settings

import (
	"log/slog"
	"net/netip"
	"strings"
	"time"
)

// Setting is one row of the registry.
type Setting struct {
	Name    string // dotted, as in the file; for EnvironmentOnly the variable's name
	Env     string // the environment variable
	Type    string // kind of its values, for the help text
	Default string // in the form of the file
	Meaning string // one line
	Choices []string

	List            bool // has several values
	Switch          bool // true or false
	EnvironmentOnly bool // not available as a flag or in the file

	at    func(*Settings) any
	set   func(*Settings, string) error
	show  func(*Settings) string
	value func(*Settings) any
}

// All returns the rows of the registry in their order.
func All() []Setting { return append([]Setting(nil), registry...) }

// maxIdleMinutes is the longest life of a session, 30 days.
const maxIdleMinutes = 30 * 24 * 60

const envPrefix = "KONTOR_"

// ConfigEnv is the environment variable with the path of the settings file, used without the flag --config.
const ConfigEnv = envPrefix + "CONFIG"

// row declares one setting: its name, kind, default, meaning and the field of its value.
func row[T any](name string, k kind[T], def, meaning string, at func(*Settings) *T) Setting {
	return Setting{
		Name:    name,
		Env:     envPrefix + strings.ToUpper(strings.ReplaceAll(name, ".", "_")),
		Type:    k.name,
		Default: def,
		Meaning: meaning,
		Choices: k.choices,
		List:    k.list,
		Switch:  k.isSwitch,
		at:      func(s *Settings) any { return at(s) },
		set: func(s *Settings, raw string) error {
			v, err := k.parse(raw)
			if err == nil {
				*at(s) = v
			}
			return err
		},
		show:  func(s *Settings) string { return k.show(*at(s)) },
		value: func(s *Settings) any { return k.json(*at(s)) },
	}
}

// fromEnvironment declares a value that is available as an environment variable only.
func fromEnvironment[T any](env string, k kind[T], meaning string, at func(*Settings) *T) Setting {
	s := row(env, k, "", meaning, at)
	s.Env = env
	s.EnvironmentOnly = true
	return s
}

var registry = []Setting{
	row("server.listen", listenAddress, "127.0.0.1:8080",
		"Address and port to listen on; port 0 selects a free one.",
		func(s *Settings) *string { return &s.Server.Listen }),
	row("server.base_url", optional(webURL), "",
		"Public address of this installation, used in links; empty: derived from server.listen.",
		func(s *Settings) *string { return &s.Server.BaseURL }),
	row("server.tls_cert", optional(path), "",
		"File with the certificate and its chain in PEM form, to serve HTTPS; read again when it changes; empty: plain HTTP.",
		func(s *Settings) *string { return &s.Server.TLSCert }),
	row("server.tls_key", optional(path), "",
		"File with the private key of server.tls_cert in PEM form.",
		func(s *Settings) *string { return &s.Server.TLSKey }),
	row("server.domain", domains, "",
		"Public names of this server; it obtains certificates for them by ACME and accepts the authority's terms; server.listen is then :443 by default.",
		func(s *Settings) *[]string { return &s.Server.Domain }),
	row("server.redirect_listen", optional(listenAddress), "",
		"Address for plain HTTP that redirects to HTTPS and answers ACME challenges; empty: :80 with server.domain, otherwise none.",
		func(s *Settings) *string { return &s.Server.RedirectListen }),
	row("server.acme_url", webURL, "https://acme-v02.api.letsencrypt.org/directory",
		"Directory of the certificate authority for server.domain.",
		func(s *Settings) *string { return &s.Server.ACMEURL }),
	row("server.acme_email", optional(mailAddress), "",
		"E-mail address for messages of the certificate authority; empty: none.",
		func(s *Settings) *string { return &s.Server.ACMEEmail }),
	row("server.shutdown_seconds", seconds(3600), "10",
		"Time for running requests to finish when the server stops.",
		func(s *Settings) *time.Duration { return &s.Server.Shutdown }),
	row("server.request_seconds", seconds(600), "10",
		"Time limit of a request; a request that exceeds it is answered with 503.",
		func(s *Settings) *time.Duration { return &s.Server.RequestTime }),
	row("server.trusted_proxies", networks, "",
		"Addresses or networks of reverse proxies whose X-Forwarded-For header is trusted; empty: none.",
		func(s *Settings) *[]netip.Prefix { return &s.Server.TrustedProxies }),
	row("server.console_dir", optional(path), "",
		"Directory to serve the console from during its development; empty: the console in the executable.",
		func(s *Settings) *string { return &s.Server.ConsoleDir }),

	row("metrics.listen", optional(listenAddress), "127.0.0.1:9464",
		"Address and port of /metrics for Prometheus, without sign-in; empty: none, administrators still have /metrics of server.listen.",
		func(s *Settings) *string { return &s.Metrics.Listen }),

	row("data.dir", path, "./data",
		"Directory of the database, the keys and the files; created on the first start.",
		func(s *Settings) *string { return &s.Data.Dir }),

	row("cors.allowed_origins", origins, "",
		"Origins, such as https://app.example, whose pages may call the API; empty: none.",
		func(s *Settings) *[]string { return &s.CORS.AllowedOrigins }),

	row("auth.access_token_minutes", minutes(24*60), "60",
		"Lifetime of an access token.",
		func(s *Settings) *time.Duration { return &s.Auth.AccessToken }),
	row("auth.signing_key_days", number(0, 3650), "90",
		"Days after which a new key signs access tokens; the former one verifies them until they expire; 0: never.",
		func(s *Settings) *int { return &s.Auth.SigningKeyDays }),
	row("auth.refresh_token_hours", hours(366*24), "24",
		"Lifetime of a refresh token; each refresh issues a new one.",
		func(s *Settings) *time.Duration { return &s.Auth.RefreshToken }),
	row("auth.session_idle_minutes", orNone(minutes(maxIdleMinutes), 5, maxIdleMinutes), "720",
		"How long a session may stay unused before it ends; 0: as long as its tokens are valid.",
		func(s *Settings) *time.Duration { return &s.Auth.SessionIdle }),
	row("auth.sessions_max", number(0, 10_000), "20",
		"Sessions that a user may have; a further sign-in ends the one that was not used for longest; 0: any number.",
		func(s *Settings) *int { return &s.Auth.SessionsMax }),
	row("auth.cooling_off.free_attempts", number(1, 1000), "5",
		"Failed sign-ins in a row before the first lockout.",
		func(s *Settings) *int { return &s.Auth.CoolingOff.FreeAttempts }),
	row("auth.cooling_off.base_seconds", seconds(3600), "2",
		"First lockout after too many failed sign-ins; each further failure doubles it.",
		func(s *Settings) *time.Duration { return &s.Auth.CoolingOff.Base }),
	row("auth.cooling_off.max_seconds", seconds(24*3600), "900",
		"Longest lockout after failed sign-ins.",
		func(s *Settings) *time.Duration { return &s.Auth.CoolingOff.Max }),
	row("auth.otp_minutes", minutes(24*60), "10",
		"Lifetime of a one-time code.",
		func(s *Settings) *time.Duration { return &s.Auth.OTP }),
	row("auth.otp_attempts", number(1, 100), "5",
		"Wrong attempts after which a one-time code is invalid.",
		func(s *Settings) *int { return &s.Auth.OTPAttempts }),
	row("auth.password_min_length", number(8, maxPasswordLength), "12",
		"Minimum number of characters of a new password.",
		func(s *Settings) *int { return &s.Auth.PasswordMinLength }),
	row("auth.breached_passwords_file", optional(path), "",
		"File of SHA-1 hashes of breached passwords, sorted, as Have I Been Pwned publishes it; new passwords must not be in it; empty: none.",
		func(s *Settings) *string { return &s.Auth.BreachedPasswords }),
	row("auth.oidc.issuer", optional(issuerURL), "",
		"Issuer of the OpenID Connect provider with which staff sign in, such as https://login.bank.example; empty: off.",
		func(s *Settings) *string { return &s.Auth.OIDC.Issuer }),
	row("auth.oidc.client_id", optional(visible("client id", maxClientID)), "",
		"Client id of this installation at the provider; required with auth.oidc.issuer.",
		func(s *Settings) *string { return &s.Auth.OIDC.ClientID }),
	row("auth.oidc.client_secret", optional(secret(1)), "",
		"Client secret at the provider; set it in the environment, since flags are visible to other users; empty: a public client with PKCE alone.",
		func(s *Settings) *Secret { return &s.Auth.OIDC.ClientSecret }),
	row("auth.oidc.name", providerName, "",
		"Name of the provider on the sign-in screen; empty: the host of the issuer.",
		func(s *Settings) *string { return &s.Auth.OIDC.Name }),
	row("auth.oidc.scopes", scopes, "openid,email,profile",
		"Scopes to request from the provider.",
		func(s *Settings) *[]string { return &s.Auth.OIDC.Scopes }),
	row("auth.oidc.roles_claim", optional(visible("claim", maxClaim)), "",
		"Claim with the groups or roles of a user at the provider, such as groups or realm_access.roles; required with auth.oidc.role_map.",
		func(s *Settings) *string { return &s.Auth.OIDC.RolesClaim }),
	row("auth.oidc.role_map", roleMap, "",
		"Values of the claim and the roles that they stand for, such as bank-admins=Administrator; at each sign-in these roles, and no others, are added and removed.",
		func(s *Settings) *[]MappedRole { return &s.Auth.OIDC.RoleMap }),
	row("auth.oidc.create_users", toggle, "false",
		"Whether a first sign-in with at least one mapped role creates a user; otherwise a user must exist and be linked.",
		func(s *Settings) *bool { return &s.Auth.OIDC.CreateUsers }),

	row("auth.mfa.required_roles", names, "Administrator,Advisor",
		"Roles whose users need a second factor as soon as one of them has one, by id or by a name without spaces; empty: none.",
		func(s *Settings) *[]string { return &s.Auth.MFA.RequiredRoles }),
	row("auth.mfa.grace_days", orNone(days(366), 1, 366), "14",
		"How long users with such a role may work without a second factor; after that they can only set one up.",
		func(s *Settings) *time.Duration { return &s.Auth.MFA.Grace }),
	row("auth.mfa.issuer", issuerName, "Kontor",
		"Name of the bank that authenticator apps and passkeys show; at most 40 characters, without a colon.",
		func(s *Settings) *string { return &s.Auth.MFA.Issuer }),

	row("rate_limits.enabled", toggle, "true",
		"Whether rate limits apply.",
		func(s *Settings) *bool { return &s.RateLimits.Enabled }),
	row("rate_limits.public_per_minute", number(1, 1_000_000), "60",
		"Requests per minute to public endpoints, for each client address.",
		func(s *Settings) *int { return &s.RateLimits.PublicPerMinute }),
	row("rate_limits.private_per_minute", number(1, 1_000_000), "1200",
		"Requests per minute to each private endpoint, for each user, unless a stored rule applies.",
		func(s *Settings) *int { return &s.RateLimits.PrivatePerMinute }),
	row("rate_limits.codes_per_hour", number(0, 1_000_000), "0",
		"One-time codes per hour for each client network; half as many more for registrations, and twice as many for each API key; 0: the value of rate_limits.public_per_minute.",
		func(s *Settings) *int { return &s.RateLimits.CodesPerHour }),
	row("rate_limits.concurrent_per_caller", number(1, 100_000), "128",
		"Concurrent requests of one user, API key or client address; event streams have a separate limit.",
		func(s *Settings) *int { return &s.RateLimits.PerCaller }),

	row("quotas.records_per_user", number(1, 1_000_000_000), "100000",
		"Records that a user without access to all records may create: customers, documents, personas, payers, chats, messages, tasks.",
		func(s *Settings) *int { return &s.Quotas.Records }),
	row("quotas.megabytes_per_user", number(1, 1_000_000), "256",
		"Total size of these records of one user, in MB.",
		func(s *Settings) *int { return &s.Quotas.Megabytes }),

	row("notifications.sse.heartbeat_seconds", seconds(3600), "25",
		"Interval between two heartbeats on an event stream; keep it below the idle timeout of any proxy.",
		func(s *Settings) *time.Duration { return &s.Notifications.SSE.Heartbeat }),
	row("notifications.sse.connections_per_user", number(1, 10_000), "10",
		"Concurrent event streams of one user.",
		func(s *Settings) *int { return &s.Notifications.SSE.ConnectionsPerUser }),
	row("notifications.trigger.enabled", triggerMode, TriggerAuto,
		"Whether POST /v1/notifications/trigger exists, which creates test notifications; auto: only on a loopback address without a proxy.",
		func(s *Settings) *string { return &s.Notifications.Trigger.Enabled }),
	row("notifications.queue.max_attempts", number(1, 100), "8",
		"Failed attempts after which a delivery becomes a dead letter.",
		func(s *Settings) *int { return &s.Notifications.Queue.MaxAttempts }),
	row("notifications.queue.base_seconds", seconds(3600), "2",
		"Delay before the first retry of a delivery; each further failure doubles it.",
		func(s *Settings) *time.Duration { return &s.Notifications.Queue.Base }),
	row("notifications.queue.max_seconds", seconds(7*24*3600), "3600",
		"Longest delay between two attempts of a delivery.",
		func(s *Settings) *time.Duration { return &s.Notifications.Queue.Max }),
	row("notifications.email.smtp_url", optional(smtpURL), "",
		"Mail server, such as smtp://user:password@mail.example:587; empty: mail stays in the local outbox.",
		func(s *Settings) *Secret { return &s.Notifications.Email.SMTPURL }),
	row("notifications.email.from", optional(mailAddress), "",
		"Sender of e-mails; required with notifications.email.smtp_url.",
		func(s *Settings) *string { return &s.Notifications.Email.From }),
	row("notifications.email.allow_plaintext", toggle, "false",
		"Whether mail may be sent without TLS to a server on another machine.",
		func(s *Settings) *bool { return &s.Notifications.Email.AllowPlaintext }),
	row("notifications.sms.webhook_url", optional(secretWebURL), "",
		"Address that receives each SMS as a JSON POST; empty: SMS stay in the local outbox.",
		func(s *Settings) *Secret { return &s.Notifications.SMS.WebhookURL }),
	row("notifications.sms.token", optional(secret(1)), "",
		"Bearer token for notifications.sms.webhook_url; set it in the environment, since flags are visible to other users.",
		func(s *Settings) *Secret { return &s.Notifications.SMS.Token }),
	row("notifications.sms.allow_plaintext", toggle, "false",
		"Whether notifications.sms.webhook_url may be http:// on another machine.",
		func(s *Settings) *bool { return &s.Notifications.SMS.AllowPlaintext }),

	row("profile.avatar_max_bytes", size(1<<10, 100<<20), "5MiB",
		"Largest picture that a user may upload.",
		func(s *Settings) *int64 { return &s.Profile.AvatarMaxBytes }),
	row("profile.avatar_max_pixels", pixels(10_000, 1_000_000_000), "40MP",
		"Largest picture that a user may upload, in pixels (width times height).",
		func(s *Settings) *int64 { return &s.Profile.AvatarMaxPixels }),

	row("invoices.max_bytes", size(1<<10, 100<<20), "20MiB",
		"Largest invoice file that is searched for a QR-bill.",
		func(s *Settings) *int64 { return &s.Invoices.MaxBytes }),
	row("invoices.max_pages", number(1, 10_000), "50",
		"Maximum number of pages of an invoice file.",
		func(s *Settings) *int { return &s.Invoices.MaxPages }),
	row("invoices.timeout_seconds", seconds(3600), "20",
		"Time limit for processing one invoice file.",
		func(s *Settings) *time.Duration { return &s.Invoices.Timeout }),

	row("privacy.retention_years", number(1, 100), "10",
		"Years for which the data of a customer must be kept after the end of the business relationship.",
		func(s *Settings) *int { return &s.Privacy.RetentionYears }),

	row("audit.export_file", optional(path), "",
		"File to which every entry of the audit trail is appended, with signed heads; empty: none.",
		func(s *Settings) *string { return &s.Audit.ExportFile }),
	row("audit.syslog_url", optional(syslogURL), "",
		"Syslog server that receives every entry of the audit trail, such as tls://logs.example:6514 (udp, tcp or tls); empty: none.",
		func(s *Settings) *string { return &s.Audit.SyslogURL }),

	row("log.level", logLevel, "info",
		"Lowest level of messages that are logged.",
		func(s *Settings) *slog.Level { return &s.Log.Level }),
	row("log.format", choice(LogAuto, LogText, LogJSON), LogAuto,
		"Format of the log; auto: text on a terminal, JSON otherwise.",
		func(s *Settings) *string { return &s.Log.Format }),

	fromEnvironment("KONTOR_ADMIN_EMAIL", optional(mailAddress),
		"First start only: e-mail address of the administrator; default: admin@kontor.localhost.",
		func(s *Settings) *string { return &s.Secrets.AdminEmail }),
	fromEnvironment("KONTOR_ADMIN_PASSWORD", optional(secret(1)),
		"First start only: password of the administrator; default: a random one, printed once.",
		func(s *Settings) *Secret { return &s.Secrets.AdminPassword }),
	fromEnvironment("KONTOR_API_KEY", optional(secret(minAPIKeyLength)),
		"First start only: the API key; default: a random one, printed once.",
		func(s *Settings) *Secret { return &s.Secrets.APIKey }),
	fromEnvironment("KONTOR_SECRET_KEY", optional(secret(minSecretKeyLength)),
		"Master key of the data directory, 32 bytes in hexadecimal or base64; default: a random one, in a file of that directory.",
		func(s *Settings) *Secret { return &s.Secrets.SecretKey }),
	fromEnvironment("KONTOR_SECRET_KEY_PREVIOUS", optional(secret(minSecretKeyLength)),
		"Master key that KONTOR_SECRET_KEY replaces, for the start or the command that rotates it.",
		func(s *Settings) *Secret { return &s.Secrets.PreviousKey }),
}
