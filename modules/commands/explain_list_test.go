package commands_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestExplainCommand_PrintsThePlan(t *testing.T) {
	t.Parallel()
	in := newServedData(t)
	tokenOf := func(role string) string {
		account := strings.TrimSpace(run(nil, "", "service", "create", role, "--role="+role, in).stdout)
		return strings.TrimSpace(run(nil, "", "service", "token", account, "--name=explain", in).stdout)
	}
	admin, advisor := tokenOf("Administrator"), tokenOf("Advisor")
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(admin+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := start(t, nil, in)
	url := "--url=http://" + server.address
	const request = "GET /v1/rbac/roles?search.name=A*&sort=-name"
	o := run(nil, "", "explain", url, "--token=@"+file, request)
	expectSuccess(t, o, "GET /v1/rbac/roles?search.name=A*&sort=-name: status 200")
	for _, want := range []string{". count: remembered, ", ". page: ", "SELECT ", "   > "} {
		if !strings.Contains(o.stdout, want) {
			t.Errorf("%q is not in\n%s", want, o.stdout)
		}
	}
	if strings.Contains(o.stdout, "Advisor") {
		t.Errorf("rows are in\n%s", o.stdout)
	}
	refused := run(nil, "", "explain", url, "--token", advisor, request)
	if refused.code != 1 || !strings.Contains(refused.stderr, "Administrator") || strings.Contains(refused.stdout, "SELECT") {
		t.Errorf("an advisor got %+v", refused)
	}
	wrong := run(nil, "", "explain", url, "--token", admin, "/v1/rbac/roles?sort=unicorn")
	if !strings.Contains(wrong.stdout, "query_m.invalid_sort_field") || !strings.Contains(wrong.stdout, "count") {
		t.Errorf("a wrong request got %+v", wrong)
	}
	expectFailure(t, run(nil, "", "explain", url, "--token=x", "POST /v1/customers"), "only requests with GET")
	expectFailure(t, run(nil, "", "explain", url, "--token=x", "DELETE /v1/customers/1"), "only requests with GET")
	expectFailure(t, run(nil, "", "explain", url, "--token=x", "https://elsewhere.example/v1/customers"), "--url")
	expectFailure(t, run(nil, "", "explain", url, "--token=x", "//elsewhere.example/v1/customers"), "--url")
	expectFailure(t, run(nil, "", "explain", url, "--token=@"+file+".missing", request), "token")
	expectFailure(t, run(nil, "", "explain", "--token=x", "--data.dir="+t.TempDir(), request), "not sent")
}
