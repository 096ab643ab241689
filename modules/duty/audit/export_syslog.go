package audit

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"time"

	"kontor/store"
	"kontor/store/audittrail"
)

const (
	// syslogTimeout limits the time to connect, and the time to write a batch.
	syslogTimeout = 10 * time.Second
	// confirmTime is how long the sink waits after a batch to detect a closed connection. Syslog has no acknowledgements, and
	// writes to a connection that the server has just closed return no error.
	confirmTime = 50 * time.Millisecond

	// facilityAudit is "log audit". It and the severities are those of RFC 5424, section 6.2.1.
	facilityAudit   = 13
	severityWarning = 4
	severityNotice  = 5
	severityInfo    = 6

	maxHostname = 255
)

// syslogSink sends each entry and each head as a message of RFC 5424. Over UDP each message is a datagram (RFC 5426). Over TCP
// and TLS its length precedes it (RFC 6587 and RFC 5425). The text of a message is the line of the export.
type syslogSink struct {
	address *url.URL
	host    string
	conn    net.Conn
}

// defaultPorts are the ports of the transports.
var defaultPorts = map[string]string{"udp": "514", "tcp": "601", "tls": "6514"}

// newSyslogSink returns a sink for an address such as tls://logs.example:6514.
func newSyslogSink(address string) (*syslogSink, error) {
	u, err := url.Parse(address)
	if err != nil || defaultPorts[u.Scheme] == "" || u.Hostname() == "" {
		return nil, fmt.Errorf("invalid syslog address %q; expected one such as tls://logs.example:6514", address)
	}
	name, _ := os.Hostname() // without a name the field is a hyphen, as the RFC requires
	return &syslogSink{address: u, host: printable(name, maxHostname)}, nil
}

// printable returns a text as a header field: its visible ASCII characters, or a hyphen if there are none.
func printable(text string, maxLength int) string {
	var b []byte
	for _, c := range []byte(text) {
		if c > ' ' && c < 0x7f && len(b) < maxLength {
			b = append(b, c)
		}
	}
	if len(b) == 0 {
		return "-"
	}
	return string(b)
}

func (s *syslogSink) target() string { return "syslog " + s.address.String() }

func (s *syslogSink) close() {
	if s.conn != nil {
		_ = s.conn.Close() // there is nothing left to write
		s.conn = nil
	}
}

// write sends a batch. It closes the connection after an error.
func (s *syslogSink) write(ctx context.Context, b audittrail.ExportBatch) (err error) {
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if err := s.connect(ctx); err != nil {
		return err
	}
	conn := s.conn
	release := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) }) // a stop does not wait for a slow server
	defer release()
	if err := conn.SetWriteDeadline(time.Now().Add(syslogTimeout)); err != nil {
		return err
	}
	for i, line := range b.Lines {
		if err := s.send(entryPriority(b.Entries[i].Kind), b.Entries[i].At, messageID(b.Entries[i].Kind), line); err != nil {
			return err
		}
	}
	if err := s.send(priority(severityInfo), b.Entries[len(b.Entries)-1].At, "head", b.Head); err != nil {
		return err
	}
	return s.confirm()
}

func (s *syslogSink) connect(ctx context.Context) error {
	if s.conn != nil {
		return nil
	}
	port := s.address.Port()
	if port == "" {
		port = defaultPorts[s.address.Scheme]
	}
	target := net.JoinHostPort(s.address.Hostname(), port)
	dialer := &net.Dialer{Timeout: syslogTimeout}
	var err error
	if s.address.Scheme == "tls" {
		ctx, cancel := context.WithTimeout(ctx, syslogTimeout)
		defer cancel()
		s.conn, err = (&tls.Dialer{NetDialer: dialer, Config: &tls.Config{MinVersion: tls.VersionTLS12}}).DialContext(ctx, "tcp", target)
	} else {
		s.conn, err = dialer.DialContext(ctx, s.address.Scheme, target)
	}
	if err != nil {
		s.conn = nil
	}
	return err
}

// send writes one message.
func (s *syslogSink) send(priority int, at store.Time, id string, line []byte) error {
	text := bytes.TrimSuffix(line, []byte("\n"))
	message := fmt.Appendf(nil, "<%d>1 %s %s kontor %d %s - %s", priority, at, s.host, os.Getpid(), id, text)
	if s.address.Scheme != "udp" {
		message = append(append(strconv.AppendInt(nil, int64(len(message)), 10), ' '), message...)
	}
	_, err := s.conn.Write(message)
	return err
}

// confirm returns an error if the server has closed the connection.
func (s *syslogSink) confirm() error {
	if err := s.conn.SetReadDeadline(time.Now().Add(confirmTime)); err != nil {
		return err
	}
	var discarded [64]byte
	_, err := s.conn.Read(discarded[:])
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	return fmt.Errorf("the syslog server has closed the connection: %w", err)
}

func priority(severity int) int { return facilityAudit*8 + severity }

// entryPriority returns the priority of an entry. Security events rank above reads, and reads above changes.
func entryPriority(kind string) int {
	switch kind {
	case "":
		return priority(severityInfo)
	case "read":
		return priority(severityNotice)
	}
	return priority(severityWarning)
}

// messageID returns the type of a message: change, or the kind of a security event.
func messageID(kind string) string {
	if kind == "" {
		return kindChange
	}
	return kind
}
