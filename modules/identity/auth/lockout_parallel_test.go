package auth_test

import (
	"fmt"
	"testing"
)

// Concurrent guesses do not exceed the budget of a user.
func TestLockout_BoundsParallelGuesses(t *testing.T) {
	const guesses = 60
	h := newHarness(t)
	h.user("anna@example.ch")
	answers := make(chan answer, guesses)
	for i := range guesses {
		go func() {
			guess := "wrong"
			if i == guesses-1 {
				guess = "also wrong"
			}
			a, err := h.try("POST", "/authenticate", map[string]string{"user_id": "anna@example.ch", "password": guess})
			if err != nil {
				t.Error(err)
			}
			answers <- a
		}()
	}
	seen := map[int]int{}
	for range guesses {
		seen[(<-answers).status]++
	}
	if seen[401] != 5 || seen[429] != guesses-5 {
		t.Errorf("got %v, want 5 times 401 and %d times 429", seen, guesses-5)
	}
}

// Concurrent guesses from one network exceed its limit by a few at most.
func TestLockout_BoundsParallelSpraying(t *testing.T) {
	const values, most = 200, 30 + 15
	h := newHarness(t)
	answers := make(chan answer, values)
	for i := range values {
		go func() {
			a, err := h.try("POST", "/authenticate", map[string]string{"user_id": fmt.Sprintf("user%d@example.ch", i), "password": "wrong"})
			if err != nil {
				t.Error(err)
			}
			answers <- a
		}()
	}
	seen := map[int]int{}
	for range values {
		seen[(<-answers).status]++
	}
	if seen[401] > most || seen[401]+seen[429] != values {
		t.Errorf("got %v, want at most %d times 401 and 429 for the others", seen, most)
	}
}

// Concurrent sign-ins with the right password do not count as failures, of one user or of many users of one network.
func TestLockout_SparesParallelSuccesses(t *testing.T) {
	const clients = 64
	h := newHarness(t)
	for _, c := range []struct {
		name  string
		users int
	}{{"one user", 1}, {"many users of one network", clients}} {
		t.Run(c.name, func(t *testing.T) {
			login := func(i int) string { return fmt.Sprintf("user%d-of-%d@example.ch", i%c.users, c.users) }
			for i := range c.users {
				h.user(login(i))
			}
			answers := make(chan answer, clients)
			for i := range clients {
				go func() {
					a, err := h.try("POST", "/authenticate", map[string]string{"user_id": login(i), "password": password})
					if err != nil {
						t.Error(err)
					}
					answers <- a
				}()
			}
			for range clients {
				if a := <-answers; a.status != 200 {
					t.Errorf("got %d %s, want 200", a.status, a.body)
				}
			}
		})
	}
}
