package crash_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"kontor/modules/commands/systemtest"
	"kontor/store/testenv"
)

// imported is the state of an import.
type imported struct {
	State                                        string
	Done, Created, Updated, Duplicates, Rejected int
}

// TestKill_ImportsNoRowTwice kills a server in the middle of an import, several times. The import continues each time, and each row is one
// customer with one audit entry.
func TestKill_ImportsNoRowTwice(t *testing.T) {
	const rows = 3000
	var file strings.Builder
	file.WriteString("first_name,last_name,email\n")
	for n := range rows {
		fmt.Fprintf(&file, "Anna,Row %04d,anna%d@example.ch\n", n, n)
	}
	dir := filepath.Join(t.TempDir(), "data")
	rounds := testenv.Rounds(0, 3, 40)
	var id string
	state := func(admin *systemtest.Client) (i imported) {
		admin.Do(t, "GET", "/v1/imports/"+id, "", 200).Decode(t, &i)
		return i
	}
	done := 0
	for round := range rounds {
		p := systemtest.Start(t, dir, "--rate_limits.enabled=false")
		admin := p.Admin()
		if id == "" {
			id = systemtest.IDOf(t, admin.With("Content-Type", "text/csv").Do(t, "POST", "/v1/customers/import", file.String(), 202).Body)
		}
		enough := min(rows*(round+1)/(rounds+1), rows-100)
		testenv.Wait(t, "rows of the import", func() bool {
			i := state(admin)
			if i.Done < done {
				t.Fatalf("%d rows, but %d before the kill", i.Done, done)
			}
			done = i.Done
			return done >= enough
		})
		p.Kill()
	}
	p := systemtest.Start(t, dir, "--rate_limits.enabled=false")
	admin := p.Admin()
	testenv.Wait(t, "the end of the import", func() bool { i := state(admin); return i.State == "done" || i.State == "failed" })
	if i := state(admin); i.State != "done" || i.Created != rows || i.Done != rows || i.Rejected+i.Updated+i.Duplicates > 0 {
		t.Errorf("got %+v", i)
	}
	if customers, created := admin.Total(t, "/v1/customers?limit=-1"), admin.Total(t, "/v1/audit?limit=-1&search.action=customers.create"); customers != rows || created != rows {
		t.Errorf("%d customers and %d audit entries for %d rows", customers, created, rows)
	}
	if names := admin.Total(t, "/v1/customers?limit=-1&distinct=last_name"); names != rows {
		t.Errorf("%d different names of %d rows", names, rows)
	}
	if code := p.Stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if out := systemtest.ExpectSuccess(t, systemtest.Run(t, nil, "check", "--data.dir", dir)); !strings.Contains(out, "is intact") {
		t.Errorf("check printed %q", out)
	}
}
