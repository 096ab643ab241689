package settings

// Each of these functions returns the rows of some settings.

func serverRows(s *Settings) []Setting {
	return []Setting{
		row(&s.Server.Listen, "server.listen", listenAddress, "127.0.0.1:8080",
			"Address and port to listen on; port 0 selects a free one."),
		row(&s.Server.BaseURL, "server.base_url", optional(webURL), "",
			"Public address of this installation, used in links; empty: derived from server.listen."),
		row(&s.Server.TLSCert, "server.tls_cert", optional(path), "",
			"File with the certificate and its chain in PEM form, to serve HTTPS; read again when it changes; empty: plain HTTP."),
		row(&s.Server.TLSKey, "server.tls_key", optional(path), "",
			"File with the private key of server.tls_cert in PEM form."),
		row(&s.Server.Domain, "server.domain", domains, "",
			"Public names of this server; it obtains certificates for them by ACME and accepts the authority's terms; server.listen is then :443 by default."),
		row(&s.Server.RedirectListen, "server.redirect_listen", optional(listenAddress), "",
			"Address for plain HTTP that redirects to HTTPS and answers ACME challenges; empty: :80 with server.domain, otherwise none."),
		row(&s.Server.ACMEURL, "server.acme_url", webURL, "https://acme-v02.api.letsencrypt.org/directory",
			"Directory of the certificate authority for server.domain."),
		row(&s.Server.ACMEEmail, "server.acme_email", optional(mailAddress), "",
			"E-mail address for messages of the certificate authority; empty: none."),
		row(&s.Server.Shutdown, "server.shutdown_seconds", seconds(3600), "10",
			"Time for running requests to finish when the server stops."),
		row(&s.Server.RequestTime, "server.request_seconds", seconds(600), "10",
			"Time limit of a request; a request that exceeds it is answered with 503."),
		row(&s.Server.TrustedProxies, "server.trusted_proxies", networks, "",
			"Addresses or networks of reverse proxies whose X-Forwarded-For header is trusted; empty: none."),
		row(&s.Server.ConsoleDir, "server.console_dir", optional(path), "",
			"Directory to serve the console from during its development; empty: the console in the executable."),

		row(&s.Bank.Name, "bank.name", optional(bankName), "",
			"Name of the bank, which customers see in the console, in e-mails and SMS, and all users before they sign in; empty: Kontor."),
		row(&s.Bank.Logo, "bank.logo", optional(path), "",
			"File with the bank's logo as SVG without scripts or as PNG, at most 200 kB, shown in a square; empty: Kontor's."),
		row(&s.Bank.Color, "bank.color", optional(darkColor), "",
			"Colour of buttons and links, dark enough for white text, such as #0d5c63; empty: Kontor's."),
		row(&s.Bank.TermsURL, "bank.terms_url", optional(linkURL), "",
			"HTTPS address of the terms of use, linked where users accept them; empty: no link."),
		row(&s.Bank.PrivacyURL, "bank.privacy_url", optional(linkURL), "",
			"HTTPS address of the privacy policy, linked where users accept it; empty: no link."),

		row(&s.Metrics.Listen, "metrics.listen", optional(listenAddress), "127.0.0.1:9464",
			"Address and port of /metrics for Prometheus, without sign-in; empty: none, administrators still have /metrics of server.listen."),

		row(&s.Data.Dir, "data.dir", path, "./data",
			"Directory of the database, the keys and the files; created on the first start. With data.url it is used only if it is set, and keeps what the node has seen of the database."),
		row(&s.Data.URL, "data.url", optional(databaseURL), "",
			"PostgreSQL database for one or several nodes, such as postgres://kontor@db.example/kontor; needs KONTOR_SECRET_KEY; empty: data.dir."),
		row(&s.Data.Connections, "data.connections", number(1, 500), "8",
			"Connections of this node to data.url for reading; two more write and listen."),
		row(&s.Cluster.Node, "cluster.node", optional(nodeName), "",
			"Name of this node in the log, in health and in metrics, with data.url; empty: the name of the machine."),

		row(&s.CORS.AllowedOrigins, "cors.allowed_origins", origins, "",
			"Origins, such as https://app.example, whose pages may call the API; empty: none."),
	}
}

