package lifecycle_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"kontor/modules/commands/systemtest"
	"kontor/store/testenv"
)

// startWithFileLimit runs a server with a limit of open files.
func startWithFileLimit(t *testing.T, files int, dir string) *systemtest.Process {
	t.Helper()
	path, err := systemtest.Binary()
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(t.TempDir(), "limited")
	text := fmt.Sprintf("#!/bin/sh\nulimit -n %d\nexec %s \"$@\"\n", files, path)
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return systemtest.StartProgram(t, script, systemtest.SecretsEnv, "--data.dir", dir, "--rate_limits.enabled=false")
}

// sockets returns the number of open sockets of a process. It opens other files at any time.
func sockets(t *testing.T, p *systemtest.Process) (n int) {
	t.Helper()
	names, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", p.Cmd.Process.Pid))
	if err != nil || len(names) == 0 {
		t.Fatalf("the open files of the server cannot be listed: %v", err)
	}
	for _, name := range names {
		if target, _ := os.Readlink(name); strings.HasPrefix(target, "socket:") {
			n++
		}
	}
	return n
}

// expectExcess looks for connections that the server has answered because it has too many. It need not be the last ones: others time
// out meanwhile.
func expectExcess(t *testing.T, flood []net.Conn) {
	t.Helper()
	for _, c := range slices.Backward(flood) {
		if err := c.SetReadDeadline(time.Now().Add(testenv.Limit())); err != nil {
			t.Fatal(err)
		}
		response, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || response.StatusCode != http.StatusServiceUnavailable {
			continue
		}
		response.Body.Close()
		if response.Header.Get("Retry-After") == "" || response.Header.Get("Content-Type") != "application/json" {
			t.Errorf("an excess connection received %v", response.Header)
		}
		return
	}
	t.Error("no excess connection was answered with 503")
}

// TestConnections_ServerSurvivesAFlood opens far more connections than the server may open files. Half of them are idle, the
// others have sent part of a request. The test checks the service during the flood and afterwards.
func TestConnections_ServerSurvivesAFlood(t *testing.T) {
	for _, files := range []int{256, 1024} {
		t.Run(strconv.Itoa(files), func(t *testing.T) {
			p := startWithFileLimit(t, files, filepath.Join(t.TempDir(), "data"))
			admin := p.Admin()
			admin.Do(t, "GET", "/v1/users/me", "", 200)
			before := sockets(t, p)
			address := strings.TrimPrefix(p.URL, "http://")
			var flood []net.Conn
			defer func() {
				for _, c := range flood {
					c.Close()
				}
			}()
			for n := range 2000 {
				if n%100 == 0 {
					admin.Do(t, "GET", "/healthz", "", 200) // the server closes a connection that is idle
				}
				c, err := net.Dial("tcp", address)
				if err != nil {
					t.Fatalf("connection %d: %v", n, err)
				}
				flood = append(flood, c)
				if n%2 == 0 {
					fmt.Fprint(c, "POST /authenticate HTTP/1.1\r\nHost: x\r\nContent-Le") // an incomplete request; the connection may have been rejected already
				}
			}
			// An earlier connection still works. Writes work, too: the database can open its files.
			admin.Do(t, "GET", "/v1/customers", "", 200)
			admin.Do(t, "POST", "/v1/customers", `{"first_name":"Anna","last_name":"Flut","email":"anna@example.ch"}`, 201)
			expectExcess(t, flood)
			for _, c := range flood {
				c.Close()
			}
			testenv.Wait(t, "the connections to be closed", func() bool { return sockets(t, p) <= before })
			p.WaitUntilReady()
			if code := p.Stop(); code != 0 {
				t.Errorf("exit code %d: %s", code, p.Stderr)
			}
		})
	}
}
