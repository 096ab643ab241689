package app_test

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
)

const (
	racers     = 64
	raceRounds = 2
)

// TestRace_SixtyFourClients runs 64 clients that create, read, share and unshare records, sign out and sign in concurrently.
// It then compares totals. Run it with the race detector, too.
func TestRace_SixtyFourClients(t *testing.T) {
	s := servertest.Start(t)
	admin := s.Admin()
	clients := make([]*servertest.Client, racers)
	for i := range clients {
		clients[i] = s.User(access.Customer)
	}
	var created, granted, revoked atomic.Int64
	var wait sync.WaitGroup
	for i, owner := range clients {
		r := &racer{T: t, s: s, admin: admin, owner: owner, other: clients[(i+1)%racers], name: fmt.Sprintf("user%d@example.ch", i+1)}
		wait.Go(func() {
			for round := range raceRounds {
				customer := r.create(round)
				created.Add(1)
				grant := r.share(customer)
				granted.Add(1)
				r.unshare(customer, grant)
				revoked.Add(1)
				r.signOutAndIn()
			}
		})
	}
	wait.Wait()
	if t.Failed() {
		return
	}
	const want = racers * raceRounds
	if created.Load() != want || granted.Load() != want || revoked.Load() != want {
		t.Errorf("%d created, %d granted, %d revoked, want %d of each", created.Load(), granted.Load(), revoked.Load(), want)
	}
	for path, n := range map[string]int{
		"/v1/customers?limit=-1":                                                               want,
		"/v1/audit?limit=-1&search.action=customers.create":                                    want,
		"/v1/audit?limit=-1&search.action=rbac.grants.create":                                  want,
		"/v1/audit?limit=-1&search.action=rbac.grants.delete":                                  want,
		"/v1/rbac/grants?limit=-1&search.rec_type=customers&search.created_by=" + admin.UserID: 0,
	} {
		if got := total(t, admin, path); got != n {
			t.Errorf("%s: total is %d, want %d", path, got, n)
		}
	}
	for _, c := range clients {
		if got := total(t, s.SignIn(login(c, clients), racePassword), "/v1/customers"); got != raceRounds {
			t.Errorf("a client sees %d customers, but created %d", got, raceRounds)
		}
	}
	if _, err := s.DB.VerifyAudit(t.Context()); err != nil {
		t.Errorf("the audit trail: %v", err)
	}
}

// racePassword is the password of all users that servertest creates.
const racePassword = "a long enough password 42"

// login returns the e-mail address that a client signs in with.
func login(c *servertest.Client, all []*servertest.Client) string {
	for i := range all {
		if all[i] == c {
			return fmt.Sprintf("user%d@example.ch", i+1)
		}
	}
	return ""
}

func total(t *testing.T, c *servertest.Client, path string) int {
	t.Helper()
	var page struct{ Total int }
	c.Do("GET", path, nil).Expect(t, http.StatusOK).Into(t, &page)
	return page.Total
}

// racer is one client, another one, and the administrator who shares records between them.
type racer struct {
	*testing.T
	s                   *servertest.Server
	admin, owner, other *servertest.Client
	name                string
}

// want reports an error for another status. Goroutines of the test must not call Fatal.
func (r *racer) want(what string, answer servertest.Response, status int) {
	if answer.Status != status {
		r.Errorf("%s: got %d %s, want %d", what, answer.Status, answer.Body, status)
	}
}

// create creates a customer, reads it, and checks that totals include it at once.
func (r *racer) create(round int) (id string) {
	var customer struct{ ID string }
	answer := r.owner.Do("POST", "/v1/customers", customerBody("Anna"))
	r.want("create", answer, 201)
	answer.Into(r, &customer)
	r.want("read the new record", r.owner.Do("GET", "/v1/customers/"+customer.ID, nil), 200)
	var page struct{ Total int }
	r.owner.Do("GET", "/v1/customers", nil).Into(r, &page)
	if own := round + 1; page.Total != own && page.Total != own+1 { // one more while another client shares a record with this one
		r.Errorf("after customer %d the list has %d", own, page.Total)
	}
	r.want("read without a grant", r.other.Do("GET", "/v1/customers/"+customer.ID, nil), 403)
	return customer.ID
}

// share grants the other client read access to the customer.
func (r *racer) share(customerID string) (grantID string) {
	var grant struct{ ID string }
	answer := r.admin.Do("POST", "/v1/rbac/grants", map[string]any{"user_id": r.other.UserID, "rec_type": "customers",
		"rec_id": customerID, "permissions": []string{"read"}})
	r.want("grant", answer, 201)
	answer.Into(r, &grant)
	return grant.ID
}

// unshare revokes the grant while the other client reads: once the revocation is answered, every read must be rejected.
func (r *racer) unshare(customerID, grantID string) {
	var revoked atomic.Bool
	stop := make(chan struct{})
	var reader sync.WaitGroup
	reader.Go(func() {
		for {
			after := revoked.Load()
			answer := r.owner.With("Authorization", "Bearer "+r.other.Token).Do("GET", "/v1/customers/"+customerID, nil)
			switch {
			case answer.Status == 401: // the other client is signing out and in
			case after && answer.Status != 403:
				r.Errorf("read after the revocation: %d", answer.Status)
			case !after && answer.Status != 200 && answer.Status != 403:
				r.Errorf("read during the revocation: %d %s", answer.Status, answer.Body)
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	})
	r.want("revoke", r.admin.Do("DELETE", "/v1/rbac/grants/"+grantID, nil), 200)
	revoked.Store(true)
	r.want("read after the revocation", r.s.Anonymous().With("Authorization", "Bearer "+r.other.Token).Do("GET", "/v1/customers/"+customerID, nil), 403)
	close(stop)
	reader.Wait()
}

// signOutAndIn opens a session and ends it: its token is rejected at once, while the user's other sessions remain valid.
func (r *racer) signOutAndIn() {
	second := r.signIn()
	if second == nil {
		return
	}
	r.want("sign out", second.Do("POST", "/v1/logout", nil), 200)
	r.want("use a token after signing out", second.Do("GET", "/v1/users/me", nil), 401)
	r.want("use the other session", r.owner.Do("GET", "/v1/users/me", nil), 200)
}

// signIn signs in. It repeats attempts that are rejected because the server is busy.
func (r *racer) signIn() *servertest.Client {
	for {
		answer := r.s.Anonymous().Do("POST", "/authenticate", map[string]any{"user_id": r.name, "password": racePassword})
		var tokens struct {
			AccessToken string `json:"access_token"`
		}
		switch answer.Status {
		case 200:
			answer.Into(r, &tokens)
			return r.s.Anonymous().With("Authorization", "Bearer "+tokens.AccessToken)
		case 503: // the queue for hashing is full
		default:
			r.Errorf("sign in: %d %s", answer.Status, answer.Body)
			return nil
		}
	}
}
