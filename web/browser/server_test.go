// Package browser_test tests the console in chromium against a real server, which it builds and starts.
package browser_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"kontor/store/testenv"
)

const (
	adminLogin    = "admin@kontor.localhost"
	adminPassword = "correct horse battery"
	apiKey        = "key-for-the-browser-tests"
)

// program is the path of the executable that TestMain builds.
var program string

// process is a running server with its own directory and port.
type process struct {
	address string
	dir     string
	stderr  io.Writer
	printed *os.File // receives the output of a first start that prints a password; nil if the test sets the password
	more    []string // further arguments
	command *exec.Cmd
	ended   chan struct{} // closed when the command has ended, with failure
	failure error
}

// newProcess starts a server on an empty directory.
func newProcess(tb testing.TB, dir string, stderr io.Writer, more ...string) (*process, error) {
	tb.Helper()
	p := &process{address: freeAddress(tb), dir: dir, stderr: stderr, more: more}
	if err := testenv.LinkEngineCache(dir); err != nil {
		return nil, err
	}
	return p, p.start()
}

// freeAddress returns a free port of this machine by name: browsers offer no passkeys at the address 127.0.0.1.
func freeAddress(tb testing.TB) string {
	tb.Helper()
	return strings.Replace(testenv.FreeAddress(tb), "127.0.0.1", "localhost", 1)
}

// maxRequestTime is the largest value of server.request_seconds.
const maxRequestTime = 10 * time.Minute

// apiClient sends the requests of the tests that need no browser.
var apiClient = &http.Client{Timeout: testenv.Limit()}

// start runs the server and waits until it is ready. A busy machine does not fail requests, and the sign-ins of parallel tests do not
// end the sessions of the administrator that they share.
func (p *process) start() error {
	requestTime := min(testenv.Limit(), maxRequestTime)
	arguments := []string{"serve", "--server.listen", p.address, "--server.base_url", "http://" + p.address, "--data.dir", p.dir,
		"--server.request_seconds", fmt.Sprint(int(requestTime.Seconds())), "--invoices.timeout_seconds", fmt.Sprint(int(requestTime.Seconds())),
		"--auth.sessions_max", "0", "--rate_limits.public_per_minute", "6000", "--log.level", "error"}
	p.command = exec.Command(program, append(arguments, p.more...)...)
	p.command.Env = append(os.Environ(), "KONTOR_ADMIN_EMAIL="+adminLogin, "KONTOR_API_KEY="+apiKey)
	if p.printed == nil {
		p.command.Env = append(p.command.Env, "KONTOR_ADMIN_PASSWORD="+adminPassword)
	} else {
		p.command.Stdout = p.printed
	}
	p.command.Stderr = p.stderr
	if err := testenv.Start(p.command); err != nil {
		return err
	}
	p.ended = make(chan struct{})
	go func() {
		p.failure = p.command.Wait()
		close(p.ended)
	}()
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for deadline := time.Now().Add(testenv.Limit()); ; {
		answer, err := apiClient.Get("http://" + p.address + "/readyz")
		if err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return nil
			}
			err = fmt.Errorf("/readyz answers %s", answer.Status)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the server does not start: %w", err)
		}
		select {
		case <-p.ended:
			return fmt.Errorf("the server has ended with %d", p.command.ProcessState.ExitCode())
		case <-poll.C:
		}
	}
}

// stop sends SIGTERM and waits for the server to end. It kills a server that does not.
func (p *process) stop() error {
	if p.command == nil {
		return nil
	}
	_ = p.command.Process.Signal(syscall.SIGTERM) // The process may have ended already.
	kill := time.AfterFunc(testenv.Limit(), func() { _ = p.command.Process.Kill() })
	<-p.ended
	kill.Stop()
	p.command = nil
	return p.failure
}

// testServer is the server of one test.
type testServer struct {
	t       *testing.T
	address string
	own     *process // nil if other tests share the server
}

// shared is the server that most tests share. The first of them starts it, and TestMain stops it.
var shared struct {
	sync.Once
	dir     string
	process *process
	failure error
}

// sharedServer returns the shared server for a test that does not stop it, and runs the test in parallel. Each test creates
// its own users, customers and browser windows.
func sharedServer(t *testing.T) *testServer {
	t.Helper()
	t.Parallel()
	shared.Do(func() { shared.process, shared.failure = newProcess(t, shared.dir, os.Stderr) })
	if shared.process == nil || shared.failure != nil {
		t.Fatalf("there is no shared server: %v", shared.failure)
	}
	return &testServer{t: t, address: shared.process.address}
}

// newServer starts a server on an empty directory, with further arguments. It stops with the test.
func newServer(t *testing.T, more ...string) *testServer {
	t.Helper()
	p, err := newProcess(t, filepath.Join(t.TempDir(), "data"), t.Output(), more...)
	if err != nil {
		t.Fatal(err)
	}
	s := &testServer{t: t, address: p.address, own: p}
	t.Cleanup(s.stop)
	return s
}

