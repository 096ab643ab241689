package app_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/server/settings"
)

// The tests of this file are those of docs/adr/0021-rules-of-one-order.md: rules that read before they write, from two nodes at the
// same time. The jobs of all nodes run one after another.

// together sends requests at the same time, and returns how many answers had each status.
func together(t *testing.T, requests ...func() (servertest.Response, error)) map[int]int {
	t.Helper()
	var mu sync.Mutex
	var running sync.WaitGroup
	statuses := map[int]int{}
	begin := make(chan struct{})
	for _, request := range requests {
		running.Go(func() {
			<-begin
			answer, err := request()
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			statuses[answer.Status]++
		})
	}
	close(begin)
	running.Wait()
	return statuses
}

// tries returns a request of each client, several times.
func tries(times int, method, path string, body any, clients ...*servertest.Client) (requests []func() (servertest.Response, error)) {
	for range times {
		for _, c := range clients {
			requests = append(requests, func() (servertest.Response, error) { return c.Try(method, path, body) })
		}
	}
	return requests
}

func TestNodes_KeepTheLastAdministrator(t *testing.T) {
	a, b := nodes(t)
	root, other := a.Admin(), a.User(access.Administrator)
	take := func(from *servertest.Client, node *servertest.Server, by *servertest.Client) func() (servertest.Response, error) {
		return func() (servertest.Response, error) {
			return at(node, by).Try("PUT", "/v1/users/"+from.UserID+"/roles", map[string]any{"roles": []string{}})
		}
	}
	for range 30 {
		statuses := together(t, take(root, b, other), take(other, a, root))
		if statuses[200] != 1 {
			t.Fatalf("two administrators took each other's role: %v", statuses)
		}
		left, lost := root, other
		if root.Do("GET", "/v1/users?limit=1", nil).Status != 200 {
			left, lost = other, root
		}
		left.Do("PUT", "/v1/users/"+lost.UserID+"/roles", map[string]any{"roles": []string{"Administrator"}}).Expect(t, 200)
	}
}

func TestNodes_UniqueNames(t *testing.T) {
	a, b := nodes(t)
	admin, there := a.Admin(), at(b, a.Admin())
	for i := range 10 {
		statuses := together(t, tries(5, "POST", "/v1/rbac/roles", map[string]any{"name": fmt.Sprintf("Auditor %d", i)}, admin, there)...)
		if statuses[201] != 1 || statuses[409] != 9 {
			t.Errorf("10 creations of one role: %v", statuses)
		}
		name := fmt.Sprintf("user.%d", i)
		requests := make([]func() (servertest.Response, error), 0, 8)
		for n := range 8 {
			u := a.User(access.Customer)
			if n%2 == 1 {
				u = at(b, u)
			}
			requests = append(requests, func() (servertest.Response, error) {
				return u.Try("POST", "/v1/users/"+u.UserID+"/credentials", map[string]any{"credential_type": "username", "credential_value": name, "password": userPassword})
			})
		}
		if statuses := together(t, requests...); statuses[201] != 1 {
			t.Errorf("8 users took one user name: %v", statuses)
		}
	}
}

func TestNodes_OneOfTwoEditorsWins(t *testing.T) {
	a, b := nodes(t)
	admin := a.Admin()
	id := admin.Create("/v1/customers", map[string]any{"first_name": "Anna", "last_name": "Muster", "email": "anna@example.ch"})
	for i := range 20 {
		tag := admin.Do("GET", "/v1/customers/"+id, nil).Header.Get("ETag")
		edit := func(c *servertest.Client, name string) func() (servertest.Response, error) {
			return func() (servertest.Response, error) {
				return c.With("If-Match", tag).Try("PUT", "/v1/customers/"+id, map[string]any{"first_name": name, "last_name": "Muster"})
			}
		}
		one, other := fmt.Sprintf("Anna %d", i), fmt.Sprintf("Berta %d", i)
		if statuses := together(t, edit(admin, one), edit(at(b, admin), other), edit(admin, one), edit(at(b, admin), other)); statuses[200] != 1 || statuses[412] != 3 {
			t.Errorf("four editors of one version: %v", statuses)
		}
	}
}

