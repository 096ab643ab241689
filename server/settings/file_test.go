package settings_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kontor/server/settings"
)

func TestFile_NestedAndDotted(t *testing.T) {
	for name, content := range map[string]string{
		"nested":      "notifications:\n  queue:\n    base_seconds: 3\nserver:\n  trusted_proxies:\n    - 10.0.0.1\n    - 10.0.0.2\n",
		"dotted":      "notifications.queue.base_seconds: 3\nserver.trusted_proxies: 10.0.0.1, 10.0.0.2\n",
		"mixed":       "notifications:\n  queue.base_seconds: '3'\nserver: {trusted_proxies: [10.0.0.1, 10.0.0.2]}\n",
		"with nulls":  "# a comment\nnotifications:\n  queue.base_seconds: 3\n  email:\n  sse.heartbeat_seconds:\nserver.trusted_proxies: [10.0.0.1, 10.0.0.2]\nlog:\n",
		"with marker": "---\nnotifications.queue.base_seconds: 3\nserver.trusted_proxies: [10.0.0.1, 10.0.0.2]\n...\n",
	} {
		s := load(t, settings.Input{File: file(t, content)}).Settings
		if got := s.Notifications.Queue.Base; got != 3*time.Second {
			t.Errorf("%s: base_seconds %v", name, got)
		}
		if got := len(s.Server.TrustedProxies); got != 2 {
			t.Errorf("%s: %d proxies", name, got)
		}
		if got := s.Notifications.SSE.Heartbeat; got != 25*time.Second {
			t.Errorf("%s: a member without a value changed the heartbeat to %v", name, got)
		}
	}
}

func TestFile_Empty(t *testing.T) {
	for _, content := range []string{"", "\n", "# only a comment\n", "---\n", "~\n"} {
		load(t, settings.Input{File: file(t, content)})
	}
}

func TestFile_Rejected(t *testing.T) {
	for _, c := range []struct{ name, content, want string }{
		{"unknown name", "log.level: info\nserver:\n  listn: x\n", `kontor.yaml:3: unknown setting "server.listn" (did you mean "server.listen"?)`},
		{"unknown group", "sever:\n  listen: x\n", `kontor.yaml:1: unknown setting "sever"`},
		{"last part only", "heartbeat_seconds: 3\n", `did you mean "notifications.sse.heartbeat_seconds"?`},
		{"other separators", "server-listen: x\n", `did you mean "server.listen"?`},
		{"no similar name", "colour: red\n", `kontor.yaml:1: unknown setting "colour"`},
		{"wrong value", "\n\nlog.level: loud\n", `log.level must be one of debug, info, warn, error, not "loud" (`},
		{"place of a wrong value", "\n\nlog.level: loud\n", `kontor.yaml:3)`},
		{"twice", "log.level: info\nlog:\n  level: debug\n", `kontor.yaml:3: log.level is set twice, first at`},
		{"twice, plainly", "log.level: info\nlog.level: debug\n", `kontor.yaml:2: log.level is set twice, first at`},
		{"a group as a value", "log: info\n", `kontor.yaml:1: unknown setting "log"`},
		{"a value as a group", "log.level:\n  a: b\n", `kontor.yaml:2: log.level must be a single value`},
		{"a list for one value", "log.level: [info]\n", `log.level must be a single value`},
		{"a list in a list", "server.trusted_proxies: [[10.0.0.1]]\n", `server.trusted_proxies must be a list of plain values`},
		{"environment-only secret", "KONTOR_API_KEY: 0123456789abcdef\n", `KONTOR_API_KEY can only be set in the environment`},
		{"list instead of a mapping", "- log.level\n", `kontor.yaml:1: the file must be a mapping`},
		{"two documents", "log.level: info\n---\nlog.level: debug\n", `the file must contain only one document`},
		{"alias", "log.level: &a info\nlog.format: *a\n", `anchors and aliases are not supported`},
		{"merge", "log:\n  <<: {level: info}\n", `a setting's name must be plain text`},
		{"key that is not text", "[a]: b\n", `a setting's name must be plain text`},
		{"syntax", "log:\n  level: info\n bad\n", `kontor.yaml:`},
		{"tab", "log:\n\tlevel: info\n", `not valid YAML`},
		{"binary", "\x00\x01", `not valid YAML`},
		{"too large", "#" + strings.Repeat("x", 1<<20), `larger than 1 MiB`},
	} {
		_, err := settings.Load(settings.Input{File: file(t, c.content)})
		expectLine(t, c.name, err, c.want)
	}
	_, err := settings.Load(settings.Input{File: filepath.Join(t.TempDir(), "missing.yaml")})
	expectLine(t, "missing file", err, "missing.yaml")
	_, err = settings.Load(settings.Input{File: t.TempDir()})
	expectLine(t, "directory", err, "settings file")
}
