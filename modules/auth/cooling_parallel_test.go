package auth_test

import (
	"fmt"
	"testing"
)

// However many guess at once, no more passwords are looked at than are free.
func TestCoolingOff_ParallelGuesses(t *testing.T) {
	const guesses = 60
	w := newWorld(t)
	w.user("anna@example.ch")
	answers := make(chan answer, guesses)
	for i := range guesses {
		go func() {
			guess := "wrong"
			if i == guesses-1 {
				guess = "also wrong"
			}
			a, err := w.try("POST", "/authenticate", map[string]string{"user_id": "anna@example.ch", "password": guess})
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

// However many values one network tries at once, few more are looked at than it may fail with.
func TestCoolingOff_ParallelValues(t *testing.T) {
	const values, most = 200, 30 + 15
	w := newWorld(t)
	answers := make(chan answer, values)
	for i := range values {
		go func() {
			a, err := w.try("POST", "/authenticate", map[string]string{"user_id": fmt.Sprintf("user%d@example.ch", i), "password": "wrong"})
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

// Who signs in many times at once with the right password has failed at nothing, nor has a house full of users.
func TestCoolingOff_ParallelSuccesses(t *testing.T) {
	const clients = 64
	w := newWorld(t)
	for _, c := range []struct {
		name  string
		users int
	}{{"one user", 1}, {"many users of one network", clients}} {
		t.Run(c.name, func(t *testing.T) {
			login := func(i int) string { return fmt.Sprintf("user%d-of-%d@example.ch", i%c.users, c.users) }
			for i := range c.users {
				w.user(login(i))
			}
			answers := make(chan answer, clients)
			for i := range clients {
				go func() {
					a, err := w.try("POST", "/authenticate", map[string]string{"user_id": login(i), "password": password})
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
