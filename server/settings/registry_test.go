package settings_test

import (
	"fmt"
	"strings"
	"testing"

	"kontor/server/settings"
)

// TestLoad_RoundTrip sets every setting in every source to a value other than its default, and compares the output.
func TestLoad_RoundTrip(t *testing.T) {
	samples := map[string]string{
		"server.listen":                          "0.0.0.0:9000",
		"server.base_url":                        "https://bank.example/kontor",
		"server.tls_cert":                        "/srv/cert.pem",
		"server.tls_key":                         "/srv/key.pem",
		"server.domain":                          "bank.example,www.bank.example",
		"server.redirect_listen":                 "0.0.0.0:8081",
		"server.acme_url":                        "https://acme.example/directory",
		"server.acme_email":                      "ops@bank.example",
		"server.shutdown_seconds":                "3",
		"kyc.four_eyes":                          "always",
		"server.request_seconds":                 "4",
		"server.trusted_proxies":                 "10.0.0.7/32,fd00::/8",
		"metrics.listen":                         "10.0.0.7:9000",
		"data.dir":                               "/srv/kontor",
		"data.url":                               "postgres://kontor@db.example:5433/kontor?sslmode=verify-full",
		"data.connections":                       "20",
		"backup.url":                             "s3://vault/kontor?region=eu-central-1",
		"backup.line":                            "x2kq7n4mbd3ovw5a",
		"backup.whole_hours":                     "12",
		"backup.keep_days":                       "7",
		"cluster.node":                           "node-1",
		"server.console_dir":                     "/srv/console",
		"bank.name":                              "Bank am See",
		"bank.logo":                              "/srv/logo.svg",
		"bank.color":                             "#0d5c63",
		"bank.terms_url":                         "https://bank.example/terms",
		"bank.privacy_url":                       "https://bank.example/privacy",
		"cors.allowed_origins":                   "https://a.example,http://localhost:3000",
		"auth.access_token_minutes":              "5",
		"auth.refresh_token_hours":               "12",
		"auth.decision_hours":                    "8",
		"auth.session_idle_minutes":              "15",
		"auth.sessions_max":                      "3",
		"auth.mfa.required_roles":                "Administrator,Auditor",
		"auth.mfa.grace_days":                    "7",
		"auth.signing_key_days":                  "30",
		"auth.mfa.issuer":                        "Bank & Söhne",
		"auth.cooling_off.free_attempts":         "3",
		"auth.cooling_off.base_seconds":          "4",
		"auth.cooling_off.max_seconds":           "100",
		"auth.otp_minutes":                       "7",
		"auth.otp_attempts":                      "4",
		"auth.invitation_days":                   "3",
		"auth.password_min_length":               "14",
		"auth.breached_passwords_file":           "/srv/breached.txt",
		"auth.oidc.issuer":                       "https://login.bank.example/realms/staff/",
		"auth.oidc.client_id":                    "kontor",
		"auth.oidc.client_secret":                "s3cret",
		"auth.oidc.name":                         "Bank Login",
		"auth.oidc.scopes":                       "openid,groups",
		"auth.oidc.roles_claim":                  "realm_access.roles",
		"auth.oidc.role_map":                     "bank admins=Administrator,cn=advisors=Advisor",
		"auth.oidc.create_users":                 "true",
		"rate_limits.enabled":                    "false",
		"rate_limits.public_per_minute":          "90",
		"rate_limits.private_per_minute":         "3000",
		"rate_limits.codes_per_hour":             "500",
		"rate_limits.concurrent_per_caller":      "64",
		"quotas.records_per_user":                "5000",
		"quotas.megabytes_per_user":              "10",
		"notifications.sse.heartbeat_seconds":    "1",
		"notifications.sse.connections_per_user": "2",
		"notifications.trigger.enabled":          "false",
		"notifications.queue.max_attempts":       "2",
		"notifications.queue.base_seconds":       "1",
		"notifications.queue.max_seconds":        "60",
		"notifications.email.smtp_url":           "smtp://mail.example:587",
		"notifications.email.from":               "Kontor <bank@kontor.example>",
		"notifications.email.allow_plaintext":    "true",
		"notifications.sms.allow_plaintext":      "true",
		"notifications.sms.webhook_url":          "https://sms.example",
		"notifications.sms.token":                "t0ken",
		"profile.avatar_max_bytes":               "2MiB",
		"profile.avatar_max_pixels":              "12MP",
		"tasks.reminder_hour":                    "7",
		"invoices.keep_days":                     "30",
		"invoices.max_bytes":                     "1500kB",
		"invoices.max_pages":                     "9",
		"invoices.timeout_seconds":               "8",
		"screening.dir":                          "/srv/lists",
		"screening.threshold_percent":            "80",
		"screening.max_age_days":                 "14",
		"files.max_bytes":                        "4MiB",
		"files.quota":                            "2GiB",
		"files.clamd":                            "127.0.0.1:3310",
		"imports.max_bytes":                      "128MiB",
		"imports.keep_days":                      "90",
		"privacy.retention_years":                "15",
		"events.retention_days":                  "400",
		"requests.keep":                          "500",
		"webhooks.allowed_networks":              "10.20.0.0/16",
		"webhooks.timeout_seconds":               "5",
		"webhooks.pause_after_days":              "2",
		"webhooks.keep_days":                     "7",
		"audit.changed_fields_days":              "365",
		"audit.export_file":                      "/var/log/kontor/audit.jsonl", "audit.syslog_url": "tls://logs.example:6514",
		"log.level":                  "debug",
		"log.format":                 "json",
		"KONTOR_ADMIN_EMAIL":         "root@kontor.example",
		"KONTOR_ADMIN_PASSWORD":      "a long enough password",
		"KONTOR_API_KEY":             "sixteen-characters",
		"KONTOR_SECRET_KEY":          "0123456789abcdef0123456789abcdef",
		"KONTOR_SECRET_KEY_PREVIOUS": "0123456789abcdef0123456789abcdee",
	}
	masked := map[string]bool{
		"notifications.sms.token": true, "auth.oidc.client_secret": true, "KONTOR_ADMIN_PASSWORD": true, "KONTOR_API_KEY": true,
		"KONTOR_SECRET_KEY": true, "KONTOR_SECRET_KEY_PREVIOUS": true,
	}
	var yaml strings.Builder
	flags, fromEnv, forEnvironment := map[string][]string{}, []string{}, []string{}
	for _, s := range settings.All() {
		sample, ok := samples[s.Name]
		if !ok {
			t.Fatalf("no sample for %s", s.Name)
		}
		fromEnv = append(fromEnv, s.Env+"="+sample)
		if s.EnvironmentOnly {
			forEnvironment = append(forEnvironment, s.Env+"="+sample)
			continue
		}
		flags[s.Name] = []string{sample}
		fmt.Fprintf(&yaml, "%s: %q\n", s.Name, sample)
	}
	sources := map[settings.Source]settings.Input{
		settings.FromFlag:        {Flags: flags, Environ: forEnvironment},
		settings.FromEnvironment: {Environ: fromEnv},
		settings.FromFile:        {File: file(t, yaml.String()), Environ: forEnvironment},
	}
	for source, in := range sources {
		r := load(t, in)
		for _, l := range r.Lines() {
			want, wantSource := samples[l.Name], source
			if masked[l.Name] {
				want = "********"
			}
			if l.Flag == "" {
				wantSource = settings.FromEnvironment
			}
			if l.Text != want || l.Source != wantSource {
				t.Errorf("%s: %q from %s, want %q from %s", l.Name, l.Text, l.Source, want, wantSource)
			}
			if fmt.Sprint(l.Value) == fmt.Sprint(l.Default) {
				t.Errorf("%s: the sample must differ from the default", l.Name)
			}
		}
	}
}

func TestRegistry_EveryRowIsComplete(t *testing.T) {
	names := map[string]bool{}
	for _, s := range settings.All() {
		if s.Meaning == "" || s.Type == "" || strings.Contains(s.Meaning, "\n") || names[s.Name] || names[s.Env] {
			t.Errorf("%s: incomplete or declared twice", s.Name)
		}
		names[s.Name], names[s.Env] = true, true
	}
	for i, l := range load(t, settings.Input{}).Lines() {
		if want := settings.All()[i].Default; l.Text != want {
			t.Errorf("%s: default %q is shown as %q", l.Name, want, l.Text)
		}
	}
}
