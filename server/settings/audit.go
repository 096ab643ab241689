package settings

import (
	"errors"
	"time"
)

// Audit configures the changed fields of the audit trail, and the targets of its continuous export.
type Audit struct {
	ChangedFields time.Duration // how long they are kept; 0: not at all

	ExportFile string // empty: no file
	SyslogURL  string // empty: no server
}

// syslogURL parses the address of a syslog server.
var syslogURL = text("syslog address", func(raw string) (string, error) {
	u, ok := parseURL(raw, "udp", "tcp", "tls")
	if !ok || u.User != nil || u.Path != "" || u.RawQuery != "" || u.Fragment != "" {
		return "", errors.New("must be an address such as tls://logs.example:6514, with udp, tcp or tls")
	}
	return raw, nil
})
