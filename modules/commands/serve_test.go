package commands_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"kontor/modules/commands"
)

// output is a stream of a running command. seen is closed when a line with want has come.
type output struct {
	want string
	seen chan struct{}

	mu   sync.Mutex
	data bytes.Buffer
	done bool
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.data.Write(p)
	if !o.done && bytes.Contains(o.data.Bytes(), []byte(o.want)) {
		o.done = true
		close(o.seen)
	}
	return len(p), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.data.String()
}

// bank is a running "kontor serve".
type bank struct {
	address        string
	stdout, stderr *output
	stop           func() int // stops it, once, and returns its exit code
}

func startBank(t *testing.T, environ []string, args ...string) *bank {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	b := &bank{
		stdout: &output{want: "never", seen: make(chan struct{})},
		stderr: &output{want: `"msg":"listening"`, seen: make(chan struct{})},
	}
	ended := make(chan int, 1)
	go func() {
		ended <- commands.Run(ctx, commands.Process{
			Args: append([]string{"serve", "--server.listen=127.0.0.1:0", "--server.shutdown_seconds=1"}, args...), Environ: environ,
			Stdin: strings.NewReader(""), Stdout: b.stdout, Stderr: b.stderr,
		})
	}()
	b.stop = sync.OnceValue(func() int {
		cancel()
		return <-ended
	})
	t.Cleanup(func() { b.stop() })
	select {
	case <-b.stderr.seen:
	case code := <-ended:
		ended <- code
		t.Fatalf("ended with %d: %s", code, b.stderr)
	}
	for line := range strings.Lines(b.stderr.String()) {
		var entry struct{ Msg, Address string }
		if err := json.Unmarshal([]byte(line), &entry); err == nil && entry.Msg == "listening" {
			b.address = entry.Address
		}
	}
	return b
}

// call makes a request, with headers in pairs, and returns status and body.
func (b *bank) call(t *testing.T, method, path, body string, headers ...string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "http://"+b.address+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(answer)
}

func (b *bank) signsIn(t *testing.T, login, password string) bool {
	t.Helper()
	body, err := json.Marshal(map[string]string{"user_id": login, "password": password})
	if err != nil {
		t.Fatal(err)
	}
	status, _ := b.call(t, http.MethodPost, "/authenticate", string(body))
	return status == http.StatusOK
}

// after returns the word behind label.
func after(text, label string) string {
	_, rest, _ := strings.Cut(text, label)
	if f := strings.Fields(rest); len(f) > 0 {
		return f[0]
	}
	return ""
}

func TestServe_FirstStartShowsTheSecretsOnce(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	first := startBank(t, nil, "--data.dir", dir)
	if status, body := first.call(t, http.MethodGet, "/readyz", ""); status != http.StatusOK {
		t.Errorf("/readyz: %d %s", status, body)
	}
	shown := first.stdout.String()
	password, key := after(shown, "password"), after(shown, "API key")
	if !first.signsIn(t, after(shown, "administrator"), password) {
		t.Errorf("nobody can sign in with what was shown: %s", shown)
	}
	if code := first.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if log := first.stderr.String(); strings.Contains(log, password) || strings.Contains(log, key) || !strings.Contains(log, `"msg":"stopped"`) {
		t.Errorf("a secret is in the log, or its end is missing: %s", log)
	}

	again := startBank(t, nil, "--data.dir", dir)
	if again.stop(); again.stdout.String() != "" {
		t.Errorf("the second start printed %s", again.stdout)
	}
}

func TestServe_FirstStartTakesTheSecretsOfTheEnvironment(t *testing.T) {
	t.Parallel()
	b := startBank(t, []string{
		"KONTOR_ADMIN_EMAIL=root@kontor.example", "KONTOR_ADMIN_PASSWORD=seven plain words nobody knows", "KONTOR_API_KEY=a-key-of-our-own-0123",
	}, "--data.dir", t.TempDir())
	if !b.signsIn(t, "root@kontor.example", "seven plain words nobody knows") {
		t.Error("the administrator cannot sign in")
	}
	if shown := b.stdout.String(); strings.Contains(shown, "seven plain") || strings.Contains(shown, "a-key-of-our-own") {
		t.Errorf("a secret that was given is shown: %s", shown)
	}
}

func TestServe_Refused(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	b := startBank(t, nil, "--data.dir", dir)
	refused(t, run(nil, "", "serve", "--server.listen=127.0.0.1:0", "--data.dir", dir), "in use")
	refused(t, run(nil, "", "user", "role", "admin@kontor.localhost", "--data.dir", dir), "in use")

	fresh := filepath.Join(t.TempDir(), "data")
	refused(t, run(nil, "", "--server.listen", b.address, "--data.dir", fresh), "cannot listen on "+b.address+": address already in use")
	if _, err := os.Stat(fresh); !os.IsNotExist(err) {
		t.Errorf("a start that failed left a data directory: %v", err)
	}

	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, run(nil, "", "serve", "--server.listen=127.0.0.1:0", "--data.dir", file), file)
	refused(t, run(nil, "", "serve", "--server.listen=127.0.0.1:0", "--auth.otp_minutes=0"), "auth.otp_minutes")
	refused(t, run(nil, "", "serve", "--demo", "--server.listen=0.0.0.0:0", "--data.dir", fresh), "--demo-public")
	refused(t, run(nil, "", "serve", "--demo", "--server.listen=:0", "--data.dir", fresh), "--demo-public")
	refused(t, run(nil, "", "--data.dir", fresh, "serve", "more"), "unexpected argument more")

	broken := newDatabase(t)
	junk := []byte(strings.Repeat("not a database ", 1000))
	if err := os.WriteFile(filepath.Join(broken, "kontor.db"), junk, 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, run(nil, "", "serve", "--server.listen=127.0.0.1:0", "--data.dir", broken), "damaged")
	if now, err := os.ReadFile(filepath.Join(broken, "kontor.db")); err != nil || !bytes.Equal(now, junk) {
		t.Errorf("a damaged database was changed, %v", err)
	}
	wrong := []string{"KONTOR_SECRET_KEY=" + strings.Repeat("0", 64)}
	refused(t, run(wrong, "", "serve", "--server.listen=127.0.0.1:0", "--data.dir", newDatabase(t)), "key")
}
