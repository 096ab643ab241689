package crash_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"kontor/modules/commands/systemtest"
	"kontor/store/testenv"
)

// upload sends a list with names of people in the form of OpenSanctions.
func upload(t *testing.T, admin *systemtest.Client, name string, people ...string) {
	t.Helper()
	var form strings.Builder
	fmt.Fprintf(&form, "--x\r\nContent-Disposition: form-data; name=\"name\"\r\n\r\n%s\r\n", name)
	form.WriteString("--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"list.csv\"\r\n\r\nid,schema,name\n")
	for n, one := range people {
		fmt.Fprintf(&form, "P%d,Person,%s\n", n, one)
	}
	form.WriteString("\r\n--x--\r\n")
	admin.With("Content-Type", "multipart/form-data; boundary=x").Do(t, "POST", "/v1/screening/lists", form.String(), 201)
}

// TestKill_ScreensNoRecordTwice kills a server in the middle of the comparison of all customers with a list, several times. The comparison
// continues each time, and each customer has one hit, which was opened once.
func TestKill_ScreensNoRecordTwice(t *testing.T) {
	const customers = 1200
	const opened = "/v1/audit?limit=-1&search.action=screening.hit_opened"
	var file strings.Builder
	file.WriteString("first_name,last_name,email\n")
	for n := range customers {
		fmt.Fprintf(&file, "Viktor,Beispielow,viktor%d@example.ch\n", n)
	}
	dir := filepath.Join(t.TempDir(), "data")
	rounds := testenv.Rounds(0, 2, 20)
	before := 0
	for round := range rounds {
		p := systemtest.Start(t, dir, "--rate_limits.enabled=false")
		admin := p.Admin()
		if round == 0 {
			id := systemtest.IDOf(t, admin.With("Content-Type", "text/csv").Do(t, "POST", "/v1/customers/import", file.String(), 202).Body)
			testenv.Wait(t, "the end of the import", func() bool {
				var i imported
				admin.Do(t, "GET", "/v1/imports/"+id, "", 200).Decode(t, &i)
				return i.State == "done"
			})
			upload(t, admin, "Sample", "Viktor Beispielow", "Somebody Else")
		}
		enough := min(customers*(round+1)/(rounds+1), customers-100)
		testenv.Wait(t, "hits", func() bool {
			now := admin.Total(t, "/v1/screening/hits?limit=-1")
			if now < before {
				t.Fatalf("%d hits, but %d before the kill", now, before)
			}
			before = now
			return now >= enough
		})
		p.Kill()
	}
	p := systemtest.Start(t, dir, "--rate_limits.enabled=false")
	admin := p.Admin()
	testenv.Wait(t, "the end of the comparison", func() bool { return admin.Total(t, "/v1/screening/hits?limit=-1") >= customers })
	upload(t, admin, "Other", "Anna Later") // all are compared again, after what was left
	late := systemtest.IDOf(t, admin.Do(t, "POST", "/v1/customers", `{"first_name":"Anna","last_name":"Later","email":"late@example.ch"}`, 201).Body)
	testenv.Wait(t, "a later hit", func() bool { return admin.Total(t, "/v1/screening/hits?limit=-1&search.subject_id="+late) == 1 })
	if hits, open := admin.Total(t, "/v1/screening/hits?limit=-1"), admin.Total(t, "/v1/screening/hits?limit=-1&search.status=open"); hits != customers+1 || open != hits {
		t.Errorf("%d hits, %d of them open, of %d customers", hits, open, customers+1)
	}
	if subjects := admin.Total(t, "/v1/screening/hits?limit=-1&distinct=subject_id"); subjects != customers+1 {
		t.Errorf("hits of %d customers, want %d", subjects, customers+1)
	}
	if entries := admin.Total(t, opened); entries != customers+1 {
		t.Errorf("%d hits were opened, want %d", entries, customers+1)
	}
	if code := p.Stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if out := systemtest.ExpectSuccess(t, systemtest.Run(t, nil, "check", "--data.dir", dir)); !strings.Contains(out, "is intact") {
		t.Errorf("check printed %q", out)
	}
}
