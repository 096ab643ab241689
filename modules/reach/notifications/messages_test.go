package notifications_test

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"kontor/locales"
	"kontor/modules/kit/event"
	"kontor/modules/reach/deliveries"
	"kontor/modules/reach/notifications"
	"kontor/store"
	"kontor/store/storetest"
)

// values are arguments for the templates of each event.
var values = map[event.Kind]map[string]any{
	event.MessageReceived:       {},
	event.CustomerCreated:       {"Name": "Vreni Muster"},
	event.TaskDue:               {"Title": "Sign <the> contract", "Date": "2026-02-28"},
	event.CustomerNotice:        {"Text": "Please <call> us."},
	event.CustomerStatusChanged: {"Name": "Vreni Muster", "From": "pending", "To": "in_review", "Outcome": "is in review"},
	event.AccessExpiring:        {"Access": "customers: read", "Date": "2026-03-06 08:00 UTC"},
	event.ServiceTokenExpiring:  {"Name": "Production", "Account": "Back office", "Date": "2026-02-28"},
	event.WebhookPaused:         {"Host": "hooks.example", "Days": 5},
	event.WebhookDisabled:       {"Host": "hooks.example", "Days": 5},
	event.KYCDocumentExpiring:   {"Name": "Vreni Muster", "Document": "passport", "Date": "2026-02-28"},
	event.KYCDecisionPending:    {"Name": "Vreni Muster"},
	event.ScreeningEscalated:    {},
	event.KYCDecisionClosed:     {"Name": "Vreni Muster", "Status": "decision_confirmed"},
	event.KYCCaseEscalated:      {"Reason": "escalated_no_reviewer"},
	event.TaskAssigned:          {"Title": "Sign the form"},
	event.TaskStatusChanged:     {"Title": "Sign the form", "From": "pending", "To": "completed"},
	event.PasswordChanged:       {},
	event.NewDeviceLogin:        {"Time": "2026-01-31T08:15:30Z"},
	event.CredentialAdded:       {"Value": "a…@a-bank.example.ch"},
	event.CredentialRemoved:     {"Value": "a…@a-bank.example.ch"},
	event.FactorChanged:         {"Change": "passkey_added"},
}

// parts are the parts of a template by channel.
var parts = map[string][]string{
	"":               {"title", "content", "push.title", "push.content", "push.link_text"},
	deliveries.Email: {"email.subject", "email.text", "email.html"},
	deliveries.SMS:   {"sms.text"},
}

// undoParts are the parts of the messages with a link that undoes the event.
var undoParts = map[string][]string{deliveries.Email: {"undo.email.text", "undo.email.html"}, deliveries.SMS: {"undo.sms.text"}}

var undoable = []event.Kind{event.CredentialAdded, event.CredentialRemoved, event.FactorChanged}

func TestTemplates_AreCompleteForEveryEventChannelAndLanguage(t *testing.T) {
	texts, err := locales.Load()
	if err != nil {
		t.Fatal(err)
	}
	kinds := notifications.Channels()
	for kind := range kinds {
		if values[kind] == nil {
			t.Errorf("add sample arguments of %s to values in messages_test.go, {} for none", kind)
		}
	}
	for kind := range values {
		if _, declared := kinds[kind]; !declared {
			t.Errorf("values in messages_test.go has %s, which has no row in kinds.go", kind)
		}
	}
	for event, channels := range kinds {
		args := map[string]any{"Bank": "Kontor", "Link": "https://bank.example/", "Undo": "https://bank.example/undo#AAAAAAAAAAAAAAAAAAAAAA"}
		for name, value := range values[event] {
			args[name] = value
		}
		for _, channel := range append([]string{""}, channels...) {
			for _, lang := range locales.Languages() {
				all := parts[channel]
				if slices.Contains(undoable, event) {
					all = append(slices.Clone(all), undoParts[channel]...)
				}
				for _, part := range all {
					text, ok := texts.Lookup(lang, "notification."+string(event)+"."+part, args)
					if !ok || text == "" || strings.Contains(text, "<no value>") {
						t.Errorf("%s %s %s: got %q, %t", lang, event, part, text, ok)
					}
					if strings.HasSuffix(part, "sms.text") && len([]rune(text)) > 160 {
						t.Errorf("%s %s: an SMS of %d characters", lang, event, len([]rune(text)))
					}
				}
			}
		}
	}
}

var unknownKey = regexp.MustCompile(`^notification\.(\w+)\.`)

func TestTemplates_BelongToKnownEvents(t *testing.T) {
	data, err := locales.Files().Open("en/notifications.json")
	if err != nil {
		t.Fatal(err)
	}
	defer data.Close()
	var texts map[string]string
	if err := json.UnmarshalRead(data, &texts); err != nil {
		t.Fatal(err)
	}
	kinds := notifications.Channels()
	for key := range texts {
		found := unknownKey.FindStringSubmatch(key)
		if found == nil || found[1] == "term" || found[1] == string(event.CredentialOTP) {
			continue
		}
		channels, known := kinds[event.Kind(found[1])]
		channel, _, _ := strings.Cut(strings.TrimPrefix(key, found[0]), ".")
		if _, ofChannel := parts[channel]; !known || ofChannel && !slices.Contains(channels, channel) {
			t.Errorf("%s is unused", key)
		}
	}
}

func TestMessages_AreRenderedInTheLanguageOfTheRecipientWithTermsAndDates(t *testing.T) {
	for lang, want := range map[string][3]string{
		"en": {"A document of A & B <x> expires soon", "The passport of A & B <x> expires on 28 February 2026.", "The passport of A &amp; B &lt;x&gt; expires on 28 February 2026."},
		"de": {"Ein Dokument von A & B <x> läuft bald ab", "Der Pass von A & B <x> läuft am 28.02.2026 ab.", "Der Pass von A &amp; B &lt;x&gt; läuft am 28.02.2026 ab."},
	} {
		subject, text, html := notifications.RenderMail(lang, event.KYCDocumentExpiring, "https://bank.example",
			map[string]any{"Name": "A & B <x>", "Document": "passport", "Date": "2026-02-28"})
		if subject != want[0] || !strings.HasPrefix(text, want[1]) || !strings.Contains(html, want[2]) || !strings.Contains(text, "https://bank.example/customers/") {
			t.Errorf("%s: got %q, %q, %q", lang, subject, text, html)
		}
	}
}

func TestMessages_NameTheBank(t *testing.T) {
	args := map[string]any{"Link": "https://bank.example/invitation#a", "Days": 7}
	for _, lang := range locales.Languages() {
		for part, want := range map[string]string{"subject": "A & B <x>", "text": "A & B <x>", "html": "A &amp; B &lt;x&gt;"} {
			text := notifications.BankText(lang, "notification.credential_otp.email.invitation."+part, "A & B <x>", args)
			if !strings.Contains(text, want) || strings.Contains(text, "Kontor") {
				t.Errorf("%s %s: %q", lang, part, text)
			}
		}
	}
}

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
	send := s.PrepareOTP(event.OTPMessage{UserID: userID, Channel: "email", Recipient: "Anna@bank.example", Language: "de",
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
	send := s.PrepareOTP(event.OTPMessage{Channel: "sms", Recipient: "+41446681800", Language: "en", Purpose: "recovery"})
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
