package settings_test

import (
	"strings"
	"testing"

	"kontor/server/settings"
)

func TestLoad_RejectsWrongValues(t *testing.T) {
	wrong := map[string][]string{
		"server.listen":             {"", "8080", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "host name:80", "1.2.3.4.5:80", ":-1", "::1:80", ":+80"},
		"server.base_url":           {"bank.example", "ftp://bank.example", "https://", "https://u:p@bank.example", "https://bank.example?x=1", "https://bank.example#x", "https://bank.example:99999", "https://bank.example:", "http:bank.example", "https://bank .example"},
		"server.tls_cert":           {"a\nb"},
		"server.tls_key":            {"a\nb"},
		"server.domain":             {"localhost", "*.bank.example", "192.0.2.1", "[::1]", "bank.example:443", "https://bank.example", "bank_1.example", "bank.example.", "-bank.example", "bank..example", "10.0.0"},
		"server.redirect_listen":    {"80", "bank.example", "127.0.0.1:65536"},
		"server.acme_url":           {"", "acme.example", "ftp://acme.example"},
		"server.acme_email":         {"nobody"},
		"server.shutdown_seconds":   {"", "0", "-1", "abc", "1.5", "10s", "3601", "99999999999999999999"},
		"server.request_seconds":    {"", "0", "-1", "abc", "1.5", "10s", "601"},
		"server.trusted_proxies":    {"10.0.0.0/33", "10.1.2.3/8", "proxy.example", "10.0.0", "*", "10.0.0.1,nonsense", "fe80::1%eth0", "::ffff:10.0.0.0/104"},
		"metrics.listen":            {"9464", "127.0.0.1", "127.0.0.1:65536", "host name:80"},
		"data.dir":                  {"", "a\nb"},
		"events.retention_days":     {"", "-1", "36501", "x"},
		"webhooks.allowed_networks": {"10.0.0.0/33", "10.1.2.3/8", "hooks.example", "*"},
		"webhooks.timeout_seconds":  {"", "0", "61"},
		"webhooks.pause_after_days": {"", "0", "366"},
		"webhooks.keep_days":        {"", "0", "3651"},
		"data.url": {"db.example/kontor", "mysql://db.example/kontor", "postgres://db.example", "postgres://db.example/", "postgres://db.example/a/b", "postgres:kontor",
			"postgres://db example/kontor", "postgres://db.example:0/kontor", "postgres://db.example:x/kontor", "postgres://db.example/kontor#x", "postgres://db.example/kontor?sslmode=on",
			"postgres://db.example/kontor?pool_max_conns=4", "postgres://db.example/kontor?sslmode=require&sslmode=disable", "postgres://a:1,b:2/kontor", "postgres://a:1,b:2/kontor?target_session_attrs=any",
			"postgres://db.example/kontor?host=/run", "postgres:///kontor?port=x", "postgres:///kontor?host=db..example"},
		"backup.url":                             {"ftp://vault/kontor", "s3://key:secret@vault/kontor", "a\nb", "http://[::1"},
		"backup.line":                            {"x", "X2KQ7N4MBD3OVW5A", "x2kq7n4mbd3ovw5a1", "../../../etc/pas"},
		"backup.whole_hours":                     {"", "0", "745"},
		"backup.keep_days":                       {"", "-1", "36501"},
		"data.connections":                       {"", "0", "501", "many"},
		"cluster.node":                           {"a b", "ä", strings.Repeat("a", 64)},
		"server.console_dir":                     {"a\nb"},
		"bank.name":                              {"a\nb", strings.Repeat("a", 61)},
		"bank.logo":                              {"a\nb"},
		"bank.color":                             {"red", "#12345", "#ffee00", "#0d5c63; x", "#767676"},
		"bank.terms_url":                         {"bank.example/terms", "javascript:x", "http://bank.example/terms", "https://u:p@bank.example"},
		"bank.privacy_url":                       {"bank.example", "ftp://bank.example"},
		"cors.allowed_origins":                   {"*", "null", "app.example", "https://app.example/", "https://app.example/x", "https://*.example", "https://u@app.example", "ftp://app.example", "https://app.example?x", "https://a.example,b"},
		"auth.access_token_minutes":              {"0", "1441"},
		"auth.refresh_token_hours":               {"0", "9000"},
		"auth.decision_hours":                    {"", "0", "-1", "25", "1.5", "x"},
		"auth.session_idle_minutes":              {"", "-1", "4", "43201", "00", "0.0", "never"},
		"auth.sessions_max":                      {"", "-1", "10001"},
		"auth.signing_key_days":                  {"", "-1", "3651", "x"},
		"auth.cooling_off.free_attempts":         {"0", "many"},
		"auth.cooling_off.base_seconds":          {"0", "2s"},
		"auth.cooling_off.max_seconds":           {"0", "86401", "1" /* less than base */},
		"auth.otp_minutes":                       {"0", "1441"},
		"auth.otp_attempts":                      {"0", "101"},
		"auth.password_min_length":               {"7", "129"},
		"auth.mfa.required_roles":                {"a;b", "Administrator,\"x\""},
		"auth.mfa.grace_days":                    {"", "-1", "367", "two"},
		"auth.mfa.issuer":                        {"", " Bank", "Bank: Login", "a\nb", strings.Repeat("ä", 41)},
		"auth.breached_passwords_file":           {"a\nb"},
		"auth.oidc.issuer":                       {"login.example", "ftp://login.example", "http://login.example", "https://u@login.example", "https://login.example?x=1", "https://login.example#x", "https://login.example" /* without a client id */},
		"auth.oidc.client_id":                    {"a b", "ä", "kontor" /* without an issuer */},
		"auth.oidc.client_secret":                {"a\nb", " a", "s3cret" /* without an issuer */},
		"auth.oidc.name":                         {" Bank", "a\nb", strings.Repeat("x", 41)},
		"auth.oidc.scopes":                       {"", "email", "openid,\"email\""},
		"auth.oidc.roles_claim":                  {"my groups", "a\nb"},
		"auth.oidc.role_map":                     {"admins", "=Advisor", "admins=", "a=b\x00", "a=Advisor" /* without an issuer */},
		"auth.oidc.create_users":                 {"", "maybe", "true" /* without an issuer */},
		"rate_limits.enabled":                    {"", "maybe", "2"},
		"rate_limits.public_per_minute":          {"0", "1000001"},
		"rate_limits.private_per_minute":         {"0", "1e3"},
		"rate_limits.codes_per_hour":             {"-1", "many"},
		"rate_limits.concurrent_per_caller":      {"0", "-1"},
		"quotas.records_per_user":                {"0", "many"},
		"quotas.megabytes_per_user":              {"0", "1GB"},
		"notifications.sse.heartbeat_seconds":    {"0", "3601"},
		"notifications.sse.connections_per_user": {"0", "10001"},
		"notifications.trigger.enabled":          {"nope"},
		"notifications.queue.max_attempts":       {"0", "101"},
		"notifications.queue.base_seconds":       {"0", "3601"},
		"notifications.queue.max_seconds":        {"0", "1" /* less than base */},
		"notifications.email.smtp_url":           {"mail.example:25", "http://mail.example", "smtp://", "smtp://mail.example" /* without a sender */},
		"notifications.email.from":               {"nobody", "a@", "a@b.example, c@d.example"},
		"notifications.email.allow_plaintext":    {"", "maybe"},
		"notifications.sms.allow_plaintext":      {"", "2"},
		"notifications.sms.webhook_url":          {"sms.example", "smtp://sms.example"},
		"notifications.sms.token":                {"a\nb", " a"},
		"profile.avatar_max_bytes":               {"", "0", "MiB", "5XB", "-5MiB", "1.5MiB", "101MiB", "9223372036854775807GiB", "5MiBMiB"},
		"profile.avatar_max_pixels":              {"0", "40 megapixels", "1001MP"},
		"tasks.reminder_hour":                    {"-1", "24", "noon"},
		"invoices.keep_days":                     {"0", "36501", "x"},
		"invoices.max_bytes":                     {"1B", "1TB"},
		"invoices.max_pages":                     {"0", "10001"},
		"invoices.timeout_seconds":               {"0", "3601"},
		"kyc.four_eyes":                          {"", "two", "true"},
		"screening.dir":                          {"a\nb"},
		"screening.threshold_percent":            {"", "49", "101", "0.7"},
		"screening.max_age_days":                 {"", "-1", "3651", "x"},
		"requests.keep":                          {"-1", "50001", "x"},
		"files.max_bytes":                        {"1B", "101MiB"},
		"files.quota":                            {"1kB", "x"},
		"imports.max_bytes":                      {"1B", "2GiB"},
		"imports.keep_days":                      {"0", "x"},
		"files.clamd":                            {"scanner", "run/clamd.sock", "127.0.0.1:0", ":3310", "127.0.0.1:99999"},
		"privacy.retention_years":                {"0", "101", "x"},
		"auth.invitation_days":                   {"", "0", "31", "x"},
		"audit.changed_fields_days":              {"", "-1", "36501", "x"},
		"audit.export_file":                      {"a\nb"},
		"audit.syslog_url":                       {"logs.example", "http://logs.example", "tls://", "tls://logs.example/x", "tcp://u@logs.example", "udp://logs.example:0", "udp://logs.example?x=1"},
		"log.level":                              {"", "loud", "info+1"},
		"log.format":                             {"", "xml"},
	}
	for _, s := range settings.All() {
		if s.EnvironmentOnly {
			continue
		}
		if len(wrong[s.Name]) == 0 {
			t.Errorf("no wrong values for %s", s.Name)
		}
		for _, value := range wrong[s.Name] {
			_, err := settings.Load(settings.Input{Flags: map[string][]string{s.Name: {value}}})
			expectLine(t, s.Name+"="+value, err, "")
			if err != nil && !strings.Contains(err.Error(), s.Name[:strings.LastIndex(s.Name, ".")]) {
				t.Errorf("%s=%q: the line does not name the setting: %v", s.Name, value, err)
			}
		}
	}
}

