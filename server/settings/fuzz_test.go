package settings

import (
	"strings"
	"testing"
)

// FuzzFile checks that no file causes a panic and that each error is one line.
func FuzzFile(f *testing.F) {
	for _, seed := range []string{
		"", "log:\n  level: info\n", "server.trusted_proxies: [10.0.0.1]\n", "a: &a [*a]\n", "? x\n: y\n", "<<: *x", "log: {level: !!binary aGk=}", "--- |\n", "%YAML 1.1\n---\n", "\xff\xfe",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		values, mistakes := parseFile("f.yaml", data)
		for _, err := range mistakes {
			if strings.ContainsAny(err.Error(), "\n\r") {
				t.Errorf("more than one line: %q", err)
			}
		}
		for name := range values {
			if s, known := lookUp(name); !known || s.EnvironmentOnly {
				t.Errorf("%q was accepted from the file", name)
			}
		}
	})
}

// FuzzValue sets every setting to the same text. An accepted value must be shown in an equivalent form.
func FuzzValue(f *testing.F) {
	for _, seed := range []string{"", "5MiB", "40 MP", "10", "true", "info", "127.0.0.1:8080", "https://a.example:443", "10.0.0.0/8,::1", "a@b.example", "smtp://a:b@c:25"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		again := rowsOf(&Settings{})
		for i, s := range rowsOf(&Settings{}) {
			if err := s.set(raw); err != nil {
				if line := s.wrong(given{raw: raw}, err).Error(); strings.ContainsAny(line, "\n\r") {
					t.Errorf("%s: more than one line: %q", s.Name, line)
				}
				continue
			}
			shown := s.show()
			if s.secret {
				continue
			}
			if err := again[i].set(shown); err != nil || again[i].show() != shown {
				t.Errorf("%s: %q is shown as %q, which is parsed as %q, %v", s.Name, raw, shown, again[i].show(), err)
			}
		}
	})
}
