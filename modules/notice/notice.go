// Package notice is what a module says when something happened that people should hear of. The notifications module
// makes rows, mails and stream frames of it; a module that raises notices needs only this package and an interface of
// its own with the one method it calls.
package notice

import "kontor/server/access"

// Event is the kind of what happened. It names the templates in the locale files.
type Event string

// The events.
const (
	MessageReceived       Event = "message_received"
	CustomerCreated       Event = "customer_created"
	CustomerStatusChanged Event = "customer_status_changed"
	KYCDocumentExpiring   Event = "kyc_document_expiring"
	TaskAssigned          Event = "task_assigned"
	TaskStatusChanged     Event = "task_status_changed"
	CredentialOTP         Event = "credential_otp"
	PasswordChanged       Event = "password_changed"
	NewDeviceLogin        Event = "new_device_login"
	CredentialAdded       Event = "credential_added"
	CredentialRemoved     Event = "credential_removed"
)

// Notice is one thing that happened, for all who are to hear of it.
type Notice struct {
	Event      Event
	CustomerID string            // empty: it concerns no customer
	Type       access.RecordType // of the record it refers to
	RecordID   string
	Recipients []string       // user ids; one who stands twice hears it once
	Args       map[string]any // values of the templates: texts, numbers, no secrets
	Content    string         // text written by a person, shown as it is; empty: the templates speak

	// Worded are the messages that the notice sends, prepared before the transaction; nil: made in it.
	Worded any
}
