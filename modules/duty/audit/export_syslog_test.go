package audit_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"kontor/store"
	"kontor/store/audittrail"
	"kontor/store/testenv"
)

// syslogServer is a syslog server that records messages.
type syslogServer struct {
	listener net.Listener
	mu       sync.Mutex
	messages []string
}

func listenSyslog(t *testing.T, listener net.Listener) *syslogServer {
	t.Helper()
	s := &syslogServer{listener: listener}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { s.read(conn) })
		}
	})
	t.Cleanup(func() { _ = listener.Close(); running.Wait() })
	return s
}

// read records messages that their lengths precede.
func (s *syslogServer) read(conn net.Conn) {
	defer conn.Close()
	r := bufio.NewReader(conn)
	for {
		length, err := r.ReadString(' ')
		if err != nil {
			return
		}
		n, err := strconv.Atoi(strings.TrimSpace(length))
		if err != nil {
			return
		}
		b := make([]byte, n)
		if _, err := io.ReadFull(r, b); err != nil {
			return
		}
		s.record(string(b))
	}
}

func (s *syslogServer) record(message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.messages = append(s.messages, message)
}

// await waits for n messages, and returns them.
func (s *syslogServer) await(t *testing.T, n int) (got []string) {
	t.Helper()
	testenv.Wait(t, fmt.Sprint(n, " messages"), func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		got = slices.Clone(s.messages)
		return len(got) >= n
	})
	return got
}

// lines waits for n messages and returns their texts in the form of an exported file.
func (s *syslogServer) lines(t *testing.T, n int) string {
	t.Helper()
	var b strings.Builder
	for _, message := range s.await(t, n) {
		head, text, _ := strings.Cut(message, " - {")
		if fields := strings.Fields(head); len(fields) != 6 || fields[3] != "kontor" || !strings.HasSuffix(fields[1], "Z") ||
			!strings.HasPrefix(fields[0], "<1") || !strings.HasSuffix(fields[0], ">1") {
			t.Errorf("got %q", message)
		}
		b.WriteString("{" + text + "\n")
	}
	return b.String()
}

func TestExportSyslog_OverTCPContinuesWhereItStopped(t *testing.T) {
	db := open(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := listenSyslog(t, listener)
	address := "tcp://" + listener.Addr().String()
	writeChanges(t, db, 3)
	writeEntries(t, db, store.AuditEntry{Actor: store.NilID, Action: "access.denied", Kind: "denial", Detail: `{"count":1}`})
	startExport(t, db, "", address)()
	server.await(t, 4+1) // each connection has a reader of its own
	writeChanges(t, db, 2)
	startExport(t, db, "", address)()
	text := server.lines(t, 4+1+2+1)
	if r, err := audittrail.VerifyExport(strings.NewReader(text), db.ExportKey()); err != nil || r.To != 6 || r.Heads != 2 || r.Repeated != 0 {
		t.Errorf("got %+v, %v", r, err)
	}
	server.mu.Lock()
	defer server.mu.Unlock()
	for i, want := range []string{"<110>1 ", "<110>1 ", "<110>1 ", "<108>1 "} {
		if !strings.HasPrefix(server.messages[i], want) {
			t.Errorf("message %d begins with %.20q, want %q", i, server.messages[i], want)
		}
	}
	if !strings.Contains(server.messages[3], " denial - {") || !strings.Contains(server.messages[4], " head - {") {
		t.Errorf("got %q and %q", server.messages[3], server.messages[4])
	}
}

func TestExportSyslog_OverUDP(t *testing.T) {
	db := open(t)
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &syslogServer{}
	var running sync.WaitGroup
	running.Go(func() {
		b := make([]byte, 64<<10)
		for {
			n, _, err := conn.ReadFrom(b)
			if err != nil {
				return
			}
			server.record(string(b[:n]))
		}
	})
	t.Cleanup(func() { _ = conn.Close(); running.Wait() })
	writeChanges(t, db, 3)
	startExport(t, db, "", "udp://"+conn.LocalAddr().String())()
	if r, err := audittrail.VerifyExport(strings.NewReader(server.lines(t, 4)), db.ExportKey()); err != nil || r.To != 3 {
		t.Errorf("got %+v, %v", r, err)
	}
}

func TestExportSyslog_OverTLSRequiresATrustedCertificate(t *testing.T) {
	db := open(t)
	web := httptest.NewTLSServer(nil) // for its certificate
	defer web.Close()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: web.TLS.Certificates, MinVersion: tls.VersionTLS12})
	if err != nil {
		t.Fatal(err)
	}
	server := listenSyslog(t, listener)
	writeChanges(t, db, 2)
	startExport(t, db, "", "tls://"+listener.Addr().String())()
	server.mu.Lock()
	if len(server.messages) > 0 {
		t.Errorf("%d messages went to a server with an untrusted certificate", len(server.messages))
	}
	server.mu.Unlock()
}

// A server that reads nothing delays neither writes nor the stop, and no entry is lost.
func TestExportSyslog_AStuckServerDelaysNothing(t *testing.T) {
	db := open(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan net.Conn, 10)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			accepted <- conn // never read
		}
	}()
	address := "tcp://" + listener.Addr().String()
	service := newService(t, db)
	if err := service.StartExport("", address); err != nil {
		t.Fatal(err)
	}
	const entries = 12_000 // more than the buffers of a connection hold
	for range entries / 500 {
		list := make([]store.AuditEntry, 500)
		for i := range list {
			list[i] = store.AuditEntry{Actor: store.NilID, Action: strings.Repeat("x", 1000), RecType: "roles", RecID: fmt.Sprint(i)}
		}
		writeEntries(t, db, list...)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := service.Close(ended); err != nil && ended.Err() == nil {
		t.Error(err)
	}
	_ = listener.Close()
	select {
	case conn := <-accepted:
		_ = conn.Close()
	default:
	}
	var position int64
	err = db.QueryRow(t.Context(), `SELECT COALESCE(MAX(seq), 0) FROM audit_exports`).Scan(&position)
	if err != nil || position >= entries {
		t.Errorf("position %d after %d entries, %v", position, entries, err)
	}
}
