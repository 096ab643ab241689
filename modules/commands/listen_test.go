package commands_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"kontor/modules/commands"
	"kontor/server/servertest"
	"kontor/store/testenv"
)

// listenToken creates a service account with the role Advisor, and returns the name of a file with a token of it.
func listenToken(t *testing.T, s *servertest.Server) string {
	account := s.Admin().Create("/v1/service-accounts", map[string]any{"name": "Listener", "roles": []string{"Advisor"}})
	var made struct{ Token string }
	s.Admin().Do("POST", "/v1/service-accounts/"+account+"/tokens", map[string]any{"name": "Test"}).Expect(t, 201).Into(t, &made)
	name := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(name, []byte(made.Token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// listen runs the command with the address of a server until the test ends it, and returns its output.
func listen(t *testing.T, s *servertest.Server, args ...string) (lines *bufio.Scanner, said *bufio.Scanner, stop func() int) {
	return listenWith(t, append([]string{"--url", "http://" + s.Address, "--token", "@" + listenToken(t, s)}, args...)...)
}

// listenWith does the same with all its flags.
func listenWith(t *testing.T, args ...string) (lines *bufio.Scanner, said *bufio.Scanner, stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, printed := io.Pipe()
	errs, warned := io.Pipe()
	code := make(chan int, 1)
	go func() {
		n := commands.Run(ctx, commands.Process{Args: append([]string{"listen"}, args...),
			Stdin: strings.NewReader(""), Stdout: printed, Stderr: warned})
		_ = printed.Close()
		_ = warned.Close()
		code <- n
	}()
	said = bufio.NewScanner(errs)
	for said.Scan() && !strings.HasPrefix(said.Text(), "listening after ") {
		if strings.Contains(said.Text(), "kontor:") {
			t.Fatal(said.Text())
		}
	}
	return bufio.NewScanner(out), said, func() int {
		cancel()
		go func() { _, _ = io.Copy(io.Discard, errs) }()
		go func() { _, _ = io.Copy(io.Discard, out) }()
		return <-code
	}
}

func TestListen_PrintsChanges(t *testing.T) {
	s := servertest.Start(t)
	lines, _, stop := listen(t, s, "--types", "customers.*", "--json")
	id := s.Admin().Create("/v1/customers", map[string]any{"first_name": "Anna", "last_name": "Keller", "email": "anna@example.ch"})
	if !lines.Scan() || !strings.Contains(lines.Text(), `"type":"customers.created"`) || !strings.Contains(lines.Text(), id) {
		t.Errorf("got %q", lines.Text())
	}
	if code := stop(); code != 0 {
		t.Errorf("the command ended with %d", code)
	}
}

func TestListen_ForwardsSignedEventsUntilTheyAreAccepted(t *testing.T) {
	s := servertest.Start(t)
	key := bytes.Repeat([]byte("k"), 32)
	secret := "whsec_" + base64.StdEncoding.EncodeToString(key)
	var calls atomic.Int64
	got := make(chan string, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(r.Header.Get("Webhook-Id") + "." + r.Header.Get("Webhook-Timestamp") + "." + string(body)))
		if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); r.Header.Get("Webhook-Signature") != want {
			t.Errorf("the signature is %s, want %s", r.Header.Get("Webhook-Signature"), want)
		}
		if calls.Add(1) == 1 {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		got <- r.Header.Get("Webhook-Id")
	}))
	defer receiver.Close()
	lines, said, stop := listen(t, s, "--types=customers.*", "--forward", receiver.URL, "--secret", secret)
	s.Admin().Create("/v1/customers", map[string]any{"first_name": "Anna", "last_name": "Keller", "email": "anna@example.ch"})
	lines.Scan()
	if !said.Scan() || !strings.Contains(said.Text(), "answered 500") {
		t.Errorf("the command said %q", said.Text())
	}
	if id := <-got; !strings.Contains(lines.Text(), id) {
		t.Errorf("%s was forwarded, and %q printed", id, lines.Text())
	}
	stop()
}

// Without --url, the command finds the server of the data directory, and recognizes it before it sends the token.
func TestListen_FindsTheServerOfTheDataDirectory(t *testing.T) {
	dir, address := filepath.Join(t.TempDir(), "data"), testenv.FreeAddress(t)
	p := start(t, nil, "--data.dir", dir, "--server.listen", address)
	admin := "Bearer " + p.signIn(t, wordAfter(p.stdout.String(), "administrator"), wordAfter(p.stdout.String(), "password"))
	send := func(path, body, member string) string {
		t.Helper()
		status, answer := p.call(t, http.MethodPost, path, body, "Authorization", admin)
		var made map[string]any
		if err := json.Unmarshal([]byte(answer), &made); err != nil || status != http.StatusCreated {
			t.Fatalf("%s: got %d %s", path, status, answer)
		}
		return made[member].(string)
	}
	account := send("/v1/service-accounts", `{"name": "Listener", "roles": ["Advisor"]}`, "id")
	token := send("/v1/service-accounts/"+account+"/tokens", `{"name": "Test"}`, "token")
	flags := []string{"--token", token, "--data.dir", dir, "--server.listen", address}
	lines, _, stop := listenWith(t, append(flags, "--types=customers.*", "--json")...)
	customer := send("/v1/customers", `{"first_name": "Anna", "last_name": "Keller", "email": "anna@example.ch"}`, "id")
	if !lines.Scan() || !strings.Contains(lines.Text(), customer) {
		t.Errorf("got %q", lines.Text())
	}
	if code := stop(); code != 0 {
		t.Errorf("the command ended with %d", code)
	}

	p.stop()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	refusesOthers(t, listener, flags...)
}

// Without --url, the token goes to no program that merely has the port.
func TestListen_SendsNoTokenToAnotherProgram(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refusesOthers(t, listener, "--token", "kontor_sa_secret", "--data.dir", t.TempDir(), "--server.listen", listener.Addr().String())
}

// refusesOthers serves another program on a port, and checks that the command sends it nothing.
func refusesOthers(t *testing.T, listener net.Listener, flags ...string) {
	t.Helper()
	var asked atomic.Int32
	other := &httptest.Server{Listener: listener, Config: &http.Server{ConnState: func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			asked.Add(1)
		}
	}}}
	other.Start()
	defer other.Close()
	var said bytes.Buffer
	code := commands.Run(t.Context(), commands.Process{Args: append([]string{"listen"}, flags...), Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: &said})
	if asked.Load() != 0 || code == 0 || !strings.Contains(said.String(), "not sent") {
		t.Errorf("code %d, %d connections, %s", code, asked.Load(), said.String())
	}
}
