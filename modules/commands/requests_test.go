package commands_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kontor/modules/commands"
	"kontor/server/servertest"
	"kontor/server/settings"
	"kontor/store/testenv"
)

// logs runs the command with the token of the administrator.
func logs(t *testing.T, s *servertest.Server, out io.Writer, args ...string) (code int, said string) {
	t.Helper()
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte(s.Admin().Token), 0o600); err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	code = commands.Run(t.Context(), commands.Process{Args: append([]string{"logs", "--url", "http://" + s.Address, "--token", "@" + token}, args...), Stdout: out, Stderr: &stderr})
	return code, stderr.String()
}

func TestLogs_PrintRequests(t *testing.T) {
	s := servertest.Start(t, func(s *settings.Settings) { s.Requests.Keep = 50 })
	admin := s.Admin()
	admin.Do("GET", "/v1/customers", nil).Expect(t, 200)
	admin.Do("GET", "/v1/nowhere", nil).Expect(t, 404)
	servertest.Send(t, s.Address, "GET", "/v1/%1b%5B31m", "")
	var out bytes.Buffer
	if code, said := logs(t, s, &out, "--status=4xx", "--path=/v1/now*"); code != 0 || strings.Count(out.String(), "\n") != 1 || !strings.Contains(out.String(), "404") ||
		!strings.Contains(out.String(), "GET    /v1/nowhere  common.not_found ") || strings.ContainsRune(out.String(), 0x1b) {
		t.Errorf("code %d, %s%s", code, said, out.String())
	}
	out.Reset()
	if code, said := logs(t, s, &out, "--json", "--status=200..299", "--lines=1"); code != 0 || !strings.Contains(out.String(), `"status":200`) {
		t.Errorf("code %d, %s%s", code, said, out.String())
	}
	for flag, want := range map[string]string{"--status=4x": "--status takes", "--status=..": "--status takes", "--status=4xx,404": "either classes", "--lines=101": "--lines"} {
		if code, said := logs(t, s, io.Discard, flag); code != 1 || !strings.Contains(said, want) {
			t.Errorf("%s: code %d, %s", flag, code, said)
		}
	}
	off := servertest.Start(t)
	if code, said := logs(t, off, io.Discard); code != 1 || !strings.Contains(said, "--requests.keep") {
		t.Errorf("code %d, %s", code, said)
	}
}

// Without a token, the command reads as the administrator of the sandbox in its data directory.
func TestLogs_NeedNoTokenInASandbox(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	listen := "--server.listen=" + testenv.FreeAddress(t)
	p := start(t, []string{"KONTOR_ADMIN_PASSWORD=seven plain words nobody knows"}, "--sandbox", "--data.dir", dir, listen)
	on := []string{"logs", "--data.dir", dir} // the socket says where the server listens
	expectSuccess(t, run(nil, "", "trigger", "roles.created", "--data.dir", dir), "roles.created")
	expectSuccess(t, run(nil, "", append(on, "--path=/v1/rbac/roles")...), "POST   /v1/rbac/roles")
	expectFailure(t, run(nil, "", append(on, "--url=http://"+p.address)...), "--url needs --token")
}

func TestLogs_Follow(t *testing.T) {
	s := servertest.Start(t, func(s *settings.Settings) { s.Requests.Keep = 50 })
	admin := s.Admin()
	admin.Do("GET", "/v1/nowhere", nil).Expect(t, 404)
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		defer writer.Close()
		ended <- commands.Run(ctx, commands.Process{Args: []string{"logs", "--url", "http://" + s.Address, "--token", admin.Token, "--follow", "--code=common.not_found"},
			Stdout: writer, Stderr: io.Discard})
	}()
	lines := bufio.NewScanner(reader)
	for i, path := range []string{"/v1/nowhere ", "/v1/elsewhere "} {
		if i > 0 {
			admin.Do("GET", strings.TrimSpace(path), nil).Expect(t, 404)
		}
		if !lines.Scan() || !strings.Contains(lines.Text(), path) {
			t.Fatalf("got %q, want %s", lines.Text(), path)
		}
	}
	cancel()
	if code := <-ended; code != 0 {
		t.Errorf("the command ended with %d", code)
	}
}

func FuzzLogs_LinesAreHarmless(f *testing.F) {
	f.Add("\x1b[31m\u202e\n")
	f.Fuzz(func(t *testing.T, path string) {
		if line := commands.Harmless(path); strings.ContainsAny(line, "\x1b\n\r\x07\u202e\u0085\u009b") {
			t.Errorf("%q", line)
		}
	})
}
