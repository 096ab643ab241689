package lifecycle_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"kontor/modules/commands/systemtest"
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

// descriptors returns the number of open files of a process.
func descriptors(t *testing.T, p *systemtest.Process) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/" + strconv.Itoa(p.Cmd.Process.Pid) + "/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// TestConnections_ServerSurvivesAFlood opens far more connections than the server may open files. Half of them are idle, the
// others have sent part of a request. The test checks the service during the flood and afterwards.
func TestConnections_ServerSurvivesAFlood(t *testing.T) {
	for _, files := range []int{256, 1024} {
		t.Run(strconv.Itoa(files), func(t *testing.T) {
			p := startWithFileLimit(t, files, filepath.Join(t.TempDir(), "data"))
			admin := p.Admin()
			admin.Do(t, "GET", "/v1/users/me", "", 200)
			before := descriptors(t, p)
			address := strings.TrimPrefix(p.URL, "http://")
			var flood []net.Conn
			defer func() {
				for _, c := range flood {
					c.Close()
				}
			}()
			for n := range 2000 {
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
			last := bufio.NewReader(flood[len(flood)-1])
			status, err := last.ReadString('\n')
			if err != nil || !strings.Contains(status, " 503 ") {
				t.Errorf("an excess connection received %q, %v", status, err)
			}
			head := status
			for line := "-"; line != "\r\n" && err == nil; head += line {
				line, err = last.ReadString('\n')
			}
			if !strings.Contains(head, "\r\nRetry-After: ") || !strings.Contains(head, "application/json") {
				t.Errorf("an excess connection received %q", head)
			}
			for _, c := range flood {
				c.Close()
			}
			for descriptors(t, p) > before+4 {
				admin.Do(t, "GET", "/healthz", "", 200)
			}
			p.Client().Do(t, "GET", "/readyz", "", 200)
			if code := p.Stop(); code != 0 {
				t.Errorf("exit code %d: %s", code, p.Stderr)
			}
		})
	}
}
