// Package browser_test tries the console in a real browser against a real server: Debian's chromium and the program
// itself, built for the occasion.
package browser_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"
)

const (
	adminLogin    = "admin@kontor.localhost"
	adminPassword = "correct horse battery"
	apiKey        = "key-for-the-browser-tests"
	startLimit    = 20 * time.Second
)

// program is the built executable; TestMain makes it.
var program string

// bank is a running Kontor with a directory and a port of its own.
type bank struct {
	t       *testing.T
	address string
	dir     string
	command *exec.Cmd
}

// openBank starts a server on an empty directory; it stops with the test.
func openBank(t *testing.T) *bank {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &bank{t: t, address: listener.Addr().String(), dir: filepath.Join(t.TempDir(), "data")}
	listener.Close()
	b.start()
	t.Cleanup(b.stop)
	return b
}

// start runs the server and waits until it takes requests.
func (b *bank) start() {
	b.t.Helper()
	b.command = exec.Command(program, "serve", "--server.listen", b.address, "--data.dir", b.dir,
		"--rate_limits.public_per_minute", "6000", "--log.level", "warn")
	b.command.Env = append(os.Environ(), "KONTOR_ADMIN_EMAIL="+adminLogin, "KONTOR_ADMIN_PASSWORD="+adminPassword, "KONTOR_API_KEY="+apiKey)
	b.command.Stderr = b.t.Output()
	if err := b.command.Start(); err != nil {
		b.t.Fatal(err)
	}
	for deadline := time.Now().Add(startLimit); ; {
		answer, err := http.Get(b.url("/readyz"))
		if err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return
			}
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("the server does not start: %v", err)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// stop asks the server to end, as a service manager does, and waits for it.
func (b *bank) stop() {
	if b.command == nil {
		return
	}
	b.command.Process.Signal(syscall.SIGTERM) // a process that has ended needs no signal
	if err := b.command.Wait(); err != nil {
		b.t.Errorf("the server ended badly: %v", err)
	}
	b.command = nil
}

func (b *bank) url(path string) string { return "http://" + b.address + path }

// call sends a request to the API and gives the decoded answer; any refusal ends the test.
func (b *bank) call(token, method, path string, body any, headers ...string) map[string]any {
	b.t.Helper()
	var sent io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			b.t.Fatal(err)
		}
		sent = bytes.NewReader(encoded)
	}
	request, err := http.NewRequest(method, b.url(path), sent)
	if err != nil {
		b.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		b.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	if answer.StatusCode >= 300 {
		b.t.Fatalf("%s %s: %d %s", method, path, answer.StatusCode, text)
	}
	decoded := map[string]any{}
	if err := json.Unmarshal(text, &decoded); err != nil {
		b.t.Fatalf("%s %s: %v in %s", method, path, err, text)
	}
	return decoded
}

// signIn gives an access token.
func (b *bank) signIn(login, password string) string {
	b.t.Helper()
	return b.call("", http.MethodPost, "/authenticate", map[string]any{"user_id": login, "password": password})["access_token"].(string)
}

var sixDigits = regexp.MustCompile(`\b\d{6}\b`)

// newUser registers a user with an e-mail, confirms it by the code in the outbox, and gives him a role.
func (b *bank) newUser(email, password, role string) (id string) {
	b.t.Helper()
	admin := b.signIn(adminLogin, adminPassword)
	made := b.call("", http.MethodPost, "/v1/users/initiate-registration", map[string]any{
		"credential_type": "email", "credential_value": email, "password": password, "terms_accepted": true, "privacy_policy_accepted": true,
	}, "X-API-Key", apiKey)
	id = made["user_id"].(string)
	credential := made["credential"].(map[string]any)["id"].(string)
	b.call(made["access_token"].(string), http.MethodPut, "/v1/users/"+id+"/credentials/"+credential+"/validate", map[string]any{"otp": b.code(admin, email)})
	b.call(admin, http.MethodPut, "/v1/users/"+id+"/roles", map[string]any{"roles": []string{role}})
	return id
}

// code reads the one-time code that was last sent to an address.
func (b *bank) code(admin, to string) string {
	b.t.Helper()
	sent := b.call(admin, http.MethodGet, "/v1/notifications/deliveries?limit=1&sort=-created_at&search.to="+to, nil)["data"].([]any)
	if len(sent) == 0 {
		b.t.Fatalf("nothing was sent to %s", to)
	}
	code := sixDigits.FindString(sent[0].(map[string]any)["text"].(string))
	if code == "" {
		b.t.Fatalf("no code in %v", sent[0])
	}
	return code
}

// newCustomer makes a customer by the API and gives his id.
func (b *bank) newCustomer(token, first, last string) string {
	b.t.Helper()
	return b.call(token, http.MethodPost, "/v1/customers", map[string]any{
		"first_name": first, "last_name": last, "email": "someone@example.ch", "nationality": "CHE",
		"address": map[string]any{"street": "Seestrasse 1", "city": "Zürich", "postal_code": "8002", "country": "CH"},
	})["id"].(string)
}
