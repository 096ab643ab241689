package deliveries_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"kontor/modules/kit/list"
	"kontor/modules/reach/deliveries"
	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/store"
	"kontor/store/storetest"
)

// plainSecrets returns how many secret texts are readable in the table.
func plainSecrets(t *testing.T, db *store.DB) (n int) {
	t.Helper()
	if err := db.QueryRow(t.Context(), `SELECT COUNT(*) FROM deliveries WHERE secret = TRUE AND (text <> '' OR html <> '')`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// Texts of earlier versions are sealed at the start, whatever their state, and reach the gateway and those who may read them.
func TestSealTexts_SealsTextsOfEarlierVersions(t *testing.T) {
	var got atomic.Value
	g := &fakeGateway{answer: func(d deliveries.Delivery) error { got.Store(d.Text + "|" + d.HTML); return nil }}
	h := newQueueTest(t, deliveries.Options{})
	_ = h.Close(t.Context())
	const rows = 120 // more than one transaction seals
	waiting := store.NewID()
	err := h.db.InTx(t.Context(), func(tx *store.Tx) error {
		for i := range rows {
			id, status, channel := store.NewID(), []string{"sent", "dead", "retrying"}[i%3], "sms"
			if i == 2 {
				id, channel = waiting, "email"
			}
			_, err := tx.Exec(t.Context(), `INSERT INTO deliveries (id, user_id, channel, recipient, recipient_key, text, html, secret, status, next_attempt_at, created_at)
				VALUES ($1, $2, $3, 'a', 'a', 'code 738051', '<b>738051</b>', TRUE, $4, $5, $5)`, id, store.NewID(), channel, status, tx.Now())
			if err != nil {
				return err
			}
		}
		_, err := tx.Exec(t.Context(), `INSERT INTO deliveries (id, user_id, channel, recipient, recipient_key, text, status, created_at)
			VALUES ($1, $1, 'sms', 'a', 'a', 'no secret', 'dead', $2)`, store.NewID(), tx.Now())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := plainSecrets(t, h.db); n != rows {
		t.Fatalf("%d secrets are in plain text before the start", n)
	}
	h.restart(deliveries.Options{Email: g})
	h.until(waiting, "sent")
	if n := plainSecrets(t, h.db); n != 0 {
		t.Errorf("%d secrets are in plain text", n)
	}
	if got.Load() != "code 738051|<b>738051</b>" {
		t.Errorf("the gateway got %v", got.Load())
	}
	if s := h.state(waiting); s.text != "" {
		t.Error("the sealed text was kept after it was sent")
	}
	var left int
	if err := h.db.QueryRow(t.Context(), `SELECT COUNT(*) FROM deliveries WHERE text = 'no secret' AND sealed = ''`).Scan(&left); err != nil || left != 1 {
		t.Errorf("a text that is no secret was changed: %d, %v", left, err)
	}
}

// A rotation of the master key seals waiting texts again, and they can still be sent.
func TestSealedTexts_SurviveARotation(t *testing.T) {
	if storetest.SQLiteOnly(t, "the tests of the store rotate the keys of both engines") {
		return
	}
	down := atomic.Bool{}
	down.Store(true)
	var got atomic.Value
	g := &fakeGateway{answer: func(d deliveries.Delivery) error {
		if down.Load() {
			return errors.New("down")
		}
		got.Store(d.Text)
		return nil
	}}
	h := newQueueTest(t, deliveries.Options{Email: g, MaxAttempts: 100})
	id := h.enqueue("email", "secret 738051")
	before := h.until(id, "retrying").text
	if _, err := h.db.RotateMasterKey(t.Context(), store.Rotation{}); err != nil {
		t.Fatal(err)
	}
	if after := h.state(id).text; after == "" || after == before {
		t.Errorf("the text was not sealed again: %s, %s", before, after)
	}
	down.Store(false)
	h.untilItEnds(id)
	if got.Load() != "secret 738051" {
		t.Errorf("the gateway got %v", got.Load())
	}
}

// A sealed text belongs to its row: in another one it is not sent.
func TestSealedTexts_AreBoundToTheirRow(t *testing.T) {
	down := atomic.Bool{}
	down.Store(true)
	var sent atomic.Int32
	g := &fakeGateway{answer: func(d deliveries.Delivery) error {
		if down.Load() {
			return errors.New("down")
		}
		if strings.Contains(d.Text, "111111") {
			sent.Add(1)
		}
		return nil
	}}
	h := newQueueTest(t, deliveries.Options{Email: g, MaxAttempts: 3})
	victim, attacker := h.enqueue("email", "secret 111111"), h.enqueue("email", "secret 222222")
	h.until(victim, "retrying")
	h.until(attacker, "retrying")
	err := h.db.InTx(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec(t.Context(), `UPDATE deliveries SET sealed = (SELECT v.sealed FROM deliveries v WHERE v.id = $1) WHERE id = $2`, victim, attacker)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	down.Store(false)
	h.untilItEnds(attacker)
	h.untilItEnds(victim)
	if s := h.state(attacker); s.status != "dead" || sent.Load() != 1 {
		t.Errorf("the row with the text of another is %+v; the text was sent %d times", s, sent.Load())
	}
}

// The local outbox shows a sealed text to administrators with a recent authentication, and to no other caller.
func TestSealedTexts_InTheLocalOutbox(t *testing.T) {
	h := newQueueTest(t, deliveries.Options{})
	h.enqueue("email", "secret 738051")
	if n := plainSecrets(t, h.db); n != 0 {
		t.Fatalf("%d secrets are in plain text", n)
	}
	for name, c := range map[string]struct {
		caller access.Caller
		want   string
		masked bool
	}{
		"an administrator":                          {access.Caller{UserID: store.NewID(), Roles: []string{access.Administrator}, SignedIn: access.Authentication{At: h.clock.Now()}}, "secret 738051", false},
		"an administrator who signed in long ago":   {access.Caller{UserID: store.NewID(), Roles: []string{access.Administrator}}, "********", true},
		"staff that may not act for the recipients": {access.Caller{UserID: store.NewID(), Roles: []string{access.Advisor}, SignedIn: access.Authentication{At: h.clock.Now()}}, "********", true},
	} {
		policy := access.NewPolicy(access.PolicyData{Types: map[string]map[string]access.Permission{c.caller.Roles[0]: {access.Deliveries.Name: access.Read | access.ReadAll}}})
		caller := c.caller.WithPolicy(policy)
		ctx := endpoint.With(access.With(t.Context(), caller), &endpoint.Info{Caller: caller, Now: h.clock.Now()})
		page, err := h.List(ctx, list.Input{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if d := page.Data.Rows[0]; d.Text != c.want || d.Masked != c.masked {
			t.Errorf("%s reads %q, masked %t", name, d.Text, d.Masked)
		}
	}
}
