package settings_test

import (
	"testing"

	"kontor/server/settings"
)

func TestTriggerEnabled_IsAutomaticOnLoopbackOnly(t *testing.T) {
	for _, c := range []struct {
		listen, base, proxies, mode string
		want                        bool
	}{
		{listen: "127.0.0.1:8080", want: true},
		{listen: "127.8.9.10:0", want: true},
		{listen: "localhost:8080", want: true},
		{listen: "[::1]:8080", want: true},
		{listen: "127.0.0.1:8080", base: "http://localhost:8080", want: true},
		{listen: "127.0.0.1:8080", base: "https://bank.example"},
		{listen: "127.0.0.1:8080", proxies: "127.0.0.1"},
		{listen: "0.0.0.0:8080"},
		{listen: "[::]:8080"},
		{listen: ":8080"},
		{listen: "192.168.1.5:8080"},
		{listen: "localhost.evil.example:8080"},
		{listen: "0.0.0.0:8080", mode: "true", want: true},
		{listen: "0.0.0.0:8080", mode: "on", want: true},
		{listen: "0.0.0.0:8080", mode: "1", want: true},
		{listen: "127.0.0.1:8080", mode: "false"},
		{listen: "127.0.0.1:8080", mode: "No"},
		{listen: "127.0.0.1:8080", mode: "Auto", want: true},
	} {
		flags := map[string][]string{"server.listen": {c.listen}}
		for name, value := range map[string]string{"server.base_url": c.base, "server.trusted_proxies": c.proxies, "notifications.trigger.enabled": c.mode} {
			if value != "" {
				flags[name] = []string{value}
			}
		}
		r, err := settings.Load(settings.Input{Flags: flags})
		if err != nil {
			t.Errorf("%+v: %v", c, err)
		} else if got := r.Settings.TriggerEnabled(); got != c.want {
			t.Errorf("%+v: got %t", c, got)
		}
	}
}