func limitRows(s *Settings) []Setting {
	return []Setting{
		row(&s.RateLimits.Enabled, "rate_limits.enabled", toggle, "true",
			"Whether rate limits apply."),
		row(&s.RateLimits.PublicPerMinute, "rate_limits.public_per_minute", number(1, 1_000_000), "60",
			"Requests per minute to public endpoints, for each client address."),
		row(&s.RateLimits.PrivatePerMinute, "rate_limits.private_per_minute", number(1, 1_000_000), "1200",
			"Requests per minute to each private endpoint, for each user, unless a stored rule applies."),
		row(&s.RateLimits.CodesPerHour, "rate_limits.codes_per_hour", number(0, 1_000_000), "0",
			"One-time codes per hour for each client network; half as many more for registrations, and twice as many for each API key; 0: the value of rate_limits.public_per_minute."),
		row(&s.RateLimits.PerCaller, "rate_limits.concurrent_per_caller", number(1, 100_000), "128",
			"Concurrent requests of one user, API key or client address; event streams have a separate limit."),

		row(&s.Quotas.Records, "quotas.records_per_user", number(1, 1_000_000_000), "100000",
			"Records that a user without access to all records may create: customers, documents, personas, payers, chats, messages, tasks."),
		row(&s.Quotas.Megabytes, "quotas.megabytes_per_user", number(1, 1_000_000), "256",
			"Total size of these records of one user, in MB."),
	}
}

func notificationRows(s *Settings) []Setting {
	return []Setting{
		row(&s.Notifications.SSE.Heartbeat, "notifications.sse.heartbeat_seconds", seconds(3600), "25",
			"Interval between two heartbeats on an event stream; keep it below the idle timeout of any proxy."),
		row(&s.Notifications.SSE.ConnectionsPerUser, "notifications.sse.connections_per_user", number(1, 10_000), "10",
			"Concurrent event streams of one user."),
		row(&s.Notifications.Trigger.Enabled, "notifications.trigger.enabled", triggerMode, TriggerAuto,
			"Whether POST /v1/notifications/trigger exists, which creates test notifications; auto: only on a loopback address without a proxy."),
		row(&s.Notifications.Queue.MaxAttempts, "notifications.queue.max_attempts", number(1, 100), "8",
			"Failed attempts after which a delivery becomes a dead letter."),
		row(&s.Notifications.Queue.Base, "notifications.queue.base_seconds", seconds(3600), "2",
			"Delay before the first retry of a delivery; each further failure doubles it."),
		row(&s.Notifications.Queue.Max, "notifications.queue.max_seconds", seconds(7*24*3600), "3600",
			"Longest delay between two attempts of a delivery."),
		row(&s.Notifications.Email.SMTPURL, "notifications.email.smtp_url", optional(smtpURL), "",
			"Mail server, such as smtp://user:password@mail.example:587; empty: mail stays in the local outbox."),
		row(&s.Notifications.Email.From, "notifications.email.from", optional(mailAddress), "",
			"Sender of e-mails; required with notifications.email.smtp_url."),
		row(&s.Notifications.Email.AllowPlaintext, "notifications.email.allow_plaintext", toggle, "false",
			"Whether mail may be sent without TLS to a server on another machine."),
		row(&s.Notifications.SMS.WebhookURL, "notifications.sms.webhook_url", optional(secretWebURL), "",
			"Address that receives each SMS as a JSON POST; empty: SMS stay in the local outbox."),
		row(&s.Notifications.SMS.Token, "notifications.sms.token", optional(secret(1)), "",
			"Bearer token for notifications.sms.webhook_url; set it in the environment, since flags are visible to other users."),
		row(&s.Notifications.SMS.AllowPlaintext, "notifications.sms.allow_plaintext", toggle, "false",
			"Whether notifications.sms.webhook_url may be http:// on another machine."),
	}
}

