package commands_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kontor/store/testenv"
)

func TestVersion_IgnoresSettings(t *testing.T) {
	expectSuccess(t, run([]string{"KONTOR_LOG_LEVEL=loud"}, "", "version"), "kontor ")
}

func TestHelp(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"help"}, {"-h"}} {
		o := run(nil, "", args...)
		expectSuccess(t, o, "completion")
		if strings.Contains(o.stdout, "--notifications.sse") {
			t.Errorf("%q shows the flags of all settings", args)
		}
	}
	expectSuccess(t, run(nil, "", "help", "settings"), "--notifications.sse.heartbeat_seconds")
	expectSuccess(t, run(nil, "", "completion", "bash", "--help"), "source <(kontor completion bash)\n")
}

func TestHelp_EveryCommandHasUsageSentenceAndExamples(t *testing.T) {
	for _, command := range []string{"serve", "user create", "user password", "user role", "user factors", "user reset-factors", "service create", "service list", "service token", "service revoke", "apikey create", "apikey list", "apikey revoke",
		"import customers", "qrbill", "backup", "backup verify", "restore", "key export", "key import", "check", "audit export", "audit verify", "audit key", "settings", "settings check", "licences", "version"} {
		o := run(nil, "", append(strings.Fields(command), "--help")...)
		expectSuccess(t, o, "\nUsage:\n  kontor "+command)
		if sentence, _, _ := strings.Cut(o.stdout, "\n"); !strings.HasSuffix(sentence, ".") {
			t.Errorf("kontor %s --help does not begin with a sentence: %q", command, o.stdout)
		}
		if _, examples, ok := strings.Cut(o.stdout, "\nExamples:\n"); !ok || !strings.Contains(strings.SplitN(examples, "\n", 2)[0], "kontor") {
			t.Errorf("kontor %s --help has no example: %q", command, o.stdout)
		}
	}
}

func TestUsageErrors(t *testing.T) {
	expectFailure(t, run(nil, "", "setings"), `unknown command "setings" (did you mean "settings"?)`)
	expectFailure(t, run(nil, "", "--log.level", "info", "frobnicate"), `unknown command "frobnicate"`)
	expectFailure(t, run(nil, "", "settings", "--server.lissten=x"), `unknown flag --server.lissten (did you mean "--server.listen"?)`)
	expectFailure(t, run(nil, "", "settings", "more"), "unexpected argument more")
	expectFailure(t, run(nil, "", "settings", "--server.listen"), `--server.listen needs a value; see "kontor settings --help"`)
	expectFailure(t, run(nil, "", "backup"), `the argument <file> is missing; see "kontor backup --help"`)
	expectFailure(t, run(nil, "", "apikey"), `a command is missing: one of "create", "list", "revoke"; see "kontor apikey --help"`)
	expectFailure(t, run(nil, "", "audit", "export", "--from=x"), `--from must be a whole number, not "x"`)
	expectFailure(t, run(nil, "", "serve", "--demo=x"), `--demo must be true or false, not "x"`)
	expectFailure(t, run(nil, "", "--demo", "version"), `unknown flag --demo; see "kontor version --help"`)
	expectFailure(t, run(nil, "", "settings", "-x"), `unknown flag -x`)
	for _, flag := range []string{"--port=8081", "--listen=:8081", "-p"} {
		expectFailure(t, run(nil, "", "serve", flag), `(did you mean "--server.listen", such as --server.listen=127.0.0.1:8081?); see "kontor serve --help"`)
	}
	expectFailure(t, run(nil, "", "settings", "--data.dir", "--json"), `--data.dir needs a value; write --data.dir="--json" if "--json" is the value`)
	expectFailure(t, run(nil, "", "user", "crate"), `unknown command "crate" (did you mean "create"?); see "kontor user --help"`)
	expectFailure(t, run(nil, "", "user", "create", "anna", "--language=es"), `--language must be one of en, de, fr, it, not "es"`)
	expectFailure(t, run(nil, "", "completion", "tcsh"), `unknown command "tcsh"`)
	expectFailure(t, run(nil, "", "copy", "--data.dir=x"), `missing: --from and --to; see "kontor copy --help"`)
	expectFailure(t, run(nil, "", "restore", "a", "--erasures="), `--erasures must be the name of a file, not ""`)
	expectFailure(t, run(nil, "", "backup", "a", "--with-key", "--without-key"), "--with-key cannot be combined with --without-key")
}

func TestUsage_NegativeNumbersAreValues(t *testing.T) {
	expectFailure(t, run(nil, "", "settings", "--auth.otp_minutes", "-5"), `auth.otp_minutes must be a whole number from 1 to 1440, not "-5"`)
	expectFailure(t, run(nil, "", "--auth.otp_minutes", "-5", "settings"), `not "-5"`)
	o := run(nil, "", "qrbill", "--page", "-1", "-")
	if o.code != 1 || !strings.Contains(o.stdout, "page_out_of_range") {
		t.Errorf("exit %d, stdout %q, stderr %q", o.code, o.stdout, o.stderr)
	}
}

func TestVersion_IsAFlagOfEveryCommand(t *testing.T) {
	want := run(nil, "", "version").stdout
	for _, args := range [][]string{{"--version"}, {"backup", "--version"}, {"serve", "--version"}} {
		o := run([]string{"KONTOR_LOG_LEVEL=loud"}, "", args...)
		if expectSuccess(t, o, "kontor "); o.stdout != want {
			t.Errorf("%q printed %q, want %q", args, o.stdout, want)
		}
	}
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
	expectSuccess(t, o, `"meaning"`)
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
	expectSuccess(t, o, "rate_limits.enabled")
	for line := range strings.Lines(o.stdout) {
		if f := strings.Fields(line); f[0] == "rate_limits.enabled" && (f[1] != "true" || f[2] != "flag") {
			t.Errorf("got %q", line)
		}
	}
}

