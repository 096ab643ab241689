package settings

import "errors"

// Audit configures the targets of the continuous export of the audit trail.
type Audit struct {
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
