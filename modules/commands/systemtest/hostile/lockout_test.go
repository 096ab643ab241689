package hostile_test

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"kontor/modules/commands/systemtest"
	"kontor/store/testenv"
)

// An attacker guesses from one /48 network and then from many. The user can still sign in from known networks and devices.
func TestHostile_AttackersCannotLockOutUsers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	long := []string{"--auth.cooling_off.base_seconds=3600", "--auth.cooling_off.max_seconds=86400"} // however slow the machine is, no lockout expires
	p := startBehindProxy(t, dir, long...)
	admin := p.Admin()
	anna := p.Customer(admin, "anna@example.ch", "2001:db8:1:1::7")
	guess, right := systemtest.Object("user_id", anna.Email, "password", "guess"), systemtest.Object("user_id", anna.Email, "password", systemtest.CustomerPassword)
	verified := 0 // passwords that the server verified
	for i := range 400 {
		a, err := p.Client().From(fmt.Sprintf("2001:db8:77:%x::1", i)).Try("POST", "/authenticate", guess)
		if err != nil {
			t.Fatal(err)
		}
		if a.Status == 401 {
			verified++
		}
	}
	if verified > 20 {
		t.Errorf("%d passwords from one unknown /48 network were verified, want at most 20", verified)
	}
	for i := range 200 {
		if _, err := p.Client().From(fmt.Sprintf("2001:db8:%x::1", 0x1000+i)).Try("POST", "/authenticate", guess); err != nil {
			t.Fatal(err)
		}
	}
	p.Stop()
	p = startBehindProxy(t, dir, long...) // counts, known networks and devices survive a restart
	// The lockout of all networks together takes 60 seconds, which may be over on a slow machine. With the old count, one more guess renews it.
	testenv.Wait(t, "a lockout that does not end soon", func() bool {
		a, err := p.Client().From("2001:db8:2000::1").Try("POST", "/authenticate", guess)
		if err != nil {
			t.Fatal(err)
		}
		left, _ := strconv.Atoi(a.Header.Get("Retry-After")) // 0 without a lockout
		return a.Status == 401 || left > 30
	})
	if a := p.Client().From("198.51.100.1").Do(t, "POST", "/authenticate", right, 429); a.Header.Get("Retry-After") == "" {
		t.Error("429 without Retry-After")
	}
	p.Client().From("198.51.100.1").With("X-Device-Token", anna.DeviceToken).Do(t, "POST", "/authenticate", right, 200)
	p.Client().From("2001:db8:1:1::8").Do(t, "POST", "/authenticate", right, 200)
	// Guesses from the known network are limited, too, in total for all names of the user.
	names := []string{anna.Email, anna.ID, strings.ToUpper(anna.Email), "аnna@example.ch"}
	verified = 0
	for i := range 40 {
		a, err := p.Client().From("2001:db8:1:1::9").Try("POST", "/authenticate", systemtest.Object("user_id", names[i%len(names)], "password", "guess"))
		if err != nil {
			t.Fatal(err)
		}
		if a.Status == 401 {
			verified++
		}
	}
	if verified > 5 {
		t.Errorf("%d passwords from a known network were verified, want at most 5", verified)
	}
}

// Messages to unknown addresses, and registrations that probe for existing addresses, are limited. The counts survive a
// restart.
func TestHostile_MessagesAndProbesAreLimited(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	limited := func() *systemtest.Process {
		return systemtest.StartWith(t, systemtest.SecretsEnv, "--data.dir", dir, "--server.trusted_proxies=127.0.0.0/8", "--rate_limits.public_per_minute=100000", "--rate_limits.codes_per_hour=20")
	}
	p := limited()
	admin := p.Admin()
	thief := p.Customer(admin, "thief@example.ch", "192.0.2.2")
	sent := 0
	for i := range 120 {
		a, err := thief.From("192.0.2.9").Try("POST", "/v1/users/"+thief.ID+"/credentials", systemtest.CredentialOf("phone", fmt.Sprintf("+4179%07d", 5550000+i)))
		if err != nil {
			t.Fatal(err)
		}
		if a.Status != 201 {
			continue
		}
		sent++
		thief.Do(t, "DELETE", "/v1/users/credentials/"+systemtest.IDOf(t, a.Body), "", 200)
	}
	if sent != 10 {
		t.Errorf("%d messages were sent to unknown addresses, want 10", sent)
	}
	count := func(what string, network func(i int) string, request func(i int) (path, body string)) map[int]int {
		seen := map[int]int{}
		for i := range 100 {
			path, body := request(i)
			a, err := p.Keyed().From(network(i)).Try("POST", path, body)
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			seen[a.Status]++
		}
		return seen
	}
	one := func(address string) func(int) string { return func(int) string { return address } }
	many := func(i int) string { return fmt.Sprintf("203.0.113.%d", i) }
	recover := func(i int) (string, string) {
		return "/v1/users/initiate-recovery", systemtest.Object("credential_value", fmt.Sprintf("nobody%d@example.ch", i))
	}
	probe := func(int) (string, string) {
		return "/v1/users/initiate-registration", systemtest.RegistrationOf("email", "thief@example.ch", systemtest.CustomerPassword)
	}
	if got := count("probes", one("192.0.2.51"), probe); got[409] != 10 || got[429] != 90 {
		t.Errorf("probes: %v", got)
	}
	if got := count("recoveries from one network", one("192.0.2.50"), recover); got[200] != 20 || got[429] != 80 {
		t.Errorf("recoveries from one network: %v", got)
	}
	// The limit of all callers without a session is 80, of which 20 are used. The e-mail of a registration does not count.
	if got := count("recoveries from many networks", many, recover); got[200] != 80-20 {
		t.Errorf("recoveries from many networks: %v", got)
	}
	p.Stop()
	p = limited()
	if got := count("after a restart", many, recover); got[200] != 0 {
		t.Errorf("recoveries after a restart: %v", got)
	}
}
