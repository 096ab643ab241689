package bus

import (
	"testing"
	"time"
)

// After a crash of the server its tables are empty while nodes may still have a lease. For the rest of that lease the list of nodes
// is not trusted, and no node claims to lead.
func TestMembers_AreTrustedALeaseAfterTheTablesWereFoundEmpty(t *testing.T) {
	const now = time.Hour
	crashed := time.UnixMilli(1_800_000_000_000)
	for name, c := range map[string]struct {
		since    int64
		age      time.Duration
		distrust time.Duration
	}{
		"never found empty":          {0, 0, 0},
		"at once":                    {crashed.UnixMilli(), 0, lease},
		"within the lease":           {crashed.UnixMilli(), lease / 4, lease - lease/4},
		"after the lease":            {crashed.UnixMilli(), lease, 0},
		"the server's clock is back": {crashed.UnixMilli(), -time.Hour, lease},
	} {
		var m members
		m.observe(seen{since: c.since, time: crashed.Add(c.age)}, now)
		if c.distrust > 0 && (m.trusted(now+c.distrust-1) || m.mayClaim(now+c.distrust-1)) {
			t.Errorf("%s: trusted too early", name)
		}
		if !m.trusted(now+c.distrust) || !m.mayClaim(now+c.distrust) {
			t.Errorf("%s: not trusted after %s", name, c.distrust)
		}
		m.observe(seen{since: c.since, time: crashed.Add(time.Hour)}, now+c.distrust) // the same crash
		if !m.trusted(now + c.distrust) {
			t.Errorf("%s: a further heartbeat withdraws the trust", name)
		}
	}
}
