package postgrestest

import (
	"errors"
	"maps"
	"strconv"
	"testing"
)

// Replicated are the settings of a server that can have standbys.
var Replicated = map[string]string{"wal_level": "replica", "max_wal_senders": "4", "hot_standby": "on"}

// Standby copies a server and starts the copy as its standby, which receives all further commits. The server needs the settings
// Replicated. The standby ends with the test.
func (p *Instance) Standby(t testing.TB) *Instance {
	t.Helper()
	s, err := newInstance(Options{Settings: maps.Clone(p.settings)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("stop the standby: %v", err)
		}
	})
	err = run(s.as, s.dir, "pg_basebackup", "-h", "127.0.0.1", "-p", strconv.Itoa(p.port), "-U", User,
		"-D", s.data(), "-R", "-X", "stream", "--checkpoint=fast", "--no-sync")
	if err = errors.Join(err, s.startSomewhere()); err != nil {
		t.Fatal(err)
	}
	return s
}

// Promote makes a standby a primary, and returns when it accepts writes.
func (p *Instance) Promote(t testing.TB) {
	t.Helper()
	if err := run(p.as, p.dir, "pg_ctl", "-D", p.data(), "-w", "promote"); err != nil {
		t.Fatal(err)
	}
}
