package oidc_test

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"kontor/server/settings"
	"kontor/store/testenv"
)

// providerDir has an installed copy of testdata/provider. CI sets it, see .ci/run.
const providerDir = "KONTOR_TEST_OIDC_PROVIDER"

// realProvider is a running oidc-provider, which is certified by the OpenID Foundation.
type realProvider struct {
	t       *testing.T
	issuer  string
	program *testenv.Program
	input   io.Writer
}

func startRealProvider(t *testing.T, dir string) *realProvider {
	t.Helper()
	cmd := exec.Command(testenv.Tool(t, "node"), filepath.Join(dir, "provider.mjs"), baseURL+"/authenticate/oidc/callback")
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	p := &realProvider{t: t, program: testenv.Background(t, cmd), input: input}
	p.issuer = p.program.Line("http://")
	return p
}

// restart replaces the signing key.
func (p *realProvider) restart() {
	p.t.Helper()
	if _, err := io.WriteString(p.input, "restart\n"); err != nil {
		p.t.Fatal(err)
	}
	p.program.Line("restarted")
}

var formAction = regexp.MustCompile(`action="([^"]+)"`)

// signIn fills in the forms of the provider as a person does, and returns the parameters with which the browser returns.
func (p *realProvider) signIn(address, account string) url.Values {
	p.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		p.t.Fatal(err)
	}
	var back *url.URL
	client := &http.Client{Jar: jar, Timeout: testenv.Limit(), CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if strings.HasPrefix(r.URL.String(), baseURL) {
			back = r.URL
			return http.ErrUseLastResponse
		}
		return nil
	}}
	response, err := client.Get(address)
	for _, prompt := range []string{"login", "consent"} {
		if err != nil {
			p.t.Fatal(err)
		}
		page, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if back != nil {
			break
		}
		action := formAction.FindStringSubmatch(string(page))
		if action == nil {
			p.t.Fatalf("the provider shows no form but %d %s", response.StatusCode, page)
		}
		response, err = client.PostForm(action[1], url.Values{"prompt": {prompt}, "login": {account}, "password": {"any"}})
	}
	if err != nil || back == nil {
		p.t.Fatalf("the provider did not redirect: %v", err)
	}
	response.Body.Close()
	return back.Query()
}

// TestRealProvider signs in with oidc-provider: the addresses and groups come from its user info, and its key is replaced.
func TestRealProvider(t *testing.T) {
	testenv.Need(t, testenv.Full)
	p := startRealProvider(t, testenv.Directory(t, providerDir, "modules/identity/oidc/testdata/provider, installed with npm"))
	h := start(t, func(s *settings.Settings) {
		s.Auth.OIDC.Issuer, s.Auth.OIDC.Scopes, s.Auth.OIDC.CreateUsers = p.issuer, []string{"openid", "email", "groups"}, true
		s.Auth.OIDC.RoleMap = []settings.MappedRole{{Claim: "advisor", Role: "Advisor"}, {Claim: "admin", Role: "Administrator"}}
	})
	ahead := time.Duration(0)
	follow := func() { h.Clock.Set(time.Now().Add(ahead)) } // the provider has the clock of this machine
	signIn := func(account string) url.Values {
		t.Helper()
		b := h.browser()
		follow()
		location := b.do("GET", "/authenticate/oidc", nil).Expect(t, http.StatusSeeOther).Header.Get("Location")
		answer := p.signIn(location, account)
		follow()
		fragment := b.back(answer)
		if fragment.Get("oidc_code") != "" {
			fragment.Set("user", b.tokens(fragment).UserID)
		}
		return fragment
	}
	first := signIn("advisor-anna").Get("user")
	if first == "" {
		t.Fatal("the first sign-in did not create a user")
	}
	if got := h.roles(first); got != "Advisor" {
		t.Errorf("the roles are %s", got)
	}
	p.restart()
	ahead = 11 * time.Second // keys may be requested again
	if again := signIn("advisor-anna").Get("user"); again != first {
		t.Errorf("the second sign-in is of user %q, want %s", again, first)
	}
	h.expectError(signIn("guest-otto"), noAccount)
}
