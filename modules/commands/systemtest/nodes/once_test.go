package nodes_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"kontor/modules/commands/systemtest"
	"kontor/store/postgres/postgrestest"
)

// atOnce sends a request to each node at the same moment, and returns the answers with status 200.
func atOnce(t *testing.T, clients []*systemtest.Client, method, path string, body func(i int) string) (accepted []systemtest.Answer) {
	t.Helper()
	var mu sync.Mutex
	var sending sync.WaitGroup
	begin := make(chan struct{})
	for i, c := range clients {
		sending.Go(func() {
			<-begin
			got, err := c.Try(method, path, body(i))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				t.Error(err)
			case got.Status == 200:
				accepted = append(accepted, got)
			case got.Status < 400 || got.Status >= 500:
				t.Errorf("%s %s: %d %s", method, path, got.Status, got.Body)
			}
		})
	}
	close(begin)
	sending.Wait()
	return accepted
}

// TestNodes_AcceptEachCodeOnce uses a one-time code, a code of an app, a recovery code and a refresh token at two nodes at the same moment.
func TestNodes_AcceptEachCodeOnce(t *testing.T) {
	address := postgrestest.URL(t)
	nodes := []*systemtest.Process{startNode(t, address), startNode(t, address)}
	admin := nodes[0].Admin()
	for round := range nodeRounds(3) {
		email := fmt.Sprintf("once%d@example.ch", round)
		var registered struct {
			UserID      string `json:"user_id"`
			AccessToken string `json:"access_token"`
			Credential  struct{ ID string }
		}
		nodes[0].Keyed().Do(t, "POST", "/v1/users/initiate-registration", systemtest.RegistrationOf("email", email, systemtest.CustomerPassword), 201).Decode(t, &registered)
		each := func(headers ...string) (all []*systemtest.Client) {
			for _, p := range nodes {
				all = append(all, p.Client(headers...))
			}
			return all
		}
		same := func(body string) func(int) string { return func(int) string { return body } }
		once := func(what string, accepted []systemtest.Answer) {
			t.Helper()
			if len(accepted) != 1 {
				t.Errorf("%s was accepted %d times", what, len(accepted))
			}
		}
		once("a one-time code", atOnce(t, each("Authorization", "Bearer "+registered.AccessToken), "PUT",
			"/v1/users/"+registered.UserID+"/credentials/"+registered.Credential.ID+"/validate", same(systemtest.Object("otp", systemtest.SentCode(t, admin, email)))))

		var tokens struct {
			RefreshToken string `json:"refresh_token"`
			AccessToken  string `json:"access_token"`
		}
		password := systemtest.Object("user_id", email, "password", systemtest.CustomerPassword)
		nodes[0].Client().Do(t, "POST", "/authenticate", password, 200).Decode(t, &tokens)
		own := nodes[0].Client("Authorization", "Bearer "+tokens.AccessToken)
		var enrolled struct {
			ID   string
			TOTP struct{ Secret string }
		}
		factors := "/v1/users/" + registered.UserID + "/factors"
		own.Do(t, "POST", factors, systemtest.Object("type", "totp", "name", "Phone", "password", systemtest.CustomerPassword), 201).Decode(t, &enrolled)
		code := func(ahead time.Duration) string {
			code, err := totp.GenerateCode(enrolled.TOTP.Secret, time.Now().Add(ahead))
			if err != nil {
				t.Fatal(err)
			}
			return code
		}
		var confirmed struct {
			RecoveryCodes []string `json:"recovery_codes"`
		}
		own.Do(t, "POST", factors+"/"+enrolled.ID+"/confirm", systemtest.Object("code", code(0)), 200).Decode(t, &confirmed)
		second := func(name, value string) []systemtest.Answer {
			steps := make([]string, len(nodes))
			for i, p := range nodes {
				var step struct{ Token string }
				p.Client().Do(t, "POST", "/authenticate", password, 202).Decode(t, &step)
				steps[i] = step.Token
			}
			return atOnce(t, each(), "POST", "/authenticate/factor", func(i int) string { return systemtest.Object("token", steps[i], name, value) })
		}
		once("a code of an app", second("code", code(30*time.Second))) // the next one is accepted early
		once("a recovery code", second("recovery_code", confirmed.RecoveryCodes[0]))

		pairs := map[string]bool{}
		for _, a := range atOnce(t, each(), "POST", "/v1/token/refresh", same(systemtest.Object("refresh_token", tokens.RefreshToken))) {
			var pair struct {
				RefreshToken string `json:"refresh_token"`
			}
			a.Decode(t, &pair)
			pairs[pair.RefreshToken] = true
		}
		if len(pairs) != 1 {
			t.Errorf("one refresh token became %d", len(pairs))
		}
	}
	checkTrail(t, admin)
}
