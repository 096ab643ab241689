package settings_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"kontor/server/settings"
)

func TestDatabaseName_ShowsNoSecret(t *testing.T) {
	for given, want := range map[string]string{
		"postgres://kontor:s3cret@db.example:5432/kontor":                                                    "postgres://kontor:********@db.example:5432/kontor",
		"postgresql://kontor@db.example/kontor":                                                              "postgresql://kontor@db.example/kontor",
		"postgres:///kontor?host=/run/postgresql&user=kontor&password=s3cret":                                "postgres:///kontor?host=/run/postgresql&password=********&user=kontor",
		"postgres://kontor:s3cret@[::1]:5432/kontor?sslmode=disable&sslpassword=s3cret":                      "postgres://kontor:********@[::1]:5432/kontor?sslmode=disable&sslpassword=********",
		"postgres://kontor:s3cret@a.example:5432,b.example:5433/kontor?target_session_attrs=read-write":      "postgres://kontor:********@a.example:5432,b.example:5433/kontor?target_session_attrs=read-write",
		"postgres://kontor:s3cret@/kontor?host=a.example,b.example&port=1,2&target_session_attrs=read-write": "postgres://kontor:********@/kontor?host=a.example,b.example&port=1,2&target_session_attrs=read-write",
		"postgres://kontor:p%40s3cret%2F@db.example/kontor":                                                  "postgres://kontor:********@db.example/kontor",
		"postgres://s3cret@db.example:5432:99/kontor":                                                        "********",
		"": "",
	} {
		if got := settings.DatabaseName(given); got != want {
			t.Errorf("%s: %q, want %q", given, got, want)
		}
	}
}

// TestLoad_NeverShowsThePasswordOfTheDatabase looks for a password in the output for operators and in errors about the setting.
func TestLoad_NeverShowsThePasswordOfTheDatabase(t *testing.T) {
	r, err := settings.Load(settings.Input{Environ: []string{"KONTOR_DATA_URL=postgres://kontor:s3cret@db.example/kontor?sslmode=verify-full"}})
	if err != nil || len(r.Warnings) > 0 {
		t.Fatalf("%v %v", r, err)
	}
	lines, err := json.Marshal(r.Lines())
	if err != nil || strings.Contains(string(lines)+fmt.Sprintf("%v %+v %#v", r.Settings, r.Lines(), r.Settings.Data), "s3cret") {
		t.Errorf("the output shows the password: %s", lines)
	}
	for _, wrong := range []string{
		"postgres://kontor:s3cret@db.example", "mysql://kontor:s3cret@db.example/kontor", "postgres://kontor:s3cret@db.example:x/kontor",
		"postgres://kontor:%s3cret@db.example/kontor", "postgres://db.example/kontor?password=s3cret&password=s3cret", "postgres://kontor:s3cret@db.example/kontor?statement_timeout=1",
	} {
		_, err := settings.Load(settings.Input{Environ: []string{"KONTOR_DATA_URL=" + wrong}})
		expectLine(t, wrong, err, "data.url")
		if err != nil && strings.Contains(err.Error(), "s3cret") {
			t.Errorf("the error shows the password: %v", err)
		}
	}
}

func TestLoad_WarnsAboutTheDatabase(t *testing.T) {
	flag := func(url string) settings.Input {
		return settings.Input{Flags: map[string][]string{"data.url": {url}}}
	}
	environ := func(variables ...string) settings.Input { return settings.Input{Environ: variables} }
	for _, c := range []struct {
		in   settings.Input
		want string
	}{
		{flag("postgres://kontor:s3cret@localhost/kontor"), "KONTOR_DATA_URL"},
		{flag("postgres://localhost/kontor?user=kontor&password=s3cret"), "KONTOR_DATA_URL"},
		{flag("postgres://kontor@localhost/kontor"), ""},
		{environ("KONTOR_DATA_URL=postgres://kontor:s3cret@localhost/kontor"), ""},
		{environ("KONTOR_DATA_URL=postgres://kontor:s3cret@127.0.0.1:5432/kontor"), ""},
		{environ("KONTOR_DATA_URL=postgres://kontor:s3cret@[::1]/kontor"), ""},
		{environ("KONTOR_DATA_URL=postgres:///kontor?host=/run/postgresql"), ""},
		{environ("KONTOR_DATA_URL=postgres:///kontor"), ""},
		{environ("KONTOR_DATA_URL=postgres://db.example/kontor"), "sslmode=verify-full"},
		{environ("KONTOR_DATA_URL=postgres://db.example/kontor?sslmode=prefer"), "sslmode=verify-full"},
		{environ("KONTOR_DATA_URL=postgres://localhost:1,db.example:2/kontor?target_session_attrs=read-write"), "sslmode=verify-full"},
		{environ("KONTOR_DATA_URL=postgres://db.example/kontor?sslmode=disable"), ""},
		{environ("KONTOR_DATA_URL=postgres:///kontor", "KONTOR_DATA_DIR=/srv/kontor"), ""}, // it keeps what the node has seen
	} {
		warnings := load(t, c.in).Warnings
		if c.want == "" && len(warnings) > 0 || c.want != "" && (len(warnings) != 1 || !strings.Contains(warnings[0], c.want)) || strings.Contains(fmt.Sprint(warnings), "s3cret") {
			t.Errorf("%v: warnings %q, want %q", c.in, warnings, c.want)
		}
	}
}
