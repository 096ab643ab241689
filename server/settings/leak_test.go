package settings_test

import (
	"strings"
	"testing"

	"kontor/server/settings"
)

// The refusal of an address does not repeat the credentials in it.
func TestWrong_DoesNotShowCredentials(t *testing.T) {
	for _, value := range []string{
		"s3://AKIAEXAMPLE:hunter22@bucket/prefix",
		"s3://AKIAEXAMPLE:hunter22/prefix",
		"s3://bucket/prefix#hunter22",
		"s3://bucket/prefix?endpoint=https://kontor:hunter22@s3.example",
	} {
		_, err := settings.Load(settings.Input{Flags: map[string][]string{"backup.url": {value}}})
		if err == nil || strings.Contains(err.Error(), "hunter22") {
			t.Errorf("backup.url %s: %v", value, err)
		}
	}
	if _, err := settings.Load(settings.Input{Flags: map[string][]string{"backup.url": {"s3://bucket/prefix?endpoint=https://s3.example"}}}); err != nil {
		t.Error(err)
	}
	for name, value := range map[string]string{
		"data.url":                     "mysql://kontor:hunter22@db.example/kontor",
		"notifications.email.smtp_url": "ftp://kontor:hunter22@mail.example",
		"server.base_url":              "https://kontor:hunter22@bank.example",
		"files.clamd":                  "tcp://kontor:hunter22@127.0.0.1:99999",
		"audit.syslog_url":             "ftp://kontor:hunter22@log.example",
		"server.acme_url":              "ftp://kontor:hunter22@acme.example",
		"auth.oidc.issuer":             "http://kontor:hunter22@login.example",
	} {
		_, err := settings.Load(settings.Input{Flags: map[string][]string{name: {value}}})
		if err != nil && strings.Contains(err.Error(), "hunter22") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
