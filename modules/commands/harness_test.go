package commands_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"kontor/modules/commands"
	"kontor/store"
	"kontor/store/testenv"
)

// outcome is the result of a command.
type outcome struct {
	code           int
	stdout, stderr string
}

// run executes a command to its end.
func run(environ []string, stdin string, args ...string) outcome {
	var stdout, stderr bytes.Buffer
	code := commands.Run(context.Background(), commands.Process{
		Args: args, Environ: environ, Stdin: strings.NewReader(stdin), Stdout: &stdout, Stderr: &stderr,
	})
	return outcome{code, stdout.String(), stderr.String()}
}

// progress is what a command prints when it takes long.
var progress = regexp.MustCompile(`^\s*\d+ % of `)

// said returns the lines of the standard error, without those of a busy machine: the log of a start, and the progress of a backup.
func (o outcome) said() (lines []string) {
	for line := range strings.Lines(o.stderr) {
		if !strings.HasPrefix(line, `{"time":`) && !progress.MatchString(line) {
			lines = append(lines, line)
		}
	}
	return lines
}

// expectFailure reports an error unless the command exited with 1, printed one line that contains want to standard error,
// and printed nothing else.
func expectFailure(t *testing.T, o outcome, want string) {
	t.Helper()
	lines := o.said()
	if o.code != 1 || len(lines) != 1 || !strings.HasPrefix(lines[0], "kontor: ") || !strings.Contains(lines[0], want) {
		t.Errorf("exit %d, stderr %q, want exit 1 and one line that contains %q", o.code, o.stderr, want)
	}
	if o.stdout != "" {
		t.Errorf("a failed command printed %q", o.stdout)
	}
}

// expectSuccess reports an error unless the command exited with 0, its standard output contains want, and its standard error is empty.
func expectSuccess(t *testing.T, o outcome, want string) {
	t.Helper()
	if o.code != 0 || len(o.said()) > 0 || !strings.Contains(o.stdout, want) {
		t.Errorf("exit %d, stderr %q, stdout %q, want exit 0 and %q", o.code, o.stderr, o.stdout, want)
	}
}

// output collects what a running command writes. It closes seen once the output contains want.
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

// process is a running "kontor serve".
type process struct {
	address        string
	metrics        string // address of the metrics
	stdout, stderr *output
	stop           func() int // stops the process once, and returns its exit code
}

// start runs a server on a free port and waits until it listens.
func start(t *testing.T, environ []string, args ...string) *process {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	p := &process{
		stdout: &output{want: "never", seen: make(chan struct{})},
		stderr: &output{want: `"msg":"listening"`, seen: make(chan struct{})},
	}
	ended := make(chan int, 1)
	shutdown := fmt.Sprintf("--server.shutdown_seconds=%.0f", 2*testenv.Limit().Seconds()) // closing the modules has a tenth of it
	go func() {
		ended <- commands.Run(ctx, commands.Process{
			Args: append([]string{"serve", "--server.listen=127.0.0.1:0", "--metrics.listen=127.0.0.1:0", shutdown}, args...), Environ: environ,
			Stdin: strings.NewReader(""), Stdout: p.stdout, Stderr: p.stderr,
		})
	}()
	p.stop = sync.OnceValue(func() int {
		cancel()
		return <-ended
	})
	t.Cleanup(func() { p.stop() })
	long, stopWaiting := context.WithTimeout(t.Context(), 5*testenv.Limit()) // the start of a demo is much work for a busy machine
	defer stopWaiting()
	select {
	case <-p.stderr.seen:
	case code := <-ended:
		ended <- code
		t.Fatalf("exit code %d: %s", code, p.stderr)
	case <-long.Done():
		t.Fatalf("the server does not listen: %s", p.stderr)
	}
	for line := range strings.Lines(p.stderr.String()) {
		var entry struct{ Msg, Address, Metrics string }
		if err := json.Unmarshal([]byte(line), &entry); err == nil && entry.Msg == "listening" {
			p.address, p.metrics = entry.Address, entry.Metrics
		}
	}
	return p
}

// call sends a request, with headers in pairs, and returns status and body.
func (p *process) call(t *testing.T, method, path, body string, headers ...string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "http://"+p.address+path, strings.NewReader(body))
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

// signIn signs in and returns the access token; empty when the server rejects the password.
func (p *process) signIn(t *testing.T, login, password string) (token string) {
	t.Helper()
	body, err := json.Marshal(map[string]string{"user_id": login, "password": password})
	if err != nil {
		t.Fatal(err)
	}
	status, answer := p.call(t, http.MethodPost, "/authenticate", string(body))
	var session struct {
		Token string `json:"access_token"`
	}
	if status == http.StatusOK {
		if err := json.Unmarshal([]byte(answer), &session); err != nil {
			t.Fatalf("%s: %v", login, err)
		}
	}
	return session.Token
}

// canSignIn reports whether the password is the right one.
func (p *process) canSignIn(t *testing.T, login, password string) bool {
	t.Helper()
	return p.signIn(t, login, password) != ""
}

// wordAfter returns the first word after label.
func wordAfter(text, label string) string {
	_, rest, _ := strings.Cut(text, label)
	if f := strings.Fields(rest); len(f) > 0 {
		return f[0]
	}
	return ""
}

// newServedData creates a data directory that a server has used, and returns the flag that names it.
func newServedData(t *testing.T) (flag string) {
	t.Helper()
	flag = "--data.dir=" + filepath.Join(t.TempDir(), "data")
	p := start(t, []string{"KONTOR_ADMIN_EMAIL=root@kontor.example"}, flag)
	if code := p.stop(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	return flag
}

// newDataDir creates a data directory with one audit entry and returns its path.
func newDataDir(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	db, err := store.Open(t.Context(), store.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	err = db.InTx(t.Context(), func(tx *store.Tx) error {
		tx.Audit(store.AuditEntry{Actor: store.NilID, Action: "test", RecType: "users", RecID: store.NewID()})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}