func (s *testServer) start() {
	s.t.Helper()
	if err := s.own.start(); err != nil {
		s.t.Fatal(err)
	}
}

func (s *testServer) stop() {
	s.t.Helper()
	if err := s.own.stop(); err != nil {
		s.t.Errorf("the server failed to stop: %v", err)
	}
}

func (s *testServer) url(path string) string { return "http://" + s.address + path }

// call sends a request to the API and returns the decoded answer; an error status fails the test.
func (s *testServer) call(token, method, path string, body any, headers ...string) map[string]any {
	s.t.Helper()
	var sent io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			s.t.Fatal(err)
		}
		sent = bytes.NewReader(encoded)
	}
	request, err := http.NewRequest(method, s.url(path), sent)
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	answer, err := apiClient.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	if answer.StatusCode >= 300 {
		s.t.Fatalf("%s %s: %d %s", method, path, answer.StatusCode, text)
	}
	decoded := map[string]any{}
	if err := json.Unmarshal(text, &decoded); err != nil {
		s.t.Fatalf("%s %s: %v in %s", method, path, err, text)
	}
	return decoded
}

// person is a user who can sign in.
type person struct {
	id, login, password string
}

// firstAdmin is the administrator that the first start creates.
var firstAdmin = person{login: adminLogin, password: adminPassword}

// signIn opens a session and returns its tokens.
func (s *testServer) signIn(p person) map[string]any {
	s.t.Helper()
	return s.call("", http.MethodPost, "/authenticate", map[string]any{"user_id": p.login, "password": p.password})
}

// token returns an access token of a new session.
func (s *testServer) token(p person) string {
	s.t.Helper()
	return s.signIn(p)["access_token"].(string)
}

var sixDigits = regexp.MustCompile(`\b\d{6}\b`)

// registered counts the users that newPerson has created, so that each has another address.
var registered atomic.Int64

// newPerson registers a user with an e-mail address, confirms it with the code in the outbox, and assigns a role.
func (s *testServer) newPerson(role string) person {
	s.t.Helper()
	p := person{login: fmt.Sprintf("%s-%d@example.ch", strings.ToLower(role), registered.Add(1)), password: "four words in a row"}
	admin := s.token(firstAdmin)
	made := s.call("", http.MethodPost, "/v1/users/initiate-registration", map[string]any{
		"credential_type": "email", "credential_value": p.login, "password": p.password, "terms_accepted": true, "privacy_policy_accepted": true,
	}, "X-API-Key", apiKey)
	p.id = made["user_id"].(string)
	credential := made["credential"].(map[string]any)["id"].(string)
	s.call(made["access_token"].(string), http.MethodPut, "/v1/users/"+p.id+"/credentials/"+credential+"/validate", map[string]any{"otp": s.code(admin, p.login)})
	s.call(admin, http.MethodPut, "/v1/users/"+p.id+"/roles", map[string]any{"roles": []string{role}})
	return p
}

// endSessions ends all sessions of a user as an administrator.
func (s *testServer) endSessions(p person) {
	s.t.Helper()
	admin := s.token(firstAdmin)
	for _, row := range s.call(admin, http.MethodGet, "/v1/users/"+p.id+"/sessions?limit=100", nil)["data"].([]any) {
		s.call(admin, http.MethodDelete, "/v1/users/"+p.id+"/sessions/"+row.(map[string]any)["id"].(string), nil)
	}
}

// code returns the one-time code that was last sent to an address.
func (s *testServer) code(admin, to string) string {
	s.t.Helper()
	sent := s.call(admin, http.MethodGet, "/v1/notifications/deliveries?limit=1&sort=-created_at&search.to="+to, nil)["data"].([]any)
	if len(sent) == 0 {
		s.t.Fatalf("nothing was sent to %s", to)
	}
	code := sixDigits.FindString(sent[0].(map[string]any)["text"].(string))
	if code == "" {
		s.t.Fatalf("no code in %v", sent[0])
	}
	return code
}

// newCustomer creates a customer and returns its id.
func (s *testServer) newCustomer(token, first, last string) string {
	s.t.Helper()
	return s.newCustomerIn(token, first, last, "Zürich")
}

func (s *testServer) newCustomerIn(token, first, last, town string) string {
	s.t.Helper()
	return s.call(token, http.MethodPost, "/v1/customers", map[string]any{
		"first_name": first, "last_name": last, "email": "someone@example.ch", "nationality": "CHE", "date_of_birth": "1980-02-29",
		"address": map[string]any{"street": "Seestrasse 1", "city": town, "postal_code": "8002", "country": "CH"},
	})["id"].(string)
}
