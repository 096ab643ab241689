package app_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/store"
)

// A message about a new credential goes to all addresses of the user, in their language, and masks the value.
func TestCredentials_NotifyAllAddressesOfTheUser(t *testing.T) {
	s := servertest.Start(t)
	s.SkipRecordCheck()
	u := s.User(access.Customer)
	ctx := context.Background()
	err := s.DB.InTx(ctx, func(tx *store.Tx) error {
		if _, err := tx.Exec(ctx, `UPDATE users SET language = 'fr' WHERE id = $1`, u.UserID); err != nil {
			return err
		}
		for kind, value := range map[string]string{"email": "second@example.ch", "phone": "+41446681800"} {
			if _, err := tx.Exec(ctx, `
				INSERT INTO credentials (id, user_id, type, value, value_key, validated, validated_at, created_at, created_by)
				VALUES ($1, $2, $3, $4, $4, TRUE, $5, $5, $2)`, store.NewID(), u.UserID, kind, value, tx.Now()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Admin().Do("POST", "/v1/users/"+u.UserID+"/credentials", map[string]any{"credential_type": "username", "credential_value": "intruder"}).Expect(t, http.StatusCreated)
	for _, to := range []string{"second@example.ch", "%2B41446681800"} {
		sent := s.Admin().Do("GET", "/v1/notifications/deliveries?search.to="+to, nil).Expect(t, http.StatusOK).Body
		sent, _, _ = strings.Cut(sent, `"people":`) // which shows the sign-in name to staff
		if !strings.Contains(sent, "i… ") || !strings.Contains(sent, "ajouté à votre compte") && !strings.Contains(sent, "appartient désormais") || strings.Contains(sent, "intruder") {
			t.Errorf("%s got %s", to, sent)
		}
	}
	var all struct{ Total int }
	s.Admin().Do("GET", "/v1/notifications/deliveries?search.user_id="+u.UserID, nil).Expect(t, http.StatusOK).Into(t, &all)
	if all.Total != 3 {
		t.Errorf("%d messages, want one for each of the three addresses", all.Total)
	}
	inbox := s.Admin().Do("GET", "/v1/notifications?search.user_id="+u.UserID, nil).Expect(t, http.StatusOK)
	if !strings.Contains(inbox.Body, `"event":"credential_added"`) {
		t.Errorf("the inbox has %s", inbox.Body)
	}
}