func otherRows(s *Settings) []Setting {
	return []Setting{
		row(&s.Profile.AvatarMaxBytes, "profile.avatar_max_bytes", size(1<<10, 100<<20), "5MiB",
			"Largest picture that a user may upload."),
		row(&s.Profile.AvatarMaxPixels, "profile.avatar_max_pixels", pixels(10_000, 1_000_000_000), "40MP",
			"Largest picture that a user may upload, in pixels (width times height)."),

		row(&s.Tasks.ReminderHour, "tasks.reminder_hour", number(0, 23), "6",
			"Hour of the day in UTC from which assignees are reminded of tasks that are due."),

		row(&s.Invoices.MaxBytes, "invoices.max_bytes", size(1<<10, 100<<20), "20MiB",
			"Largest invoice file that is searched for a QR-bill."),
		row(&s.Invoices.MaxPages, "invoices.max_pages", number(1, 10_000), "50",
			"Maximum number of pages of an invoice file."),
		row(&s.Invoices.Timeout, "invoices.timeout_seconds", seconds(3600), "20",
			"Time limit for processing one invoice file."),
		row(&s.Invoices.KeepDays, "invoices.keep_days", number(1, 36_500), "400",
			"Days for which the QR-bills stay that users have kept."),

		row(&s.KYC.FourEyes, "kyc.four_eyes", choice("off", "enhanced", "always"), "enhanced",
			"Which decisions about a customer's verification a second person must confirm: none, those that give the level enhanced, or all that verify or reject."),

		row(&s.Screening.Dir, "screening.dir", optional(path), "",
			"Folder with sanctions lists. Each file is loaded under its name without the extension, at the start and when it changes; empty: none."),

		row(&s.Screening.ThresholdPercent, "screening.threshold_percent", number(50, 100), "70",
			"Lowest score, in percent, with which the name of a customer, persona or payer is a hit."),
		row(&s.Screening.MaxAge, "screening.max_age_days", orNone(days(3650), 1, 3650), "7",
			"Days since its last load after which a list is shown as too old; 0: never."),

		row(&s.Files.MaxBytes, "files.max_bytes", size(1<<10, 100<<20), "10MiB",
			"Largest file that may be uploaded as evidence, or to a message or task."),
		row(&s.Files.Quota, "files.quota", size(1<<20, 1<<40), "256MiB",
			"Total size of the files of one customer's documents, and of those that one user has uploaded to messages and tasks."),
		row(&s.Files.Clamd, "files.clamd", optional(scannerAddress), "",
			"Virus scanner (clamd) that sees each file before anybody can open it: host:port, or the path of a socket; empty: none."),

		row(&s.Imports.MaxBytes, "imports.max_bytes", size(1<<10, 1<<30), "64MiB",
			"Largest file of customers that may be imported."),
		row(&s.Imports.KeepDays, "imports.keep_days", number(1, 3650), "30",
			"Days for which an import and the reasons of its rejected rows stay; as long, lines of the same file are recognized."),

		row(&s.Privacy.RetentionYears, "privacy.retention_years", number(1, 100), "10",
			"Years for which the data of a customer must be kept after the end of the business relationship."),

		row(&s.Backup.URL, "backup.url", optional(backupAddress), "",
			"Target of the continuous backup: s3://bucket/prefix?endpoint=https://s3.example&region=eu-central-1, file:///path or a path; empty: none."),
		row(&s.Backup.Line, "backup.line", optional(incarnation), "",
			"Incarnation of the data directory, if it was restored or copied and continues the backup of its former server in backup.url; the restore and the log name it."),
		row(&s.Backup.WholeEvery, "backup.whole_hours", hours(24*31), "24",
			"Hours after which the continuous backup begins again with the whole database."),
		row(&s.Backup.Keep, "backup.keep_days", orNone(days(36500), 1, 36500), "30",
			"Days for which the continuous backup can restore any time; 0: for ever."),

		row(&s.Events.Retention, "events.retention_days", orNone(days(36500), 1, 36500), "0",
			"Days for which changes can be read from the feed of events; 0: as long as the audit trail keeps them."),
		row(&s.Requests.Keep, "requests.keep", number(0, 50_000), "0",
			"Latest requests that administrators see, in the memory of this node; 0: none, and 10000 in a sandbox."),
		row(&s.Webhooks.AllowedNetworks, "webhooks.allowed_networks", networks, "",
			"Networks that webhooks may call beside public addresses, also by http://, such as 10.20.0.0/16; separated by commas."),
		row(&s.Webhooks.Timeout, "webhooks.timeout_seconds", seconds(60), "15",
			"Time limit for one call of a webhook."),
		row(&s.Webhooks.PauseAfter, "webhooks.pause_after_days", days(365), "5",
			"Days without a success after which a webhook is paused and its owner notified."),
		row(&s.Webhooks.Keep, "webhooks.keep_days", days(3650), "30",
			"Days for which finished deliveries of webhooks are listed."),

		row(&s.Audit.ChangedFields, "audit.changed_fields_days", orNone(days(36500), 1, 36500), "3650",
			"Days for which the audit trail shows the values of changed fields, before and after; 0: never. The entries themselves stay."),
		row(&s.Audit.ExportFile, "audit.export_file", optional(path), "",
			"File to which every entry of the audit trail is appended, with signed heads; empty: none."),
		row(&s.Audit.SyslogURL, "audit.syslog_url", optional(syslogURL), "",
			"Syslog server that receives every entry of the audit trail, such as tls://logs.example:6514 (udp, tcp or tls); empty: none."),

		row(&s.Log.Level, "log.level", logLevel, "info",
			"Lowest level of messages that are logged."),
		row(&s.Log.Format, "log.format", choice(LogAuto, LogText, LogJSON), LogAuto,
			"Format of the log; auto: text on a terminal, JSON otherwise."),
	}
}

