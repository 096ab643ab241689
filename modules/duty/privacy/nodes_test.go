package privacy_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"kontor/modules/kit/personal"
	"kontor/server/servertest"
	"kontor/store"
	"kontor/store/testenv"
)

// leaderAndOther starts two nodes on one database, and returns the one that leads first.
func leaderAndOther(t *testing.T) (leader, other *servertest.Server) {
	t.Helper()
	first := servertest.StartShared(t)
	second := servertest.Node(t, first)
	testenv.Wait(t, "a leader", func() bool {
		if second.DB.Leads() {
			first, second = second, first
		}
		return first.DB.Leads()
	})
	return first, second
}

// An erasure is carried out once, by the leader, whichever node was asked.
func TestNodes_TheLeaderErases(t *testing.T) {
	leader, other := leaderAndOther(t)
	for i, node := range []*servertest.Server{other, leader} {
		admin := node.Admin()
		customer := newCustomer(admin, fmt.Sprintf("ada%d@example.ch", i))
		if e := erase(t, admin, "/v1/customers/"+customer); e["status"] != "erased" {
			t.Errorf("got %v", e)
		}
		for _, reader := range []*servertest.Server{leader, other} {
			if got := reader.Admin().Do("GET", "/v1/customers/"+customer, nil).Expect(t, 200); !strings.Contains(got.Body, `"erased_at":"`) || strings.Contains(got.Body, "@example.ch") {
				t.Errorf("got %s", got.Body)
			}
		}
		for action, want := range map[string]int{"privacy.erasure_begun": i + 1, "privacy.erasure_cleaning": i + 1, "privacy.erasure_erased": i + 1} {
			var n int
			if err := leader.DB.QueryRow(t.Context(), `SELECT COUNT(*) FROM audit_trail WHERE action = $1`, action).Scan(&n); err != nil || n != want {
				t.Errorf("%s: %d entries, %v, want %d", action, n, err, want)
			}
		}
	}
}

// The ledger of a shared database is a file that the operator keeps. Applied to a database that lacks an erasure, because an older
// backup was restored, it erases the data again.
func TestLedger_RepeatsErasuresThatADatabaseLacks(t *testing.T) {
	ctx := t.Context()
	s := servertest.StartShared(t)
	admin := s.Admin()
	erased, present := newCustomer(admin, "erased@example.ch"), newCustomer(admin, "present@example.ch")
	erase(t, admin, "/v1/customers/"+erased)
	ledger, entries, err := s.Privacy.Ledger(ctx)
	if err != nil || entries != 1 || !bytes.Contains(ledger, []byte(erased)) {
		t.Fatalf("got %q, %d, %v", ledger, entries, err)
	}
	for range 2 {
		if entries, repeated, err := s.Privacy.Apply(ctx, ledger); entries != 1 || repeated != 0 || err != nil {
			t.Errorf("an own ledger: %d, %d, %v", entries, repeated, err)
		}
	}
	entry := func(customer string) store.Erasure {
		return store.Erasure{ID: store.NewID(), Kind: string(personal.Customer), Subject: customer, Reason: "request", By: admin.UserID, At: s.DB.Now()}
	}
	later := s.DB.EncodeErasures([]store.Erasure{entry(erased), entry(present), entry(store.NewID())})
	for name, changed := range map[string][]byte{
		"another reason": bytes.Replace(later, []byte(`"request"`), []byte(`"error"`), 1),
		"a missing line": later[bytes.IndexByte(later, '\n')+1:],
		"another key":    bytes.ReplaceAll(later, []byte(`"mac":"`), []byte(`"mac":"00`)),
		"no ledger":      []byte("hello\n"),
	} {
		if _, _, err := s.Privacy.Apply(ctx, changed); !errors.Is(err, store.ErrLedger) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := admin.Do("GET", "/v1/customers/"+present, nil).Expect(t, 200); strings.Contains(got.Body, `"erased_at":"`) {
		t.Fatalf("a ledger that was changed erased a customer: %s", got.Body)
	}
	if entries, repeated, err := s.Privacy.Apply(ctx, later); entries != 3 || repeated != 1 || err != nil {
		t.Errorf("got %d, %d, %v", entries, repeated, err)
	}
	if got := admin.Do("GET", "/v1/customers/"+present, nil).Expect(t, 200); !strings.Contains(got.Body, `"erased_at":"`) || strings.Contains(got.Body, "present@") {
		t.Errorf("got %s", got.Body)
	}
}
