package settings_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kontor/server/settings"
)

// file writes a settings file and returns its path.
func file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kontor.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func load(t *testing.T, in settings.Input) *settings.Result {
	t.Helper()
	r, err := settings.Load(in)
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	return r
}

func line(t *testing.T, r *settings.Result, name string) settings.Line {
	t.Helper()
	for _, l := range r.Lines() {
		if l.Name == name {
			return l
		}
	}
	t.Fatalf("there is no setting %s", name)
	return settings.Line{}
}

func TestLoad_Defaults(t *testing.T) {
	got := load(t, settings.Input{}).Settings
	want := settings.Settings{
		Server:  settings.Server{Listen: "127.0.0.1:8080", ACMEURL: "https://acme-v02.api.letsencrypt.org/directory", Shutdown: 10 * time.Second, RequestTime: 10 * time.Second},
		Metrics: settings.Metrics{Listen: "127.0.0.1:9464"},
		Data:    settings.Data{Dir: "./data", Connections: 8},
		Auth: settings.Auth{
			AccessToken: time.Hour, RefreshToken: 24 * time.Hour, Decision: 12 * time.Hour, SessionIdle: 12 * time.Hour, SessionsMax: 20, OTP: 10 * time.Minute, Invitation: 7 * 24 * time.Hour, OTPAttempts: 5, PasswordMinLength: 12, SigningKeyDays: 90,
			MFA:        settings.MFA{RequiredRoles: []string{"Administrator", "Advisor"}, Grace: 14 * 24 * time.Hour, Issuer: "Kontor"},
			CoolingOff: settings.CoolingOff{FreeAttempts: 5, Base: 2 * time.Second, Max: 15 * time.Minute},
			OIDC:       settings.OIDC{Scopes: []string{"openid", "email", "profile"}},
		},
		RateLimits: settings.RateLimits{Enabled: true, PublicPerMinute: 60, PerCaller: 128, PrivatePerMinute: 1200},
		Quotas:     settings.Quotas{Records: 100_000, Megabytes: 256},
		Notifications: settings.Notifications{
			SSE:     settings.SSE{Heartbeat: 25 * time.Second, ConnectionsPerUser: 10},
			Trigger: settings.Trigger{Enabled: settings.TriggerAuto},
			Queue:   settings.Queue{MaxAttempts: 8, Base: 2 * time.Second, Max: time.Hour},
		},
		Profile:  settings.Profile{AvatarMaxBytes: 5 << 20, AvatarMaxPixels: 40_000_000},
		Tasks:    settings.Tasks{ReminderHour: 6},
		Invoices: settings.Invoices{MaxBytes: 20 << 20, MaxPages: 50, Timeout: 20 * time.Second, KeepDays: 400},
		Files:    settings.Files{MaxBytes: 10 << 20, Quota: 256 << 20},
		Imports:  settings.Imports{MaxBytes: 64 << 20, KeepDays: 30},
		Privacy:  settings.Privacy{RetentionYears: 10},
		KYC:      settings.KYC{FourEyes: "enhanced"},

		Screening: settings.Screening{ThresholdPercent: 70, MaxAge: 7 * 24 * time.Hour},
		Backup:    settings.Backup{WholeEvery: 24 * time.Hour, Keep: 30 * 24 * time.Hour},
		Webhooks:  settings.Webhooks{Timeout: 15 * time.Second, PauseAfter: 5 * 24 * time.Hour, Keep: 30 * 24 * time.Hour},
		Audit:     settings.Audit{ChangedFields: 3650 * 24 * time.Hour},
		Log:       settings.Log{Level: slog.LevelInfo, Format: settings.LogAuto},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
}

func TestLoad_PrecedenceOfSources(t *testing.T) {
	config := file(t, "notifications:\n  sse:\n    heartbeat_seconds: 26\n")
	in := settings.Input{}
	steps := []struct {
		add    func()
		source settings.Source
		want   time.Duration
	}{
		{func() {}, settings.FromDefault, 25 * time.Second},
		{func() { in.File = config }, settings.FromFile, 26 * time.Second},
		{func() { in.Environ = []string{"KONTOR_NOTIFICATIONS_SSE_HEARTBEAT_SECONDS=27"} }, settings.FromEnvironment, 27 * time.Second},
		{func() { in.Flags = map[string][]string{"notifications.sse.heartbeat_seconds": {"28"}} }, settings.FromFlag, 28 * time.Second},
	}
	for _, step := range steps {
		step.add()
		r := load(t, in)
		if got := r.Settings.Notifications.SSE.Heartbeat; got != step.want {
			t.Errorf("%s: heartbeat %v, want %v", step.source, got, step.want)
		}
		if got := line(t, r, "notifications.sse.heartbeat_seconds").Source; got != step.source {
			t.Errorf("source %q, want %q", got, step.source)
		}
	}
}

func TestLoad_FileFromEnvironment(t *testing.T) {
	r := load(t, settings.Input{Environ: []string{"KONTOR_CONFIG=" + file(t, "data.dir: /srv/kontor")}})
	if got := r.Settings.Data.Dir; got != "/srv/kontor" {
		t.Errorf("data.dir %q", got)
	}
	if len(r.Warnings) != 0 {
		t.Errorf("warnings: %q", r.Warnings)
	}
}

// An empty value means the same in each source, for all settings: what may be off is off, whatever the sources below say, and a
// setting that needs a value rejects it.
func TestLoad_EmptyValuesMeanTheSameInEachSource(t *testing.T) {
	for _, s := range settings.All() {
		sources := map[settings.Source]settings.Input{settings.FromEnvironment: {Environ: []string{s.Env + "="}}}
		if !s.EnvironmentOnly {
			sources[settings.FromFlag] = settings.Input{Flags: map[string][]string{s.Name: {""}}}
			sources[settings.FromFile] = settings.Input{File: file(t, s.Name+`: ""`)}
		}
		mayBeOff := s.Default == "" || strings.Contains(s.Meaning, "empty:")
		for source, in := range sources {
			r, err := settings.Load(in)
			if !mayBeOff {
				expectLine(t, s.Name, err, "")
				if err != nil && !strings.Contains(err.Error(), s.Name) {
					t.Errorf("%s from %s: the line does not name the setting: %v", s.Name, source, err)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s from %s: %v", s.Name, source, err)
				continue
			}
			for _, l := range r.Lines() {
				if l.Name == s.Name && (l.Text != "" || l.Source != source) {
					t.Errorf("%s: %q from %s, want nothing from %s", s.Name, l.Text, l.Source, source)
				}
			}
		}
	}
}

func TestLoad_AnEmptyValueOverridesTheSourcesBelow(t *testing.T) {
	in := settings.Input{
		File:    file(t, "cors.allowed_origins: [https://a.example]\nmetrics.listen: 127.0.0.1:9000"),
		Environ: []string{"KONTOR_CORS_ALLOWED_ORIGINS=", "KONTOR_METRICS_LISTEN="},
	}
	s := load(t, in).Settings
	if len(s.CORS.AllowedOrigins) != 0 || s.Metrics.Listen != "" {
		t.Errorf("empty variables left origins %q and address %q of the file", s.CORS.AllowedOrigins, s.Metrics.Listen)
	}
	in.Flags = map[string][]string{"metrics.listen": {"127.0.0.1:9001"}}
	if got := load(t, in).Settings.Metrics.Listen; got != "127.0.0.1:9001" {
		t.Errorf("an empty variable cleared the flag: %q", got)
	}
	in.Flags["metrics.listen"] = []string{""}
	in.Environ = []string{"KONTOR_METRICS_LISTEN=127.0.0.1:9002"}
	if got := load(t, in).Settings.Metrics.Listen; got != "" {
		t.Errorf("an empty flag left the address of the environment: %q", got)
	}
}

func TestLoad_TypedValues(t *testing.T) {
	s := load(t, settings.Input{Flags: map[string][]string{
		"server.trusted_proxies":   {"10.0.0.7", "192.168.0.0/16 ::1"},
		"cors.allowed_origins":     {"HTTPS://App.Example:443", "http://localhost:3000"},
		"profile.avatar_max_bytes": {"1", "2 mb"},
		"rate_limits.enabled":      {"off"},
		"server.base_url":          {"https://bank.example/"},
	}, Environ: []string{"KONTOR_PROFILE_AVATAR_MAX_PIXELS=1000000"}})
	got := s.Settings
	wantProxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.7/32"), netip.MustParsePrefix("192.168.0.0/16"), netip.MustParsePrefix("::1/128")}
	if fmt.Sprint(got.Server.TrustedProxies) != fmt.Sprint(wantProxies) {
		t.Errorf("trusted proxies %v, want %v", got.Server.TrustedProxies, wantProxies)
	}
	if diff := cmp.Diff([]string{"https://app.example", "http://localhost:3000"}, got.CORS.AllowedOrigins); diff != "" {
		t.Errorf("origins (-want +got):\n%s", diff)
	}
	if got.Profile.AvatarMaxBytes != 2_000_000 || got.Profile.AvatarMaxPixels != 1_000_000 || got.RateLimits.Enabled {
		t.Errorf("got %+v %+v", got.Profile, got.RateLimits)
	}
	if got.Server.BaseURL != "https://bank.example" {
		t.Errorf("base URL %q", got.Server.BaseURL)
	}
}

func TestLoad_RejectsMisspelledVariables(t *testing.T) {
	for name, meant := range map[string]string{
		"KONTOR_SERVER_LISTN": "KONTOR_SERVER_LISTEN",
		"KONTOR_DATADIR":      "KONTOR_DATA_DIR",
		"KONTOR_CONFG":        "KONTOR_CONFIG",
		"KONTOR_API_KEYS":     "KONTOR_API_KEY",
	} {
		_, err := settings.Load(settings.Input{Environ: []string{name + "=1"}})
		want := `unknown environment variable ` + name + ` (did you mean "` + meant + `"?); correct or remove it`
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}

func TestLoad_WarnsOfVariablesOfOtherPrograms(t *testing.T) {
	r := load(t, settings.Input{Environ: []string{
		"KONTOR_XYZZY_42=1", "KONTORX=1", "PATH=/bin",
		// Kubernetes sets these for a service with the name kontor.
		"KONTOR_SERVICE_HOST=10.0.0.7", "KONTOR_SERVICE_PORT=8080", "KONTOR_SERVICE_PORT_HTTP=8080", "KONTOR_PORT=tcp://10.0.0.7:8080",
		"KONTOR_PORT_8080_TCP=tcp://10.0.0.7:8080", "KONTOR_PORT_8080_TCP_PROTO=tcp", "KONTOR_SERVER_PORT=tcp://10.0.0.7:8080",
	}})
	if diff := cmp.Diff([]string{`unknown environment variable KONTOR_XYZZY_42 is ignored`}, r.Warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

func TestLines_HaveTypedDefaults(t *testing.T) {
	r := load(t, settings.Input{Flags: map[string][]string{"auth.otp_minutes": {"3"}, "rate_limits.enabled": {"false"}}})
	for name, want := range map[string]string{
		"auth.otp_minutes": "10", "rate_limits.enabled": "true", "server.listen": `"127.0.0.1:8080"`, "server.trusted_proxies": "[]",
		"profile.avatar_max_bytes": "5242880", "log.level": `"info"`, "server.base_url": `""`,
	} {
		got, err := json.Marshal(line(t, r, name).Default)
		if err != nil || string(got) != want {
			t.Errorf("%s: default %s (%v), want %s", name, got, err, want)
		}
	}
}

func TestSecrets_AreNeverShown(t *testing.T) {
	r := load(t, settings.Input{Environ: []string{
		"KONTOR_ADMIN_PASSWORD=swordfish-swordfish", "KONTOR_API_KEY=swordfish-swordfish", "KONTOR_SECRET_KEY=swordfish-swordfish-swordfish-swordfish",
		"KONTOR_NOTIFICATIONS_SMS_TOKEN=swordfish", "KONTOR_NOTIFICATIONS_SMS_WEBHOOK_URL=https://sms.example/hook/swordfish?key=swordfish",
		"KONTOR_NOTIFICATIONS_EMAIL_SMTP_URL=smtp://me:swordfish@mail.example", "KONTOR_NOTIFICATIONS_EMAIL_FROM=a@b.example",
	}})
	asJSON, err := json.Marshal([]any{r.Lines(), r.Settings})
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "secret", r.Settings.Secrets.APIKey)
	for _, shown := range []string{string(asJSON), fmt.Sprintf("%v %+v %#v", r.Settings, r.Settings, r.Settings), fmt.Sprint(r.Lines()), log.String()} {
		if strings.Contains(shown, "swordfish") {
			t.Errorf("a secret is shown: %s", shown)
		}
	}
	if got := line(t, r, "notifications.email.smtp_url").Text; got != "smtp://********@mail.example" {
		t.Errorf("smtp_url is shown as %q", got)
	}
	if got := line(t, r, "notifications.sms.webhook_url").Text; got != "https://sms.example/********" {
		t.Errorf("webhook_url is shown as %q", got)
	}
	if got := string(r.Settings.Notifications.SMS.Token); got != "swordfish" {
		t.Errorf("the token itself is %q", got)
	}
}

func TestBaseURLFor(t *testing.T) {
	for addr, want := range map[string]string{
		"127.0.0.1:8080": "http://localhost:8080",
		"0.0.0.0:8080":   "http://localhost:8080",
		"[::]:80":        "http://localhost",
		":9000":          "http://localhost:9000",
		"[::1]:9000":     "http://[::1]:9000",
	} {
		if got := (&settings.Settings{}).BaseURLFor(addr); got != want {
			t.Errorf("BaseURLFor(%q) = %q, want %q", addr, got, want)
		}
	}
	set := settings.Settings{Server: settings.Server{BaseURL: "https://bank.example"}}
	if got := set.BaseURLFor("127.0.0.1:1"); got != "https://bank.example" {
		t.Errorf("with a base URL: %q", got)
	}
}