func environmentRows(s *Settings) []Setting {
	return []Setting{
		fromEnvironment(&s.Secrets.AdminEmail, "KONTOR_ADMIN_EMAIL", optional(mailAddress),
			"First start only: e-mail address of the administrator; default: admin@kontor.localhost."),
		fromEnvironment(&s.Secrets.AdminPassword, "KONTOR_ADMIN_PASSWORD", optional(secret(1)),
			"First start only: password of the administrator; default: a random one, printed once."),
		fromEnvironment(&s.Secrets.APIKey, "KONTOR_API_KEY", optional(secret(minAPIKeyLength)),
			"First start only: the API key; default: a random one, printed once."),
		fromEnvironment(&s.Secrets.SecretKey, "KONTOR_SECRET_KEY", optional(secret(minSecretKeyLength)),
			"Master key, 32 bytes in hexadecimal or base64; default: a random one, in a file of the data directory; required with data.url, the same on every node."),
		fromEnvironment(&s.Secrets.PreviousKey, "KONTOR_SECRET_KEY_PREVIOUS", optional(secret(minSecretKeyLength)),
			"Master key that KONTOR_SECRET_KEY replaces, for the start or the command that rotates it."),
	}
}

// maxIdleMinutes is the longest life of a session, 30 days.
const maxIdleMinutes = 30 * 24 * 60