// The setting was a switch in earlier versions. It accepts the values of a switch, and auto.
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
			expectSuccess(t, o, name)
			for shown := range strings.Lines(o.stdout) {
				if f := strings.Fields(shown); f[0] == name && f[1] != want {
					t.Errorf("%q: got %q, want %s", line, shown, want)
				}
			}
		}
	}
}

func TestSettings_RejectsInvalidValues(t *testing.T) {
	expectFailure(t, run(nil, "", "settings", "--log.level=loud"), `log.level must be one of debug, info, warn, error, not "loud" (flag --log.level)`)
	expectFailure(t, run([]string{"KONTOR_SERVER_LISTEN=nowhere"}, "", "settings"), "environment variable KONTOR_SERVER_LISTEN")
	expectFailure(t, run(nil, "", "settings", "--config", "/does/not/exist.yaml"), "/does/not/exist.yaml")
	expectFailure(t, run(nil, "", "settings", "--rate_limits.enabled=perhaps"), "rate_limits.enabled must be true or false")
}

func TestSettings_RejectsMisspelledVariables(t *testing.T) {
	misspelled := []string{"KONTOR_SERVER_LISTN=x"}
	want := `unknown environment variable KONTOR_SERVER_LISTN (did you mean "KONTOR_SERVER_LISTEN"?)`
	expectFailure(t, run(misspelled, "", "settings"), want)
	dir := filepath.Join(t.TempDir(), "data")
	expectFailure(t, run(misspelled, "", "serve", "--data.dir", dir), want)
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the rejected start created a data directory: %v", err)
	}
	o := run([]string{"KONTOR_XYZZY_42=x"}, "", "settings")
	if want := "kontor: warning: unknown environment variable KONTOR_XYZZY_42 is ignored\n"; o.code != 0 || o.stderr != want {
		t.Errorf("exit %d, stderr %q", o.code, o.stderr)
	}
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		expectSuccess(t, run(nil, "", "completion", shell), "__complete")
	}
	for _, c := range []struct {
		words []string
		want  string // the candidates
	}{
		{[]string{"sett"}, "settings"},
		{[]string{"settings", ""}, "check"},
		{[]string{"settings", "--js"}, "--json"},
		{[]string{"--log.f"}, "--log.format"},
		{[]string{"--log.format", ""}, "auto text json"},
		{[]string{"--log.format=js"}, "json"},
		{[]string{"--rate_limits.enabled=f"}, "false"},
		{[]string{"--rate_limits.enabled", "compl"}, "completion"},
		{[]string{"--data.dir", ""}, ""},
		{[]string{"--data.dir", "x", "completion", "z"}, "zsh"},
		{[]string{"completion", "zsh", ""}, ""},
		{[]string{"user", "create", "anna", "--role", ""}, "Administrator Advisor Customer Registrant"},
		{[]string{"user", "create", "--role=Ad"}, "Administrator Advisor"},
		{[]string{"user", "role", "anna", "Customer", "Adv"}, "Advisor"},
		{[]string{"user", "re"}, "reset-factors"},
		{[]string{"user", "fa"}, "factors"},
	} {
		o := run(nil, "", append([]string{"__complete"}, c.words...)...)
		var got []string
		for line := range strings.Lines(o.stdout) {
			if strings.HasPrefix(line, ":") { // what the shell does with the candidates
				break
			}
			word, meaning, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
			if meaning == "" {
				t.Errorf("%q: candidate %q has no description", c.words, word)
			}
			got = append(got, word)
		}
		if o.code != 0 || strings.Join(got, " ") != c.want {
			t.Errorf("%q: exit %d, %q, want %q", c.words, o.code, got, c.want)
		}
	}
}

// TestCompletion_InZsh completes in an interactive zsh. In the first case zsh loads the script from its function path at
// the first Tab, in the second a start-up file reads it.
func TestCompletion_InZsh(t *testing.T) {
	testenv.Need(t, testenv.Full)
	zsh := testenv.Tool(t, "zsh")
	dir := t.TempDir()
	script := run(nil, "", "completion", "zsh").stdout
	program := "#!/bin/sh\nprintf 'backup\\tmakes a copy\\n:4\\n'\n"
	for name, text := range map[string]string{"_kontor": script, "kontor": program} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, setUp := range map[string]string{
		"from the function path": "fpath=(" + dir + " $fpath); autoload -Uz compinit; compinit -u -D",
		"from a start-up file":   "autoload -Uz compinit; compinit -u -D; source " + dir + "/_kontor",
	} {
		drive := `zmodload zsh/zpty; zpty shell ` + zsh + ` -f -i
zpty -w shell 'PATH=` + dir + `:$PATH; PS1=; ` + setUp + `; print re""ady'
zpty -r -m shell out '*ready*'
zpty -w -n shell $'kontor bac\t'
zpty -r -m shell out '*backup*' && print -r -- completed
zpty -d shell`
		cmd := exec.CommandContext(t.Context(), zsh, "-f", "-c", drive)
		kill := time.AfterFunc(testenv.Limit(), func() { _ = cmd.Process.Kill() }) // the read waits for a completion that may not come
		out, err := cmd.CombinedOutput()
		if kill.Stop(); err != nil || !strings.Contains(string(out), "completed") {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
}
