package notifications_test

import (
	"context"
	"strings"
	"testing"

	"kontor/locales"
	"kontor/modules/reach/deliveries"
	"kontor/modules/reach/notifications"
	"kontor/store"
	"kontor/store/storetest"
)

func newService(t *testing.T) (*notifications.Service, *store.DB) {
	t.Helper()
	texts, err := locales.Load()
	if err != nil {
		t.Fatal(err)
	}
	db := storetest.OpenWith(t, storetest.NewClock())
	return notifications.New(db, texts, deliveries.New(db, deliveries.Options{}), notifications.Options{}), db
}

func TestPrepareOTP_WritesToTheLocalOutbox(t *testing.T) {
	s, db := newService(t)
	userID := store.NewID()
	send := s.PrepareOTP(notifications.OTPMessage{UserID: userID, Channel: "email", Recipient: "Anna@bank.example", Language: "de",
		Purpose: "validation", Code: "012345", Minutes: 10})
	if err := db.InTx(t.Context(), func(tx *store.Tx) error { return send(t.Context(), tx) }); err != nil {
		t.Fatal(err)
	}
	var channel, recipient, subject, text, status, recipientKey, id, sealed string
	var secret bool
	var sentAt *store.Time
	err := db.QueryRow(t.Context(), `SELECT channel, recipient, recipient_key, subject, text || html, status, secret, sent_at, id, sealed FROM deliveries WHERE user_id = $1`, userID).
		Scan(&channel, &recipient, &recipientKey, &subject, &text, &status, &secret, &sentAt, &id, &sealed)
	if err != nil {
		t.Fatal(err)
	}
	if text != "" || strings.Contains(sealed, "012345") {
		t.Errorf("the code is in plain text: %s %s", text, sealed)
	}
	plain, err := db.Unseal("deliveries", "sealed", id, sealed)
	if err != nil {
		t.Fatal(err)
	}
	text = string(plain)
	if channel != "email" || recipient != "Anna@bank.example" || recipientKey != "anna@bank.example" || subject != "Ihr Code für Kontor" ||
		!strings.Contains(text, "012345") || !strings.Contains(text, "10 Min.") || status != "sent" || !secret || sentAt == nil {
		t.Errorf("got %s to %s: %s / %s, %s, secret %t, at %v", channel, recipient, subject, text, status, secret, sentAt)
	}
}

func TestPrepareOTP_IsRolledBackWithItsTransaction(t *testing.T) {
	s, db := newService(t)
	send := s.PrepareOTP(notifications.OTPMessage{Channel: "sms", Recipient: "+41446681800", Language: "en", Purpose: "recovery"})
	failed := context.Canceled
	if err := db.InTx(t.Context(), func(tx *store.Tx) error {
		if err := send(t.Context(), tx); err != nil {
			return err
		}
		return failed
	}); err == nil {
		t.Fatal("the transaction did not fail")
	}
	var n int
	if err := db.QueryRow(t.Context(), `SELECT count(*) FROM deliveries`).Scan(&n); err != nil || n != 0 {
		t.Errorf("got %d deliveries, %v", n, err)
	}
}

func TestPrepareOTP_HasTextsInAllLanguages(t *testing.T) {
	texts, err := locales.Load()
	if err != nil {
		t.Fatal(err)
	}
	args := map[string]any{"Bank": "Kontor", "Code": "012345", "Minutes": 10, "Link": "https://kontor.mybank.example/register#confirm=%2B41791234567"}
	for _, lang := range locales.Languages() {
		for _, key := range []string{"email.validation.subject", "email.recovery.subject", "email.registration.subject",
			"email.validation.text", "email.recovery.text", "email.registration.text", "email.registration.html",
			"sms.validation.text", "sms.recovery.text", "sms.registration.text"} {
			text, ok := texts.Lookup(lang, "notification.credential_otp."+key, args)
			if !ok || strings.HasSuffix(key, "subject") == strings.Contains(text, "012345") {
				t.Errorf("%s %s: %q", lang, key, text)
			}
			if strings.Contains(key, "registration") && !strings.HasSuffix(key, "subject") && !strings.Contains(text, args["Link"].(string)) {
				t.Errorf("%s %s has no link: %q", lang, key, text)
			}
			if strings.HasPrefix(key, "sms") && len([]rune(text)) > 160 {
				t.Errorf("%s %s: %d characters need a second SMS", lang, key, len([]rune(text)))
			}
		}
	}
}
