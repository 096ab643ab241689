package commands_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kontor/modules/commands"
)

// outcome is what a command left behind.
type outcome struct {
	code           int
	stdout, stderr string
}

func run(environ []string, stdin string, args ...string) outcome {
	var stdout, stderr bytes.Buffer
	code := commands.Run(context.Background(), commands.Process{
		Args: args, Environ: environ, Stdin: strings.NewReader(stdin), Stdout: &stdout, Stderr: &stderr,
	})
	return outcome{code, stdout.String(), stderr.String()}
}

// refused expects one line on standard error that contains want, and 1.
func refused(t *testing.T, o outcome, want string) {
	t.Helper()
	if o.code != 1 || strings.Count(o.stderr, "\n") != 1 || !strings.HasPrefix(o.stderr, "kontor: ") || !strings.Contains(o.stderr, want) {
		t.Errorf("exit %d, stderr %q, want exit 1 and one line that contains %q", o.code, o.stderr, want)
	}
	if o.stdout != "" {
		t.Errorf("a refused command printed %q", o.stdout)
	}
}

func succeeded(t *testing.T, o outcome, want string) {
	t.Helper()
	if o.code != 0 || o.stderr != "" || !strings.Contains(o.stdout, want) {
		t.Errorf("exit %d, stderr %q, stdout %q, want exit 0 and %q", o.code, o.stderr, o.stdout, want)
	}
}

func TestVersion_WhateverIsSet(t *testing.T) {
	succeeded(t, run([]string{"KONTOR_LOG_LEVEL=loud"}, "", "version"), "kontor ")
}

func TestHelp(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"help"}, {"-h"}} {
		o := run(nil, "", args...)
		succeeded(t, o, "completion")
		if strings.Contains(o.stdout, "--notifications.sse") {
			t.Errorf("%q shows the flags of all settings", args)
		}
	}
	succeeded(t, run(nil, "", "help", "settings"), "--notifications.sse.heartbeat_seconds")
	succeeded(t, run(nil, "", "completion", "--help"), "fish: kontor completion fish | source")
}

func TestUsageErrors(t *testing.T) {
	refused(t, run(nil, "", "setings"), `unknown command "setings" (did you mean "settings"?)`)
	refused(t, run(nil, "", "--log.level", "info", "frobnicate"), `unknown command "frobnicate"`)
	refused(t, run(nil, "", "settings", "--server.lissten=x"), `unknown flag --server.lissten, did you mean "--server.listen"?`)
	refused(t, run(nil, "", "settings", "more"), "unexpected argument more")
	refused(t, run(nil, "", "settings", "--server.listen"), "missing value")
	refused(t, run(nil, "", "completion", "tcsh"), "tcsh")
}

