package commands_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

const sandboxPassword = "seven plain words nobody knows"

// sandbox starts a sandbox, and returns its data directory.
func sandbox(t *testing.T) (p *process, dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "data")
	return startSandbox(t, dir), dir
}

func startSandbox(t *testing.T, dir string) *process {
	t.Helper()
	return start(t, []string{"KONTOR_ADMIN_EMAIL=root@kontor.example", "KONTOR_ADMIN_PASSWORD=" + sandboxPassword}, "--sandbox", "--data.dir", dir)
}

// as sends a request of the administrator, who signs in again, and returns its body.
func (p *process) as(t *testing.T, token, method, path, body string, want int, headers ...string) string {
	t.Helper()
	status, answer := p.call(t, method, path, body, append([]string{"Authorization", "Bearer " + token}, headers...)...)
	if status != want {
		t.Fatalf("%s %s: %d %s, want %d", method, path, status, answer, want)
	}
	return answer
}

func TestReset_GoesBackWithoutARestart(t *testing.T) {
	t.Parallel()
	p, dir := sandbox(t)
	admin := func() string { return p.signIn(t, "root@kontor.example", sandboxPassword) }
	create := func(name string) {
		p.as(t, admin(), http.MethodPost, "/v1/customers", fmt.Sprintf(`{"first_name":%q,"last_name":"Muster","email":"ada@example.ch"}`, name), http.StatusCreated)
	}
	customers := func() string { return p.as(t, admin(), http.MethodGet, "/v1/customers", "", http.StatusOK) }
	began := sandboxTime(t, p)
	create("Ada")
	p.as(t, admin(), http.MethodPost, "/v1/sandbox/clock", `{"advance":"P40D"}`, http.StatusOK)
	former := admin()
	if answer := p.as(t, former, http.MethodPost, "/v1/sandbox/reset", "", http.StatusOK); !strings.HasPrefix(answer, `{"took_ms":`) {
		t.Errorf("the answer is %s", answer)
	}
	p.as(t, former, http.MethodGet, "/v1/customers", "", http.StatusUnauthorized)
	if now := sandboxTime(t, p); now.Before(began) || now.After(began.Add(24*time.Hour)) {
		t.Errorf("the reset sandbox shows %s, at its start %s", now, began)
	}
	if found := customers(); strings.Contains(found, "Ada") {
		t.Errorf("after the reset there are %s", found)
	}

	create("Beat")
	session := admin()
	p.as(t, session, http.MethodPost, "/v1/sandbox/keep", "", http.StatusOK)
	create("Carla")
	expectSuccess(t, run(nil, "", "reset", "--data.dir", dir), "went back to its kept state")
	if found := p.as(t, session, http.MethodGet, "/v1/customers", "", http.StatusOK); !strings.Contains(found, "Beat") || strings.Contains(found, "Carla") {
		t.Errorf("the kept state has %s", found)
	}
	expectSuccess(t, run(nil, "", "check", "--data.dir", dir), "is intact")
	p.stop()
	if log := p.stderr.String(); strings.Contains(log, `"level":"ERROR"`) || strings.Contains(log, "incomplete") {
		t.Errorf("the log has %s", log)
	}
	// A reset that was interrupted is completed by the next start.
	if err := os.WriteFile(filepath.Join(dir, "sandbox.change"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir, "kontor.mark"), 0); err != nil {
		t.Fatal(err)
	}
	p = startSandbox(t, dir)
	if found := customers(); !strings.Contains(found, "Beat") {
		t.Errorf("after an interrupted reset there are %s", found)
	}
}

