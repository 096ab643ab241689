package hostile_test

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kontor/modules/commands/systemtest"
	"kontor/store/testenv"
)

// The server exports the audit trail to a file, which is rotated, and to a syslog server. It is killed in between. Both
// files must be verifiable without the master key.
func TestHostile_AuditTrailIsExported(t *testing.T) {
	work := t.TempDir()
	dir, file := filepath.Join(work, "data"), filepath.Join(work, "audit.jsonl")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go discardInput(listener)
	args := []string{"--audit.export_file", file, "--audit.syslog_url", "tcp://" + listener.Addr().String()}
	p := systemtest.Start(t, dir, args...)
	p.Admin().Do(t, "POST", "/v1/api-keys", `{"name":"one"}`, 201)
	testenv.Wait(t, "the exported trail to be complete", func() bool { return systemtest.Run(t, nil, "audit", "verify", file).Code == 0 })
	p.Kill()
	if err := os.Rename(file, file+".1"); err != nil {
		t.Fatal(err)
	}
	p = systemtest.Start(t, dir, args...)
	p.Client().Do(t, "POST", "/authenticate", `{"user_id":"`+systemtest.AdminEmail+`","password":"a guess"}`, 401)
	p.Admin().Do(t, "POST", "/v1/api-keys", `{"name":"two"}`, 201)
	if code := p.Stop(); code != 0 {
		t.Fatalf("exit code %d: %s", code, p.Stderr)
	}
	key := strings.TrimSpace(systemtest.ExpectSuccess(t, systemtest.Run(t, nil, "audit", "key", "--data.dir", dir)))
	for _, path := range []string{file + ".1", file} {
		systemtest.ExpectSuccess(t, systemtest.Run(t, nil, "audit", "verify", path, "--key", key))
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), `"action":"auth.sign_in_failed"`) {
		t.Error("the failed sign-in is missing from the export")
	}
	forged := strings.Replace(string(text), `"kind":"sign_in"`, `"kind":"read"`, 1)
	if err := os.WriteFile(file, []byte(forged), 0o600); err != nil {
		t.Fatal(err)
	}
	if e := systemtest.Run(t, nil, "audit", "verify", file, "--key", key); e.Code != 1 || !strings.Contains(e.Stderr, "was changed") {
		t.Errorf("a forged export: got %+v", e)
	}
}

// discardInput accepts connections and discards their input.
func discardInput(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			_, _ = io.Copy(io.Discard, conn) // until the client closes the connection
		}()
	}
}
