package commands_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
)

// openLink returns the code of a new link.
func openLink(t *testing.T, args ...string) string {
	t.Helper()
	o := run(nil, "", append([]string{"open", "--print"}, args...)...)
	expectSuccess(t, o, "/signin#local=")
	return wordAfter(o.stdout, "/signin#local=")
}

func codeBody(code string) string { return `{"code":"` + code + `"}` }

// otherAddress returns the address of this machine in a network, and false without one.
func otherAddress() (string, bool) {
	addresses, _ := net.InterfaceAddrs()
	for _, a := range addresses {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil && prefix.Addr().IsGlobalUnicast() && prefix.Addr().Is4() {
			return prefix.Addr().String(), true
		}
	}
	return "", false
}

func TestOpen_SignsInOnceOnThisMachineAlone(t *testing.T) {
	t.Parallel()
	const admin = "root@kontor.example"
	environ := []string{"KONTOR_ADMIN_EMAIL=" + admin, "KONTOR_ADMIN_PASSWORD=seven plain words nobody knows"}
	data := "--data.dir=" + t.TempDir() + "/data"
	expectFailure(t, run(nil, "", "open", data), "no server is running")
	p := start(t, environ, data)
	expectFailure(t, run(nil, "", "open", "--print", "--user", "nobody@kontor.example", data), `no active user signs in as "nobody@kontor.example"`)
	expectFailure(t, run(nil, "", "open", "--print", data), `admin@kontor.localhost`) // the default is not the user of this bank

	code := openLink(t, "--user", admin, data)
	const path = "/authenticate/local"
	for _, headers := range [][]string{
		{"X-Forwarded-For", "127.0.0.1"}, {"Forwarded", "for=127.0.0.1"}, {"Via", "1.1 proxy"}, {"X-Real-IP", "127.0.0.1"}, {"X-Forwarded-Host", "localhost"},
	} {
		if status, body := p.call(t, http.MethodPost, path, codeBody(code), headers...); status != http.StatusNotFound {
			t.Errorf("%q: %d %s, want 404", headers, status, body)
		}
	}
	for _, host := range []string{"bank.example", "localhost.bank.example", "0.0.0.0"} {
		if got := postAs(t, p.address, host, path, codeBody(code)); got != http.StatusNotFound {
			t.Errorf("with the Host %s: %d, want 404", host, got)
		}
	}
	for _, other := range []string{path + "/", "/authenticate/%6cocal", "/authenticate//local", "/AUTHENTICATE/local"} {
		if got := postAs(t, p.address, "bank.example", other, codeBody(code)); got == http.StatusOK || got == http.StatusUnauthorized {
			t.Errorf("%s with another Host: %d", other, got)
		}
	}
	for _, wrong := range []string{"", "x", strings.Repeat("A", 43), strings.Repeat("A", 65), code[:42] + "_"} {
		if status, body := p.call(t, http.MethodPost, path, codeBody(wrong)); status != http.StatusUnauthorized && status != http.StatusBadRequest {
			t.Errorf("the code %q: %d %s", wrong, status, body)
		}
	}
	first := code
	code = openLink(t, "--user", admin, data) // a link is valid for a minute, which the requests above may take
	status, body := p.call(t, http.MethodPost, path, codeBody(code))
	var session struct {
		Token string `json:"access_token"`
	}
	if err := json.Unmarshal([]byte(body), &session); err != nil || status != http.StatusOK {
		t.Fatalf("%d %s (%v)", status, body, err)
	}
	if status, body := p.call(t, http.MethodPost, path, codeBody(code)); status != http.StatusUnauthorized {
		t.Errorf("a second use: %d %s", status, body)
	}
	_, entries := p.call(t, http.MethodGet, "/v1/audit?search.action=auth.session_opened_by_link", "", "Authorization", "Bearer "+session.Token)
	if !strings.Contains(entries, `"total":1`) && strings.Count(entries, `"auth.session_opened_by_link"`) != 1 {
		t.Errorf("the audit trail does not show the session: %s", entries)
	}
	if log := p.stderr.String() + p.stdout.String(); strings.Contains(log, first) || strings.Contains(log, code) {
		t.Error("a code is in the log")
	}
}

func TestOpen_KeepsFewLinksAndEndsWithTheServer(t *testing.T) {
	t.Parallel()
	environ := []string{"KONTOR_ADMIN_PASSWORD=seven plain words nobody knows"}
	data := "--data.dir=" + t.TempDir() + "/data"
	p := start(t, environ, data)
	first := openLink(t, data)
	var last string
	for range 16 {
		last = openLink(t, data)
	}
	if status, _ := p.call(t, http.MethodPost, "/authenticate/local", codeBody(first)); status != http.StatusUnauthorized {
		t.Errorf("the oldest of 17 links: %d", status)
	}
	p.stop()
	p = start(t, environ, data)
	if status, _ := p.call(t, http.MethodPost, "/authenticate/local", codeBody(last)); status != http.StatusUnauthorized {
		t.Errorf("a link from before a restart: %d", status)
	}
}

func TestOpen_IsRefusedWhereOthersReachTheServer(t *testing.T) {
	t.Parallel()
	environ := []string{"KONTOR_ADMIN_PASSWORD=seven plain words nobody knows"}
	for _, setting := range []string{"--server.base_url=https://bank.example", "--server.trusted_proxies=127.0.0.1"} {
		data := "--data.dir=" + t.TempDir() + "/data"
		p := start(t, environ, data, setting)
		expectFailure(t, run(nil, "", "open", "--print", data), "localhost alone")
		if status, body := p.call(t, http.MethodPost, "/authenticate/local", codeBody(strings.Repeat("A", 43))); status != http.StatusNotFound {
			t.Errorf("%s: %d %s, want 404", setting, status, body)
		}
		p.stop()
	}
	address, ok := otherAddress()
	if !ok {
		return // a machine without a network has only loopback addresses
	}
	data := "--data.dir=" + t.TempDir() + "/data"
	p := start(t, environ, data, "--server.listen=0.0.0.0:0", "--server.base_url=http://localhost:8080")
	code := openLink(t, data)
	_, port, err := net.SplitHostPort(p.address)
	if err != nil {
		t.Fatal(err)
	}
	if got := postAs(t, net.JoinHostPort(address, port), "localhost", "/authenticate/local", codeBody(code)); got != http.StatusNotFound {
		t.Errorf("from %s with the Host localhost: %d, want 404", address, got)
	}
}

// postAs sends a request with a Host of its own, and returns the status.
func postAs(t *testing.T, address, host, path, body string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+path, bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	request.Host, request.Close = host, true
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode
}
