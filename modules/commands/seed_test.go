package commands_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The same file in two new sandboxes makes records that are equal in every member, also in who made them. Tests that play files
// run alone: a process has one source of ids.
func TestSeed_MakesEqualRecordsInTwoSandboxes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "seed.yaml")
	year := strconv.Itoa(time.Now().Year() + 2)
	content := "start: " + year + "-01-05T08:00:00Z\nsteps:\n- {request: POST /v1/personas, body: {first_name: Ada, last_name: Muster, date_of_birth: 1990-04-12}}\n"
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	var answers []string
	for range 2 {
		p, dir := sandbox(t)
		expectSuccess(t, run(nil, "", "seed", file, "--data.dir", dir), "POST /v1/personas")
		answers = append(answers, p.as(t, p.signIn(t, "root@kontor.example", sandboxPassword), http.MethodGet, "/v1/personas", "", http.StatusOK))
	}
	if answers[0] != answers[1] || !strings.Contains(answers[0], `"created_at":"`+year+`-01-05T08:01:00.000Z"`) {
		t.Errorf("the first one has\n%s\nand the second one\n%s", answers[0], answers[1])
	}
}

func TestSeed_PlaysFilesAndScenariosByTheSocket(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	on := []string{"--data.dir", dir}
	file := filepath.Join(t.TempDir(), "seed.yaml")
	if err := os.WriteFile(file, []byte("- {id: role, request: POST /v1/rbac/roles, body: {name: Auditor}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	expectFailure(t, run(nil, "", append([]string{"seed", file}, on...)...), "kontor serve --sandbox")
	start(t, []string{"KONTOR_ADMIN_PASSWORD=seven plain words nobody knows"}, append([]string{"--sandbox"}, on...)...)
	expectSuccess(t, run(nil, "", append([]string{"seed", file}, on...)...), "POST /v1/rbac/roles")
	expectFailure(t, run(nil, "", append([]string{"seed", file}, on...)...), "Step role in line 1 failed: the answer is 409")
	expectFailure(t, run(nil, "- request: x", append([]string{"seed", "-"}, on...)...), "Line 1: send a method and a path")
	expectFailure(t, run(nil, "", append([]string{"seed"}, on...)...), "name a file")
	expectSuccess(t, run(nil, "", append([]string{"seed", "--export"}, on...)...), "request: POST /v1/rbac/roles\n    body:\n      name: Auditor")
	expectFailure(t, run(nil, "", append([]string{"seed", "--export", file}, on...)...), "it takes none")
	expectSuccess(t, run([]string{"LANG=de_CH.UTF-8"}, "", append([]string{"trigger"}, on...)...), "eine Beraterin bestätigt sie.  [customer.country=CHE]")
	expectSuccess(t, run(nil, "", append([]string{"trigger", "kyc.approved", "--set", "customer.country=DEU"}, on...)...), "customers.updated")
	for words, want := range map[string]string{
		"trigger nothing": "There is no such scenario", "trigger kyc.approved --set x=1": "has no value x", "trigger kyc.approved --set x": "name=value", "trigger a b": "unexpected argument",
	} {
		expectFailure(t, run(nil, "", append(strings.Fields(words), on...)...), want)
	}
}
