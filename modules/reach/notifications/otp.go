package notifications

import (
	"context"

	"kontor/modules/kit/event"
	"kontor/store"
)

// OTPMessage is a message with a one-time code.
type OTPMessage struct {
	UserID    string
	Channel   string // Email or SMS
	Recipient string
	Language  string
	Purpose   string // validation, registration, recovery, invitation, or taken (for a message without a code)
	Code      string // of an invitation: the token of its link
	Minutes   int    // for which the code is valid
	Path      string // of the console's screen for the code; empty for none
}

const (
	invitation    = "invitation" // the purpose of a message with a link instead of a code
	minutesPerDay = 24 * 60
)

// PrepareOTP renders a message and returns the function that writes it to the outbox.
func (s *Service) PrepareOTP(m OTPMessage) func(ctx context.Context, tx *store.Tx) error {
	key := "notification." + string(event.CredentialOTP) + "." + m.Channel + "." + m.Purpose + "."
	args := map[string]any{"Code": m.Code, "Minutes": m.Minutes, "Link": s.options.BaseURL + m.Path}
	if m.Purpose == invitation {
		// The token is in the fragment, which browsers do not send: it is in no log.
		args = map[string]any{"Link": s.options.BaseURL + "/invitation#" + m.Code, "Days": max(1, m.Minutes/minutesPerDay)}
	}
	d := Delivery{
		ID: store.NewID(), UserID: m.UserID, Channel: m.Channel, Recipient: m.Recipient, Secret: true,
		Text: s.texts.Text(m.Language, key+"text", args),
	}
	if m.Channel == Email {
		d.Subject = s.texts.Text(m.Language, key+"subject", args)
		d.HTML = s.texts.Text(m.Language, key+"html", args)
	}
	var err error
	if s.seals() {
		err = s.seal(&d)
	}
	return func(ctx context.Context, tx *store.Tx) error {
		if err != nil {
			return err
		}
		return s.enqueue(ctx, tx, []Delivery{d})
	}
}
