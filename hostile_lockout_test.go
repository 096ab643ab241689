package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// An attacker guesses from one /48 network and then from many. The user can still sign in from known networks and devices.
func TestHostile_AttackersCannotLockOutUsers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	p := startBehindProxy(t, dir)
	admin := p.admin()
	anna := p.customer(admin, "anna@example.ch", "2001:db8:1:1::7")
	guess, right := object("user_id", anna.email, "password", "guess"), object("user_id", anna.email, "password", customerPassword)
	verified := 0 // passwords that the server verified
	for i := range 400 {
		a, err := p.client().from(fmt.Sprintf("2001:db8:77:%x::1", i)).try("POST", "/authenticate", guess)
		if err != nil {
			t.Fatal(err)
		}
		if a.status == 401 {
			verified++
		}
	}
	if verified > 20+2 {
		t.Errorf("%d passwords from one unknown /48 network were verified, want at most 20", verified)
	}
	for i := range 200 {
		if _, err := p.client().from(fmt.Sprintf("2001:db8:%x::1", 0x1000+i)).try("POST", "/authenticate", guess); err != nil {
			t.Fatal(err)
		}
	}
	p.stop()
	p = startBehindProxy(t, dir) // counts, known networks and devices survive a restart
	// A lockout of 60 seconds may have expired on a slow machine. With the old count, one more guess renews it.
	if _, err := p.client().from("2001:db8:2000::1").try("POST", "/authenticate", guess); err != nil {
		t.Fatal(err)
	}
	if a := p.client().from("198.51.100.1").do(t, "POST", "/authenticate", right, 429); a.header.Get("Retry-After") == "" {
		t.Error("429 without Retry-After")
	}
	p.client().from("198.51.100.1").with("X-Device-Token", anna.deviceToken).do(t, "POST", "/authenticate", right, 200)
	p.client().from("2001:db8:1:1::8").do(t, "POST", "/authenticate", right, 200)
	// Guesses from the known network are limited, too, in total for all names of the user.
	names := []string{anna.email, anna.id, strings.ToUpper(anna.email), "аnna@example.ch"}
	verified = 0
	for i := range 40 {
		a, err := p.client().from("2001:db8:1:1::9").try("POST", "/authenticate", object("user_id", names[i%len(names)], "password", "guess"))
		if err != nil {
			t.Fatal(err)
		}
		if a.status == 401 {
			verified++
		}
	}
	if verified > 5+2 {
		t.Errorf("%d passwords from a known network were verified, want at most 5", verified)
	}
}

// Messages to unknown addresses, and registrations that probe for existing addresses, are limited. The counts survive a
// restart.
func TestHostile_MessagesAndProbesAreLimited(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	limited := func() *process {
		return startWith(t, secretsEnv, "--data.dir", dir, "--server.trusted_proxies=127.0.0.0/8", "--rate_limits.public_per_minute=100000", "--rate_limits.codes_per_hour=20")
	}
	p := limited()
	admin := p.admin()
	thief := p.customer(admin, "thief@example.ch", "192.0.2.2")
	sent := 0
	for i := range 120 {
		a, err := thief.from("192.0.2.9").try("POST", "/v1/users/"+thief.id+"/credentials", credentialOf("phone", fmt.Sprintf("+4179%07d", 5550000+i)))
		if err != nil {
			t.Fatal(err)
		}
		if a.status != 201 {
			continue
		}
		sent++
		thief.do(t, "DELETE", "/v1/users/credentials/"+idOf(t, a.body), "", 200)
	}
	if sent != 10 {
		t.Errorf("%d messages were sent to unknown addresses, want 10", sent)
	}
	count := func(what string, network func(i int) string, request func(i int) (path, body string)) map[int]int {
		seen := map[int]int{}
		for i := range 100 {
			path, body := request(i)
			a, err := p.keyed().from(network(i)).try("POST", path, body)
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			seen[a.status]++
		}
		return seen
	}
	one := func(address string) func(int) string { return func(int) string { return address } }
	many := func(i int) string { return fmt.Sprintf("203.0.113.%d", i) }
	recover := func(i int) (string, string) {
		return "/v1/users/initiate-recovery", object("credential_value", fmt.Sprintf("nobody%d@example.ch", i))
	}
	probe := func(int) (string, string) {
		return "/v1/users/initiate-registration", registrationOf("email", "thief@example.ch", customerPassword)
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
	p.stop()
	p = limited()
	if got := count("after a restart", many, recover); got[200] != 0 {
		t.Errorf("recoveries after a restart: %v", got)
	}
}
