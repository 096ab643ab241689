package audit_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"kontor/store"
	"kontor/store/audittrail"
)

// exporting runs an export until the returned function is called, which carries over what is left.
func exporting(t *testing.T, db *store.DB, file, syslogURL string) (stop func()) {
	t.Helper()
	service := newService(t, db)
	if err := service.StartExport(file, syslogURL); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := service.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func changes(t *testing.T, db *store.DB, n int) {
	t.Helper()
	for range n {
		change(t, db, store.AuditEntry{Actor: store.NilID, Action: "roles.create", RecType: "roles", RecID: store.NewID()})
	}
}

// verified wants a file to hold, from one entry to another.
func verified(t *testing.T, db *store.DB, path string, from, to int64) audittrail.ExportReport {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r, err := audittrail.VerifyExport(file, db.ExportKey())
	if err != nil || r.From != from || r.To != to {
		t.Fatalf("%s: got %+v, %v, want entries %d to %d", path, r, err, from, to)
	}
	return r
}

func TestExportFile_GoesOnWhereItStopped(t *testing.T) {
	db, _ := open(t)
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	changes(t, db, 3)
	exporting(t, db, path, "")()
	verified(t, db, path, 1, 3)
	changes(t, db, 2)
	stop := exporting(t, db, path, "")
	changes(t, db, 2)
	stop()
	if r := verified(t, db, path, 1, 7); r.Repeated != 0 {
		t.Errorf("got %+v", r)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v", info, err)
	}
}

// Whoever rotates logs renames the file: what comes then goes into a new one, and both hold.
func TestExportFile_MayBeRenamed(t *testing.T) {
	db, _ := open(t)
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	changes(t, db, 3)
	exporting(t, db, path, "")()
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	changes(t, db, 2)
	exporting(t, db, path, "")()
	verified(t, db, path+".1", 1, 3)
	verified(t, db, path, 4, 5)
}

// A crash between the file and the position repeats a batch, and one in the middle of a line leaves half of it.
func TestExportFile_OutlivesACrash(t *testing.T) {
	db, _ := open(t)
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	changes(t, db, 3)
	exporting(t, db, path, "")()
	err := db.InTx(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec(t.Context(), `UPDATE audit_exports SET seq = 1`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString(`{"seq":4,"fo`); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	changes(t, db, 1)
	exporting(t, db, path, "")()
	if r := verified(t, db, path, 1, 4); r.Repeated != 2 {
		t.Errorf("got %+v", r)
	}
}

func TestExportFile_ThatCannotBeWrittenIsTriedAgain(t *testing.T) {
	db, _ := open(t)
	dir := filepath.Join(t.TempDir(), "later")
	path := filepath.Join(dir, "audit.jsonl")
	changes(t, db, 3)
	exporting(t, db, path, "")()
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	exporting(t, db, path, "")()
	verified(t, db, path, 1, 3)
}

// server is a syslog server that keeps what it gets.
type syslogServer struct {
	listener net.Listener
	mu       sync.Mutex
	messages []string
	more     chan struct{}
}

func listenSyslog(t *testing.T, listener net.Listener) *syslogServer {
	t.Helper()
	s := &syslogServer{listener: listener, more: make(chan struct{}, 1)}
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

// read takes messages with their length before them.
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
		s.keep(string(b))
	}
}

func (s *syslogServer) keep(message string) {
	s.mu.Lock()
	s.messages = append(s.messages, message)
	s.mu.Unlock()
	select {
	case s.more <- struct{}{}:
	default:
	}
}

// lines waits for n messages and returns their texts as an export.
func (s *syslogServer) lines(t *testing.T, n int) string {
	t.Helper()
	for {
		s.mu.Lock()
		got := append([]string(nil), s.messages...)
		s.mu.Unlock()
		if len(got) < n {
			select {
			case <-s.more:
				continue
			case <-t.Context().Done():
				t.Fatalf("%d of %d messages came", len(got), n)
			}
		}
		var b strings.Builder
		for _, message := range got {
			head, text, _ := strings.Cut(message, " - {")
			if fields := strings.Fields(head); len(fields) != 6 || fields[3] != "kontor" || !strings.HasSuffix(fields[1], "Z") ||
				!strings.HasPrefix(fields[0], "<1") || !strings.HasSuffix(fields[0], ">1") {
				t.Errorf("got %q", message)
			}
			b.WriteString("{" + text + "\n")
		}
		return b.String()
	}
}

func TestExportSyslog_OverTCPHoldsAndGoesOn(t *testing.T) {
	db, _ := open(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := listenSyslog(t, listener)
	address := "tcp://" + listener.Addr().String()
	changes(t, db, 3)
	change(t, db, store.AuditEntry{Actor: store.NilID, Action: "access.denied", Kind: "denial", Detail: `{"count":1}`})
	exporting(t, db, "", address)()
	changes(t, db, 2)
	exporting(t, db, "", address)()
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
	db, _ := open(t)
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &syslogServer{more: make(chan struct{}, 1)}
	var running sync.WaitGroup
	running.Go(func() {
		b := make([]byte, 64<<10)
		for {
			n, _, err := conn.ReadFrom(b)
			if err != nil {
				return
			}
			server.keep(string(b[:n]))
		}
	})
	t.Cleanup(func() { _ = conn.Close(); running.Wait() })
	changes(t, db, 3)
	exporting(t, db, "", "udp://"+conn.LocalAddr().String())()
	if r, err := audittrail.VerifyExport(strings.NewReader(server.lines(t, 4)), db.ExportKey()); err != nil || r.To != 3 {
		t.Errorf("got %+v, %v", r, err)
	}
}

func TestExportSyslog_OverTLSWantsACertificateThatHolds(t *testing.T) {
	db, _ := open(t)
	web := httptest.NewTLSServer(nil) // for its certificate
	defer web.Close()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: web.TLS.Certificates, MinVersion: tls.VersionTLS12})
	if err != nil {
		t.Fatal(err)
	}
	server := listenSyslog(t, listener)
	changes(t, db, 2)
	exporting(t, db, "", "tls://"+listener.Addr().String())()
	server.mu.Lock()
	if len(server.messages) > 0 {
		t.Errorf("%d messages went to a server whose certificate nobody knows", len(server.messages))
	}
	server.mu.Unlock()
}

// A server that takes nothing holds up neither writes nor the stop, and nothing is lost.
func TestExportSyslog_ADeadServerDelaysNobody(t *testing.T) {
	db, _ := open(t)
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
			accepted <- conn // and never read
		}
	}()
	address := "tcp://" + listener.Addr().String()
	service := newService(t, db)
	if err := service.StartExport("", address); err != nil {
		t.Fatal(err)
	}
	const entries = 12_000 // more than the system keeps for a connection
	for range entries / 500 {
		list := make([]store.AuditEntry, 500)
		for i := range list {
			list[i] = store.AuditEntry{Actor: store.NilID, Action: strings.Repeat("x", 1000), RecType: "roles", RecID: fmt.Sprint(i)}
		}
		change(t, db, list...)
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
		t.Errorf("%d of %d count as exported, %v", position, entries, err)
	}
}

func TestStartExport_RefusesWhatIsNoAddress(t *testing.T) {
	db, _ := open(t)
	for _, address := range []string{"logs.example", "http://logs.example", "tls://", ":"} {
		if err := newService(t, db).StartExport("", address); err == nil {
			t.Errorf("%q was taken", address)
		}
	}
}