func TestNodes_OneOfManyRepeatedRequestsRuns(t *testing.T) {
	a, b := nodes(t)
	u := a.User(access.Advisor)
	for i := range 20 {
		name := fmt.Sprintf("Muster-%d", i)
		var mu sync.Mutex
		ids := map[string]int{}
		var requests []func() (servertest.Response, error)
		for _, c := range []*servertest.Client{u, at(b, u), u, at(b, u), u, at(b, u)} {
			requests = append(requests, func() (servertest.Response, error) {
				answer, err := c.With("Idempotency-Key", name).Try("POST", "/v1/customers", map[string]any{"first_name": "Anna", "last_name": name, "email": "anna@example.ch"})
				if err == nil && answer.Status == http.StatusCreated {
					mu.Lock()
					defer mu.Unlock()
					ids[answer.JSON(t)["id"].(string)]++
				}
				return answer, err
			})
		}
		if statuses := together(t, requests...); statuses[201] != len(requests) || len(ids) != 1 {
			t.Fatalf("%d requests with one key: %v, records %v", len(requests), statuses, ids)
		}
	}
}

func TestNodes_LockoutIsExact(t *testing.T) {
	const free = 5
	a, b := nodes(t, func(o *settings.Settings) { o.Auth.CoolingOff.FreeAttempts = free })
	for range 5 {
		u := a.User(access.Customer)
		a.Clock.Advance(time.Hour) // the network may fail again
		wrong := map[string]any{"user_id": u.UserID, "password": "not the right password"}
		statuses := together(t, tries(10, "POST", "/authenticate", wrong, a.Anonymous(), b.Anonymous())...)
		if statuses[401] != free || statuses[401]+statuses[429] != 20 {
			t.Errorf("20 guesses: %v, want %d evaluated", statuses, free)
		}
		for _, node := range []*servertest.Server{a, b} {
			node.Anonymous().Do("POST", "/authenticate", map[string]any{"user_id": u.UserID, "password": userPassword}).Expect(t, 429)
		}
	}
}

func TestNodes_QuotaIsExact(t *testing.T) {
	const most = 12
	a, b := nodes(t, func(o *settings.Settings) { o.Quotas.Records = most })
	u := a.User(access.Customer)
	statuses := together(t, tries(10, "POST", "/v1/customers", map[string]any{"first_name": "Anna", "last_name": "Muster", "email": "anna@example.ch"}, u, at(b, u))...)
	if statuses[201] != most {
		t.Errorf("20 creations with a quota of %d: %v", most, statuses)
	}
}

// Each node answers the refresh token that was used last with the same pair. An older one ends the session on both.
func TestNodes_RefreshTokenIsAnsweredAgain(t *testing.T) {
	a, b := nodes(t)
	for range 5 {
		u := a.User(access.Customer)
		refresh := func(token string) servertest.Response {
			return b.Anonymous().Do("POST", "/v1/token/refresh", map[string]any{"refresh_token": token})
		}
		statuses := together(t, tries(4, "POST", "/v1/token/refresh", map[string]any{"refresh_token": u.Refresh}, a.Anonymous(), b.Anonymous())...)
		if statuses[200] != 8 {
			t.Errorf("8 refreshes with one token: %v", statuses)
		}
		second := refresh(u.Refresh).Expect(t, 200).JSON(t)
		again := a.Anonymous().Do("POST", "/v1/token/refresh", map[string]any{"refresh_token": u.Refresh}).Expect(t, 200).JSON(t)
		if again["access_token"] != second["access_token"] || again["refresh_token"] != second["refresh_token"] {
			t.Error("two nodes give two pairs")
		}
		refresh(second["refresh_token"].(string)).Expect(t, 200)
		refresh(u.Refresh).Expect(t, 401)
		for _, node := range []*servertest.Server{a, b} {
			at(node, u).Do("GET", "/v1/users/me", nil).Expect(t, 401)
		}
	}
}

func TestNodes_OneTimeCodeIsUsedOnce(t *testing.T) {
	a, b := nodes(t)
	for i := range 5 {
		address := fmt.Sprintf("beat%d@example.ch", i)
		made := a.Keyed().Do("POST", "/v1/users/initiate-registration", registering(address, "eine lange ruhige Nacht")).Expect(t, 201).JSON(t)
		c := a.Anonymous()
		c.Token = made["access_token"].(string)
		credential := "/v1/users/" + made["user_id"].(string) + "/credentials/" + made["credential"].(map[string]any)["id"].(string)
		c.Do("POST", credential+"/otp", nil)
		code := sentCode(t, a, address)
		// Wrong codes from both nodes: five attempts in all.
		wrong := "000000"
		if code == wrong {
			wrong = "111111"
		}
		if i == 0 {
			together(t, tries(3, "PUT", credential+"/validate", map[string]any{"otp": wrong}, c, at(b, c))...)
			if answer := at(b, c).Do("PUT", credential+"/validate", map[string]any{"otp": code}); answer.Status == 200 {
				t.Error("the right code was accepted after six wrong ones")
			}
			continue
		}
		statuses := together(t, tries(2, "PUT", credential+"/validate", map[string]any{"otp": code}, c, at(b, c))...)
		if statuses[200] != 1 {
			t.Errorf("4 validations with one code: %v", statuses)
		}
	}
}

