package settings_test

import (
	"strings"
	"testing"

	"kontor/server/settings"
)

func TestLoad_RejectsGatewaysWithoutEncryption(t *testing.T) {
	const mail, sms = "KONTOR_NOTIFICATIONS_EMAIL_SMTP_URL=", "KONTOR_NOTIFICATIONS_SMS_WEBHOOK_URL="
	for given, refused := range map[string]string{
		mail + "smtp://mail.example:25":            "notifications.email.allow_plaintext",
		mail + "smtp://10.0.0.7":                   "notifications.email.allow_plaintext",
		mail + "smtp://localhost.mail.example":     "notifications.email.allow_plaintext",
		mail + "smtp://user:secret@mail.example":   "",
		mail + "smtps://mail.example":              "",
		mail + "smtp://localhost:1025":             "",
		mail + "smtp://127.0.0.1:1025":             "",
		mail + "smtp://[::1]:1025":                 "",
		sms + "http://sms.example/send":            "notifications.sms.allow_plaintext",
		sms + "http://192.168.1.9/":                "notifications.sms.allow_plaintext",
		sms + "http://127.0.0.1.sms.example/":      "notifications.sms.allow_plaintext",
		sms + "https://sms.example/send":           "",
		sms + "http://127.0.0.1:9000/":             "",
		sms + "http://gateway.localhost:9000/sms":  "",
		sms + "http://[::ffff:127.0.0.1]:9000/sms": "",
	} {
		environ := []string{given, "KONTOR_NOTIFICATIONS_EMAIL_FROM=bank@kontor.example"}
		_, err := settings.Load(settings.Input{Environ: environ})
		if refused == "" {
			if err != nil {
				t.Errorf("%s: %v", given, err)
			}
			continue
		}
		expectLine(t, given, err, refused)
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the line repeats the secret", given)
		}
		allowed := append(environ, "KONTOR_NOTIFICATIONS_EMAIL_ALLOW_PLAINTEXT=true", "KONTOR_NOTIFICATIONS_SMS_ALLOW_PLAINTEXT=true")
		if _, err := settings.Load(settings.Input{Environ: allowed}); err != nil {
			t.Errorf("%s, allowed: %v", given, err)
		}
	}
}