func authRows(s *Settings) []Setting {
	return []Setting{
		row(&s.Auth.AccessToken, "auth.access_token_minutes", minutes(24*60), "60",
			"Lifetime of an access token."),
		row(&s.Auth.SigningKeyDays, "auth.signing_key_days", number(0, 3650), "90",
			"Days after which a new key signs access tokens; the former one verifies them until they expire; 0: never."),
		row(&s.Auth.RefreshToken, "auth.refresh_token_hours", hours(366*24), "24",
			"Lifetime of a refresh token; each refresh issues a new one."),
		row(&s.Auth.Decision, "auth.decision_hours", hours(24), "12",
			"Hours after an authentication in which staff may decide about customers; then they authenticate again."),
		row(&s.Auth.SessionIdle, "auth.session_idle_minutes", orNone(minutes(maxIdleMinutes), 5, maxIdleMinutes), "720",
			"How long a session may stay unused before it ends; 0: as long as its tokens are valid."),
		row(&s.Auth.SessionsMax, "auth.sessions_max", number(0, 10_000), "20",
			"Sessions that a user may have; a further sign-in ends the one that was not used for longest; 0: any number."),
		row(&s.Auth.CoolingOff.FreeAttempts, "auth.cooling_off.free_attempts", number(1, 1000), "5",
			"Failed sign-ins in a row before the first lockout."),
		row(&s.Auth.CoolingOff.Base, "auth.cooling_off.base_seconds", seconds(3600), "2",
			"First lockout after too many failed sign-ins; each further failure doubles it."),
		row(&s.Auth.CoolingOff.Max, "auth.cooling_off.max_seconds", seconds(24*3600), "900",
			"Longest lockout after failed sign-ins."),
		row(&s.Auth.OTP, "auth.otp_minutes", minutes(24*60), "10",
			"Lifetime of a one-time code."),
		row(&s.Auth.Invitation, "auth.invitation_days", days(30), "7",
			"Validity of the link in an invitation."),
		row(&s.Auth.OTPAttempts, "auth.otp_attempts", number(1, 100), "5",
			"Wrong attempts after which a one-time code is invalid."),
		row(&s.Auth.PasswordMinLength, "auth.password_min_length", number(8, maxPasswordLength), "12",
			"Minimum number of characters of a new password."),
		row(&s.Auth.BreachedPasswords, "auth.breached_passwords_file", optional(path), "",
			"File of SHA-1 hashes of breached passwords, sorted, as Have I Been Pwned publishes it; new passwords must not be in it; empty: none."),
		row(&s.Auth.OIDC.Issuer, "auth.oidc.issuer", optional(issuerURL), "",
			"Issuer of the OpenID Connect provider with which staff sign in, such as https://login.bank.example; empty: off."),
		row(&s.Auth.OIDC.ClientID, "auth.oidc.client_id", optional(visible("client id", maxClientID)), "",
			"Client id of this installation at the provider; required with auth.oidc.issuer."),
		row(&s.Auth.OIDC.ClientSecret, "auth.oidc.client_secret", optional(secret(1)), "",
			"Client secret at the provider; set it in the environment, since flags are visible to other users; empty: a public client with PKCE alone."),
		row(&s.Auth.OIDC.Name, "auth.oidc.name", providerName, "",
			"Name of the provider on the sign-in screen; empty: the host of the issuer."),
		row(&s.Auth.OIDC.Scopes, "auth.oidc.scopes", scopes, "openid,email,profile",
			"Scopes to request from the provider."),
		row(&s.Auth.OIDC.RolesClaim, "auth.oidc.roles_claim", optional(visible("claim", maxClaim)), "",
			"Claim with the groups or roles of a user at the provider, such as groups or realm_access.roles; required with auth.oidc.role_map."),
		row(&s.Auth.OIDC.RoleMap, "auth.oidc.role_map", roleMap, "",
			"Values of the claim and the roles that they stand for, such as bank-admins=Administrator; at each sign-in these roles, and no others, are added and removed."),
		row(&s.Auth.OIDC.CreateUsers, "auth.oidc.create_users", toggle, "false",
			"Whether a first sign-in with at least one mapped role creates a user; otherwise a user must exist and be linked."),

		row(&s.Auth.MFA.RequiredRoles, "auth.mfa.required_roles", names, "Administrator,Advisor",
			"Roles whose users need a second factor as soon as one of them has one, by id or by a name without spaces; empty: none."),
		row(&s.Auth.MFA.Grace, "auth.mfa.grace_days", orNone(days(366), 1, 366), "14",
			"How long users with such a role may work without a second factor; after that they can only set one up."),
		row(&s.Auth.MFA.Issuer, "auth.mfa.issuer", issuerName, "Kontor",
			"Name of the bank that authenticator apps and passkeys show; at most 40 characters, without a colon."),
	}
}
