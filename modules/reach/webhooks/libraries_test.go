package webhooks_test

import (
	"encoding/json"
	"net/netip"
	"net/url"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"kontor/server/servertest"
	"kontor/server/settings"
	"kontor/store/testenv"
)

// librariesDir has an installed copy of testdata/verify. CI sets it, see .ci/run.
const librariesDir = "KONTOR_TEST_WEBHOOK_LIBRARIES"

// verdict is what the libraries say about one call.
type verdict struct {
	ID                      string
	Standard, Svix, Changed struct{ Type, ID, Error string }
}

// TestLibraries_VerifyCalls has calls verified by the libraries standardwebhooks and svix, also while a secret is being replaced.
func TestLibraries_VerifyCalls(t *testing.T) {
	testenv.Need(t, testenv.Full)
	dir := testenv.Directory(t, librariesDir, "modules/reach/webhooks/testdata/verify, installed with npm")
	receiver := testenv.Background(t, exec.Command(testenv.Tool(t, "node"), filepath.Join(dir, "verify.mjs")))
	address := receiver.Line("http://")

	// The libraries reject calls that are older than five minutes by the clock of this machine.
	s := servertest.Start(t, func(s *settings.Settings) {
		s.Webhooks.AllowedNetworks = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	})
	s.Clock.Set(time.Now())
	admin := s.SignIn(servertest.AdminEmail, servertest.AdminPassword)
	var hook struct{ ID, Secret string }
	admin.Do("POST", "/v1/webhooks", map[string]any{"url": address + "/later", "types": []string{"customers.*"}, "include_record": true}).Expect(t, 201).Into(t, &hook)
	first := hook.Secret
	use := func(secret string) {
		admin.Do("PATCH", "/v1/webhooks/"+hook.ID, map[string]any{"url": address + "/" + url.PathEscape(secret)}).Expect(t, 200)
	}
	call := func() (v verdict) {
		t.Helper()
		s.Clock.Set(time.Now())
		admin.Create("/v1/customers", map[string]any{"first_name": "Zoë", "last_name": "Müller", "email": "zoe@example.ch"})
		if err := json.Unmarshal([]byte(receiver.Line("{")), &v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	accepted := func(v verdict) bool {
		return v.Standard.Type == "customers.created" && v.Svix.Type == "customers.created" && v.Standard.ID == v.ID && v.Changed.Error != ""
	}
	use(first)
	if v := call(); !accepted(v) {
		t.Errorf("got %+v", v)
	}
	admin.Do("POST", "/v1/webhooks/"+hook.ID+"/secret", map[string]any{"overlap_hours": 1}).Expect(t, 200).Into(t, &hook)
	for _, secret := range []string{first, hook.Secret} {
		use(secret)
		if v := call(); !accepted(v) {
			t.Errorf("during the overlap: got %+v", v)
		}
	}
	use("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if v := call(); v.Standard.Error == "" || v.Svix.Error == "" {
		t.Errorf("another secret: got %+v", v)
	}
}
