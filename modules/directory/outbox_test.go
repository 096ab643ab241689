package directory_test

import (
	"context"
	"sync"

	"kontor/modules/directory"
	"kontor/store"
)

// outbox keeps what was sent.
type outbox struct {
	mu   sync.Mutex
	sent []directory.OTPMessage
	told []string // changes of credentials
}

func (o *outbox) PasswordChanged(context.Context, *store.Tx, string) error { return nil }

func (o *outbox) CredentialAdded(_ context.Context, tx *store.Tx, userID, value string) error {
	return o.tell(tx, "added "+value+" "+userID)
}

func (o *outbox) CredentialRemoved(_ context.Context, tx *store.Tx, userID, value string) error {
	return o.tell(tx, "removed "+value+" "+userID)
}

// tell records that a user was notified of a change.
func (o *outbox) tell(tx *store.Tx, what string) error {
	tx.AfterCommit(func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.told = append(o.told, what)
	})
	return nil
}

func (o *outbox) PrepareOTP(m directory.OTPMessage) func(context.Context, *store.Tx) error {
	return func(_ context.Context, tx *store.Tx) error {
		tx.AfterCommit(func() {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.sent = append(o.sent, m)
		})
		return nil
	}
}

// count tells how many messages went to a recipient.
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

// last is the latest message to a recipient.
func (o *outbox) last(recipient string) directory.OTPMessage {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := len(o.sent) - 1; i >= 0; i-- {
		if o.sent[i].Recipient == recipient {
			return o.sent[i]
		}
	}
	return directory.OTPMessage{}
}

// wrong is a code that is not the right one.
func wrong(code string) string {
	if code == "000000" {
		return "000001"
	}
	return "000000"
}