// sentCode returns the newest one-time code that was sent to an address.
func sentCode(t *testing.T, s *servertest.Server, to string) string {
	t.Helper()
	var page struct{ Data []struct{ Text string } }
	s.Admin().Do("GET", "/v1/notifications/deliveries?limit=1&search.to="+to, nil).Expect(t, 200).Into(t, &page)
	if len(page.Data) == 0 {
		t.Fatalf("nothing was sent to %s", to)
	}
	return digits.FindString(page.Data[0].Text)
}

// A code of an authenticator app, a recovery code, and the token of a second step work once, whichever nodes get them.
func TestNodes_SecondStepIsUsedOnce(t *testing.T) {
	a, b := nodes(t)
	u := a.User(access.Customer)
	telephone := enrol(t, a, u)
	begin := func(s *servertest.Server) string {
		return s.Anonymous().Do("POST", "/authenticate", map[string]any{"user_id": u.UserID, "password": userPassword}).Expect(t, 202).JSON(t)["token"].(string)
	}
	for range 10 {
		one, other, code := begin(a), begin(b), telephone.code()
		requests := tries(2, "POST", "/authenticate/factor", map[string]any{"token": one, "code": code}, a.Anonymous(), b.Anonymous())
		requests = append(requests, tries(2, "POST", "/authenticate/factor", map[string]any{"token": other, "code": code}, a.Anonymous(), b.Anonymous())...)
		if statuses := together(t, requests...); statuses[200] != 1 {
			t.Errorf("one code for two tokens on two nodes: %v", statuses)
		}
		a.Clock.Advance(20 * time.Minute) // after lockouts
	}
}

func TestNodes_SessionsMax(t *testing.T) {
	const most = 4
	a, b := nodes(t, func(o *settings.Settings) { o.Auth.SessionsMax = most })
	for range 5 {
		u := a.User(access.Customer)
		statuses := together(t, tries(2, "POST", "/authenticate", map[string]any{"user_id": u.UserID, "password": userPassword}, a.Anonymous(), b.Anonymous())...)
		if statuses[200] != 4 {
			t.Errorf("4 sign-ins: %v", statuses)
		}
		var n int
		if err := b.DB.QueryRow(t.Context(), `SELECT count(*) FROM sessions WHERE user_id = $1 AND ended_at IS NULL`, u.UserID).Scan(&n); err != nil || n != most {
			t.Errorf("%d sessions, %v; want %d", n, err, most)
		}
	}
}

func TestNodes_StepsOfATask(t *testing.T) {
	a, b := nodes(t)
	admin := a.Admin()
	customer := admin.Create("/v1/customers", map[string]any{"first_name": "Anna", "last_name": "Muster", "email": "anna@example.ch"})
	for range 10 {
		task := "/v1/customers/" + customer + "/tasks/" + admin.Create("/v1/customers/"+customer+"/tasks", map[string]any{"title": "Sign", "category": "sign"})
		statuses := together(t,
			append(tries(2, "PATCH", task+"/status", map[string]any{"status": "completed"}, admin, at(b, admin)),
				tries(2, "PATCH", task+"/status", map[string]any{"status": "cancelled"}, admin, at(b, admin))...)...)
		state := admin.Do("GET", task, nil).Expect(t, 200).JSON(t)["status"]
		if got := at(b, admin).Do("GET", task, nil).JSON(t)["status"]; got != state || statuses[200] == 0 {
			t.Errorf("the nodes answer %v and %v; %v", state, got, statuses)
		}
	}
}

