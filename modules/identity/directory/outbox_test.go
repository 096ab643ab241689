package directory_test

import (
	"context"
	"sync"

	"kontor/modules/kit/event"
	"kontor/store"
)

// outbox records sent messages.
type outbox struct {
	mu      sync.Mutex
	sent    []event.OTPMessage
	changes []string // notified changes of credentials
}

func (o *outbox) PasswordChanged(context.Context, *store.Tx, string) error { return nil }

func (o *outbox) CredentialAdded(_ context.Context, tx *store.Tx, userID, value, _ string) error {
	return o.record(tx, "added "+value+" "+userID)
}

func (o *outbox) CredentialRemoved(_ context.Context, tx *store.Tx, userID, value, _ string) error {
	return o.record(tx, "removed "+value+" "+userID)
}

// record records the notification of a change.
func (o *outbox) record(tx *store.Tx, what string) error {
	tx.AfterCommit(func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.changes = append(o.changes, what)
	})
	return nil
}

func (o *outbox) PrepareOTP(m event.OTPMessage) func(context.Context, *store.Tx) error {
	return func(_ context.Context, tx *store.Tx) error {
		tx.AfterCommit(func() {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.sent = append(o.sent, m)
		})
		return nil
	}
}

// count returns the number of messages to a recipient.
func (o *outbox) count(recipient string) (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, m := range o.sent {
		if m.Recipient == recipient {
			n++
		}
	}
	return n
}

// last returns the latest message to a recipient, or the zero message.
func (o *outbox) last(recipient string) event.OTPMessage {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := len(o.sent) - 1; i >= 0; i-- {
		if o.sent[i].Recipient == recipient {
			return o.sent[i]
		}
	}
	return event.OTPMessage{}
}

// wrong returns a code other than the right one.
func wrong(code string) string {
	if code == "000000" {
		return "000001"
	}
	return "000000"
}