// A seed is kept while the sandbox serves: the session of its sender, and the requests in memory, stay.
func TestReset_GoesBackToTheStateAfterTheSeed(t *testing.T) {
	p, dir := sandbox(t)
	admin := p.signIn(t, "root@kontor.example", sandboxPassword)
	names := func(token string) (found string) {
		for _, name := range []string{"Ada", "Beat", "Carla"} {
			if strings.Contains(p.as(t, token, http.MethodGet, "/v1/customers", "", http.StatusOK), `"`+name+`"`) {
				found += name + " "
			}
		}
		return found
	}
	seed := func(name string) string {
		return fmt.Sprintf(`[{"request":"POST /v1/customers","body":{"first_name":%q,"last_name":"Muster","email":"a@example.ch"}}]`, name)
	}
	p.as(t, admin, http.MethodPost, "/v1/sandbox/seed", seed("Ada"), http.StatusOK, "Content-Type", "application/json")
	if kept := p.as(t, admin, http.MethodGet, "/v1/requests?search.path=/v1/sandbox/seed", "", http.StatusOK); !strings.Contains(kept, `"total":1`) {
		t.Errorf("after the seed, the requests are %s", kept)
	}
	p.as(t, admin, http.MethodPost, "/v1/sandbox/seed", `[{"request":"POST /v1/customers"}]`, http.StatusUnprocessableEntity, "Content-Type", "application/json")
	expectSuccess(t, run(nil, "", "trigger", "customers.created", "--data.dir", dir), "customers.created")
	expectSuccess(t, run(nil, "", "reset", "--data.dir", dir), "went back to its kept state")
	if found := names(admin); found != "Ada " {
		t.Errorf("after the reset there are %s", found)
	}

	expectSuccess(t, run(nil, seed("Carla"), "seed", "-", "--data.dir", dir), "resets go back to this state")
	p.as(t, admin, http.MethodPost, "/v1/sandbox/reset", "", http.StatusOK)
	if found := names(admin); found != "Ada Carla " {
		t.Errorf("after the second seed and a reset there are %s", found)
	}
	expectSuccess(t, run(nil, "", "check", "--data.dir", dir), "is intact")

	for _, first := range []func(){
		func() { p.as(t, admin, http.MethodPost, "/v1/sandbox/reset?first=true", "", http.StatusOK) },
		func() { expectSuccess(t, run(nil, "", "reset", "--first", "--data.dir", dir), "after its first start") },
		func() { expectSuccess(t, run(nil, "", "reset", "--data.dir", dir), "went back to its kept state") },
	} {
		first()
		p.as(t, admin, http.MethodGet, "/v1/customers", "", http.StatusUnauthorized)
		if admin = p.signIn(t, "root@kontor.example", sandboxPassword); names(admin) != "" {
			t.Errorf("after a reset to the first start there are %s", names(admin))
		}
	}
	expectFailure(t, run(nil, "", "reset", "--first", "--keep", "--data.dir", dir), "first")
	p.stop()
	if log := p.stderr.String(); strings.Contains(log, `"level":"ERROR"`) || strings.Contains(log, "no mark") {
		t.Errorf("the log has %s", log)
	}
}

func TestReset_IsForAdministratorsOfThisMachine(t *testing.T) {
	t.Parallel()
	p, dir := sandbox(t)
	admin := p.signIn(t, "root@kontor.example", sandboxPassword)
	for _, path := range []string{"/v1/sandbox/reset", "/v1/sandbox/keep"} {
		if status, _ := p.call(t, http.MethodPost, path, ""); status != http.StatusUnauthorized {
			t.Errorf("without a token: %d", status)
		}
		p.as(t, admin, http.MethodPost, path, "", http.StatusNotFound, "X-Forwarded-For", "127.0.0.1")
		p.as(t, admin, http.MethodGet, path, "", http.StatusMethodNotAllowed)
		p.as(t, admin, http.MethodGet, path, "", http.StatusNotFound, "Via", "1.1 proxy")
	}
	plain := newDataDir(t)
	other := start(t, nil, "--data.dir", plain)
	expectFailure(t, run(nil, "", "reset", "--data.dir", plain), "the server is no sandbox")
	if status, _ := other.call(t, http.MethodPost, "/v1/sandbox/reset", ""); status != http.StatusNotFound {
		t.Errorf("a plain server answers %d", status)
	}
	expectFailure(t, run(nil, "", "reset", "--data.dir", t.TempDir()), "no sandbox is running")
	expectSuccess(t, run(nil, "", "check", "--data.dir", dir), "is intact")
}

// Of several resets at once, each is done, or rejected while another one is being done.
func TestReset_SeveralAtOnce(t *testing.T) {
	t.Parallel()
	p, dir := sandbox(t)
	admin := p.signIn(t, "root@kontor.example", sandboxPassword)
	p.as(t, admin, http.MethodPost, "/v1/sandbox/keep", "", http.StatusOK) // with the session
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+p.address+"/v1/sandbox/reset", nil)
			if err != nil {
				t.Error(err)
				return
			}
			request.Header.Set("Authorization", "Bearer "+admin)
			request.Close = true
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				return // the connection of a request that came during a reset may be closed
			}
			defer response.Body.Close()
			if s := response.StatusCode; s != http.StatusOK && s != http.StatusConflict && s != http.StatusServiceUnavailable {
				t.Errorf("a reset is answered with %d", s)
			}
		})
	}
	all.Wait()
	p.as(t, admin, http.MethodPost, "/v1/sandbox/reset", "", http.StatusOK)
	p.as(t, admin, http.MethodGet, "/v1/customers", "", http.StatusOK)
	expectSuccess(t, run(nil, "", "check", "--data.dir", dir), "is intact")
}