// Both nodes find the signing key old at the same time: one of them replaces it, and each verifies what the other signs.
func TestNodes_ReplaceASigningKeyOnce(t *testing.T) {
	a, b := nodes(t, func(o *settings.Settings) { o.Auth.SigningKeyDays = 90 })
	for round := 1; round <= 3; round++ {
		a.Clock.Advance(91 * 24 * time.Hour)
		var running sync.WaitGroup
		for _, node := range []*servertest.Server{a, b, a, b} {
			running.Go(func() {
				if err := node.Auth.MaintainSigningKeys(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		running.Wait()
		var newest int
		if err := a.DB.QueryRow(t.Context(), `SELECT max(number) FROM signing_keys`).Scan(&newest); err != nil || newest != round+1 {
			t.Errorf("the newest key has the number %d, want %d; %v", newest, round+1, err)
		}
		sets := [2]string{a.Anonymous().Do("GET", "/.well-known/jwks.json", nil).Body, b.Anonymous().Do("GET", "/.well-known/jwks.json", nil).Body}
		if sets[0] != sets[1] || strings.Count(sets[0], `"kid"`) != 2 {
			t.Errorf("the nodes publish %s and %s", sets[0], sets[1])
		}
		u := a.User(access.Customer)
		at(b, u).Do("GET", "/v1/users/me", nil).Expect(t, 200)
		at(a, b.SignIn(u.UserID, userPassword)).Do("GET", "/v1/users/me", nil).Expect(t, 200)
	}
}

// Tokens of a key that was dropped are rejected by every node at once. A node that does not have a new key yet looks it up.
func TestNodes_SigningKeys(t *testing.T) {
	a := servertest.StartShared(t)
	for name, b := range map[string]*servertest.Server{"a node": servertest.Node(t, a), "a node without a lease": servertest.IsolatedNode(t, a, false)} {
		t.Run(name, func(t *testing.T) {
			u := a.User(access.Customer)
			at(b, u).Do("GET", "/v1/users/me", nil).Expect(t, 200)
			if err := a.Auth.RotateSigningKey(t.Context(), false); err != nil {
				t.Fatal(err)
			}
			at(b, u).Do("GET", "/v1/users/me", nil).Expect(t, 200)
			later := a.SignIn(u.UserID, userPassword)
			at(b, later).Do("GET", "/v1/users/me", nil).Expect(t, 200)
			if err := a.Auth.RotateSigningKey(t.Context(), true); err != nil {
				t.Fatal(err)
			}
			at(b, u).Do("GET", "/v1/users/me", nil).Expect(t, 401)
			at(b, later).Do("GET", "/v1/users/me", nil).Expect(t, 401)
			at(b, a.SignIn(u.UserID, userPassword)).Do("GET", "/v1/users/me", nil).Expect(t, 200)
		})
	}
	behind := servertest.IsolatedNode(t, a, true)
	if err := a.Auth.RotateSigningKey(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	at(behind, a.User(access.Customer)).Do("GET", "/v1/users/me", nil).Expect(t, 200)
}

// Messages and readers of a chat from two nodes: the readers agree about what is unread, and the order of the messages is the same
// everywhere.
func TestNodes_ReadMessages(t *testing.T) {
	a, b := nodes(t)
	anna, beat := a.User(access.Advisor), a.User(access.Advisor)
	chat := "/v1/chats/" + anna.Create("/v1/chats", map[string]any{"participants": []string{beat.UserID}})
	unread := func(node *servertest.Server, c *servertest.Client) float64 {
		t.Helper()
		return at(node, c).Do("GET", chat, nil).Expect(t, 200).JSON(t)["unreadCount"].(float64)
	}
	const messages = 20
	for range 5 {
		before := unread(a, beat)
		requests := tries(messages/2, "POST", chat+"/messages", map[string]any{"content": "Hello"}, anna, at(b, anna))
		if statuses := together(t, requests...); statuses[201] != messages {
			t.Fatalf("messages: %v", statuses)
		}
		if one, other := unread(a, beat), unread(b, beat); one != before+messages || other != one {
			t.Errorf("%v and %v are unread, want %v", one, other, before+messages)
		}
		requests = append(tries(2, "POST", chat+"/read", nil, beat, at(b, beat)),
			tries(3, "POST", chat+"/messages", map[string]any{"content": "Hello"}, anna, at(b, anna))...)
		together(t, requests...)
		if one, other := unread(a, beat), unread(b, beat); one != other || one > 6 {
			t.Errorf("%v and %v are unread", one, other)
		}
		at(b, beat).Do("POST", chat+"/read", nil).Expect(t, 200)
		if one, other := unread(a, beat), unread(b, beat); one != 0 || other != 0 {
			t.Errorf("%v and %v are unread after reading all", one, other)
		}
		one, other := beat.Do("GET", chat+"/messages?limit=100", nil), at(b, beat).Do("GET", chat+"/messages?limit=100", nil)
		if one.Body != other.Body {
			t.Error("the nodes list the messages in different orders")
		}
	}
}