func TestSettings_FlagsReachTheRegistry(t *testing.T) {
	config := filepath.Join(t.TempDir(), "kontor.yaml")
	if err := os.WriteFile(config, []byte("data.dir: /srv/a\nlog.level: warn\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := run([]string{"KONTOR_LOG_LEVEL=debug", "KONTOR_API_KEY=swordfish-swordfish"}, "",
		"--server.listen", "127.0.0.1:9000", "settings", "--json", "--config", config, "--rate_limits.enabled", "false",
		"--notifications.trigger.enabled=no", "--cors.allowed_origins=https://a.example", "--cors.allowed_origins", "https://b.example",
		"--auth.otp_minutes=3", "--auth.otp_minutes=4")
	succeeded(t, o, `"meaning"`)
	var lines []struct {
		Name, Source string
		Value        any
	}
	if err := json.Unmarshal([]byte(o.stdout), &lines); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, l := range lines {
		v, err := json.Marshal(l.Value)
		if err != nil {
			t.Fatal(err)
		}
		got[l.Name] = string(v) + " " + l.Source
	}
	for name, want := range map[string]string{
		"server.listen":                 `"127.0.0.1:9000" flag`,
		"data.dir":                      `"/srv/a" file`,
		"log.level":                     `"debug" environment`,
		"rate_limits.enabled":           `false flag`,
		"notifications.trigger.enabled": `false flag`,
		"cors.allowed_origins":          `["https://a.example","https://b.example"] flag`,
		"auth.otp_minutes":              `4 flag`,
		"auth.otp_attempts":             `5 default`,
		"server.trusted_proxies":        `[] default`,
		"KONTOR_API_KEY":                `"********" environment`,
	} {
		if got[name] != want {
			t.Errorf("%s: %s, want %s", name, got[name], want)
		}
	}
	if strings.Contains(o.stdout, "swordfish") {
		t.Error("a secret is shown")
	}
}

func TestSettings_SwitchAlone(t *testing.T) {
	o := run([]string{"KONTOR_RATE_LIMITS_ENABLED=false"}, "", "--rate_limits.enabled", "settings")
	succeeded(t, o, "rate_limits.enabled")
	for line := range strings.Lines(o.stdout) {
		if f := strings.Fields(line); f[0] == "rate_limits.enabled" && (f[1] != "true" || f[2] != "flag") {
			t.Errorf("got %q", line)
		}
	}
}

// What was a switch before has a third value, and takes all that it took.
func TestSettings_TriggerIsASwitchWithAThirdValue(t *testing.T) {
	const name = "notifications.trigger.enabled"
	config := filepath.Join(t.TempDir(), "kontor.yaml")
	if err := os.WriteFile(config, []byte("notifications:\n  trigger:\n    enabled: false\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][][]string{
		"true":  {{"--" + name}, {"--" + name, "true"}, {"--" + name + "=yes"}},
		"false": {{"--" + name, "false"}, {"--" + name + "=off"}, {"--config", config}},
		"auto":  {{}, {"--" + name, "auto"}, {"--config", config, "--" + name + "=auto"}},
	} {
		for _, line := range args {
			o := run(nil, "", append(line, "settings")...)
			succeeded(t, o, name)
			for shown := range strings.Lines(o.stdout) {
				if f := strings.Fields(shown); f[0] == name && f[1] != want {
					t.Errorf("%q: got %q, want %s", line, shown, want)
				}
			}
		}
	}
}

func TestSettings_Refused(t *testing.T) {
	refused(t, run(nil, "", "settings", "--log.level=loud"), `log.level must be one of debug, info, warn, error, not "loud" (flag --log.level)`)
	refused(t, run([]string{"KONTOR_SERVER_LISTEN=nowhere"}, "", "settings"), "environment variable KONTOR_SERVER_LISTEN")
	refused(t, run(nil, "", "settings", "--config", "/does/not/exist.yaml"), "/does/not/exist.yaml")
	refused(t, run(nil, "", "settings", "--rate_limits.enabled=perhaps"), "rate_limits.enabled must be true or false")
}

func TestSettings_WarnsOfUnknownVariables(t *testing.T) {
	o := run([]string{"KONTOR_SERVER_LISTN=x"}, "", "settings")
	if want := "kontor: warning: unknown environment variable KONTOR_SERVER_LISTN is ignored (did you mean \"KONTOR_SERVER_LISTEN\"?)\n"; o.code != 0 || o.stderr != want {
		t.Errorf("exit %d, stderr %q", o.code, o.stderr)
	}
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		succeeded(t, run(nil, "", "completion", shell), "__complete")
	}
	for _, c := range []struct {
		words []string
		want  string // the candidates
	}{
		{[]string{"sett"}, "settings"},
		{[]string{"settings", ""}, ""},
		{[]string{"settings", "--js"}, "--json"},
		{[]string{"--log.f"}, "--log.format"},
		{[]string{"--log.format", ""}, "auto text json"},
		{[]string{"--log.format", "=", "t"}, "text"},
		{[]string{"--log.format", "="}, "auto text json"},
		{[]string{"--log.format=js"}, "--log.format=json"},
		{[]string{"--rate_limits.enabled=f"}, "--rate_limits.enabled=false"},
		{[]string{"--rate_limits.enabled", "compl"}, "completion"},
		{[]string{"--data.dir", ""}, ""},
		{[]string{"--data.dir", "x", "completion", "z"}, "zsh"},
		{[]string{"completion", "zsh", ""}, ""},
		{[]string{"--no-such-flag=x", "vers"}, "version"},
	} {
		o := run(nil, "", append([]string{"__complete"}, c.words...)...)
		var got []string
		for line := range strings.Lines(o.stdout) {
			word, meaning, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
			if meaning == "" {
				t.Errorf("%q: %q has no meaning beside it", c.words, word)
			}
			got = append(got, word)
		}
		if o.code != 0 || strings.Join(got, " ") != c.want {
			t.Errorf("%q: exit %d, %q, want %q", c.words, o.code, got, c.want)
		}
	}
}
