package directory_test

import (
	"context"
	"testing"

	"kontor/store"
)

const fullwidth = "ａnna.1@bank.example" // starts with a fullwidth letter, unlike email(1)

func TestRegister_LookAlikesCollide(t *testing.T) {
	h := newHarness(t)
	h.customer(email(1))
	for _, address := range []string{fullwidth, "аnna.1@bank.example", "anna.1@ｂank.example", "anna.1@bаnk.example", "ANNA.1@BANK.EXAMPLE", "anո\u0061.1@bank.example"} {
		h.call("key", "POST", registerPath, registration("email", address)).want(t, 409, "users.credential_exists")
	}
	// A recovery with a look-alike sends the code to the stored address, not to the given one.
	h.clock.Advance(otpLife)
	h.recover("аnna.1@bank.example").want(t, 200, "")
	if h.outbox.count("аnna.1@bank.example") != 0 || h.outbox.last(email(1)).Purpose != "recovery" {
		t.Error("the code was sent to the given address, or not at all")
	}
}

func TestRegister_StoresTheNormalForm(t *testing.T) {
	h := newHarness(t)
	r := h.call("key", "POST", registerPath, registration("email", fullwidth)).want(t, 201, "")
	if got := r.member("credential").text("value"); got != email(1) || h.outbox.count(email(1)) != 1 {
		t.Errorf("stored %q", got)
	}
}

// Start derives keys of former rules again. A credential whose new key collides keeps its old key, is reported, and still works.
func TestStart_DerivesKeysAgainAndReportsCollisions(t *testing.T) {
	h := newHarness(t)
	older, younger, alone := h.customer(email(1)), h.customer(email(2)), h.customer(email(3))
	for id, value := range map[string]string{younger.credential: fullwidth, alone.credential: "bеat@bank.example"} {
		h.exec(func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Exec(ctx, `UPDATE credentials SET value = $2, value_key = $2 WHERE id = $1`, id, value)
			return err
		})
	}
	for range 2 { // the second start changes nothing
		if err := h.service.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for login, want := range map[string]string{
		email(1): older.id, fullwidth: younger.id, "bеat@bank.example": alone.id, "beat@bank.example": alone.id,
	} {
		if user, err := h.service.Find(t.Context(), h.db, login); err != nil || user.ID != want {
			t.Errorf("%s belongs to %s, %v; want %s", login, user.ID, err, want)
		}
	}
	if n := h.audited("credentials.look_alike", younger.credential); n != 1 {
		t.Errorf("the collision is reported %d times", n)
	}
	h.recover(fullwidth).want(t, 200, "")
	if h.outbox.count(fullwidth) != 1 {
		t.Error("the code was not sent to the address of the user")
	}
}
