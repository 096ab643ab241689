package playground_test

import (
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/server/settings"
)

const clockPath = "/v1/sandbox/clock"

func TestSandbox_ExistsInItsModeAlone(t *testing.T) {
	s := servertest.Start(t)
	for _, path := range []string{clockPath, "/v1/sandbox/reset", "/v1/sandbox/"} {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut} {
			_, want := ask(t, s, s.Admin(), method, "/v1/sandbax"+strings.TrimPrefix(path, "/v1/sandbox"))
			if status, got := ask(t, s, s.Admin(), method, path); status != http.StatusNotFound || got != want {
				t.Errorf("%s %s: %d %s, want %s", method, path, status, got, want)
			}
		}
	}
	if _, document := servertest.Send(t, s.Address, http.MethodGet, "/openapi.json", ""); strings.Contains(document, "/v1/sandbox") {
		t.Error("the document of a plain server names paths of the sandbox")
	}
	if _, page := servertest.Send(t, s.Address, http.MethodGet, "/", ""); strings.Contains(page, "kontor-mode") {
		t.Error("the console of a plain server has the mark of a sandbox")
	}
}

func TestSandbox_IsForAdministrators(t *testing.T) {
	s := servertest.StartSandbox(t, false)
	s.Anonymous().Do(http.MethodGet, clockPath, nil).ExpectError(t, http.StatusUnauthorized, "common.unauthorized")
	s.Keyed().Do(http.MethodGet, clockPath, nil).ExpectError(t, http.StatusUnauthorized, "common.unauthorized")
	for _, role := range []string{access.Customer, access.Advisor} {
		s.User(role).Do(http.MethodGet, clockPath, nil).ExpectError(t, http.StatusForbidden, "common.rbac_no_rec_access")
	}
	s.Admin().Do(http.MethodGet, clockPath, nil).Expect(t, http.StatusOK)
	s.Admin().Do(http.MethodDelete, clockPath, nil).ExpectError(t, http.StatusMethodNotAllowed, "common.method_not_allowed")
	if _, page := servertest.Send(t, s.Address, http.MethodGet, "/", ""); !strings.Contains(page, `<meta name="kontor-mode" content="sandbox">`) {
		t.Error("the console lacks the mark")
	}
}

// Behind a proxy the connection comes from this machine, too.
func TestSandbox_AnswersThisMachineOnly(t *testing.T) {
	s := servertest.StartSandbox(t, false)
	_, port, _ := net.SplitHostPort(s.Address)
	for _, headers := range [][]string{
		{"X-Forwarded-For", "127.0.0.1"}, {"X-Forwarded-For", ""}, {"x-forwarded-host", "localhost"}, {"X-Forwarded-Proto", "https"}, {"X-Forwarded-Anything", "1"},
		{"Forwarded", "for=127.0.0.1"}, {"Via", "1.1 proxy"}, {"X-Real-IP", "127.0.0.1"}, {"CF-Connecting-IP", "::1"},
		{"Host", "bank.example"}, {"Host", "bank.example:" + port}, {"Host", "localhost.bank.example"}, {"Host", "10.0.0.1:" + port},
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
			_, want := ask(t, s, s.Admin(), method, "/v1/sandbax/clock", headers...)
			if status, got := ask(t, s, s.Admin(), method, clockPath, headers...); status != http.StatusNotFound || got != want {
				t.Errorf("%s with %q: %d %s, want %s", method, headers, status, got, want)
			}
		}
	}
	for _, host := range []string{"localhost:" + port, "LocalHost", "bank.localhost", "127.0.0.1:" + port, "[::1]"} {
		if status, got := ask(t, s, s.Admin(), http.MethodGet, clockPath, "Host", host); status != http.StatusOK {
			t.Errorf("Host %s: %d %s", host, status, got)
		}
	}
}

func TestSandbox_IsHiddenWhereSettingsNameAProxy(t *testing.T) {
	for name, change := range map[string]servertest.Option{
		"base URL": func(s *settings.Settings) { s.Server.BaseURL = "https://bank.example" },
		"proxy": func(s *settings.Settings) {
			s.Server.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := servertest.StartSandbox(t, false, change)
			s.Admin().Do(http.MethodGet, clockPath, nil).ExpectError(t, http.StatusNotFound, "common.not_found")
		})
	}
}

func TestSandbox_IsOpenToOthersWithItsFlag(t *testing.T) {
	s := servertest.StartSandbox(t, true, func(s *settings.Settings) { s.Server.BaseURL = "https://bank.example" })
	if status, got := ask(t, s, s.Admin(), http.MethodGet, clockPath, "Host", "bank.example", "X-Forwarded-For", "192.0.2.1"); status != http.StatusOK {
		t.Errorf("%d %s", status, got)
	}
	s.User(access.Customer).Do(http.MethodGet, clockPath, nil).ExpectError(t, http.StatusForbidden, "common.rbac_no_rec_access")
}

// ask sends a request with headers in pairs, among them Host.
func ask(t *testing.T, s *servertest.Server, as *servertest.Client, method, path string, headers ...string) (status int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.Address+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+as.Token)
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Host" {
			request.Host = headers[i+1]
			continue
		}
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(answer)
}