func TestLoad_RejectsWrongSecrets(t *testing.T) {
	for _, entry := range []string{
		"KONTOR_ADMIN_EMAIL=nobody", "KONTOR_ADMIN_PASSWORD=short", "KONTOR_ADMIN_PASSWORD=" + strings.Repeat("x", 129),
		"KONTOR_API_KEY=fifteen-letters", "KONTOR_API_KEY=sixteen-letters-\n", "KONTOR_SECRET_KEY=short",
	} {
		_, err := settings.Load(settings.Input{Environ: []string{entry}})
		name, value, _ := strings.Cut(entry, "=")
		expectLine(t, entry, err, name)
		if err != nil && name != "KONTOR_ADMIN_EMAIL" && strings.Contains(err.Error(), value) {
			t.Errorf("%s: the line repeats the secret: %v", name, err)
		}
	}
}

func TestLoad_NamesThePlaceOfAWrongValue(t *testing.T) {
	for _, c := range []struct {
		name string
		in   settings.Input
		want string
	}{
		{"flag", settings.Input{Flags: map[string][]string{"server.shutdown_seconds": {"soon"}}},
			`server.shutdown_seconds must be a whole number from 1 to 3600, not "soon" (flag --server.shutdown_seconds)`},
		{"environment", settings.Input{Environ: []string{"KONTOR_SERVER_SHUTDOWN_SECONDS=soon"}},
			`server.shutdown_seconds must be a whole number from 1 to 3600, not "soon" (environment variable KONTOR_SERVER_SHUTDOWN_SECONDS)`},
		{"overridden", settings.Input{Environ: []string{"KONTOR_LOG_LEVEL=loud"}, Flags: map[string][]string{"log.level": {"info"}}},
			`log.level must be one of debug, info, warn, error, not "loud" (environment variable KONTOR_LOG_LEVEL)`},
		{"list", settings.Input{Environ: []string{"KONTOR_SERVER_TRUSTED_PROXIES=10.0.0.1,ten"}},
			`server.trusted_proxies must be addresses or networks, such as 10.0.0.7 or 10.0.0.0/8, separated by commas; "ten" is neither (environment variable KONTOR_SERVER_TRUSTED_PROXIES)`},
		{"secret", settings.Input{Environ: []string{"KONTOR_API_KEY=too-short"}},
			`KONTOR_API_KEY must have at least 16 characters (environment variable KONTOR_API_KEY)`},
	} {
		_, err := settings.Load(c.in)
		if err == nil || err.Error() != c.want {
			t.Errorf("%s:\n got %v\nwant %s", c.name, err, c.want)
		}
	}
}

func TestLoad_LongWrongValueIsShortened(t *testing.T) {
	_, err := settings.Load(settings.Input{Environ: []string{"KONTOR_LOG_LEVEL=" + strings.Repeat("é", 5000)}})
	expectLine(t, "long value", err, "é…")
	if err != nil && len(err.Error()) > 400 {
		t.Errorf("the line has %d bytes", len(err.Error()))
	}
}

// expectLine expects an error of one line that contains want.
func expectLine(t *testing.T, what string, err error, want string) {
	t.Helper()
	switch {
	case err == nil:
		t.Errorf("%q was accepted", what)
	case strings.ContainsAny(err.Error(), "\n\r"):
		t.Errorf("%q: more than one line: %q", what, err)
	case !strings.Contains(err.Error(), want):
		t.Errorf("%q: %q does not contain %q", what, err, want)
	}
}
