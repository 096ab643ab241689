// Package event defines the events that modules report to users. The module notifications turns an event into
// notifications, deliveries and stream frames. A module that reports events declares an interface with the method of
// notifications that it calls.
package event

import (
	"time"

	"kontor/server/access"
)

// Kind is the kind of an event. The names of templates in the locale files contain it.
type Kind string

// The kinds of events.
const (
	MessageReceived       Kind = "message_received"
	CustomerCreated       Kind = "customer_created" // of earlier versions and test notifications: creators know of their customers
	CustomerStatusChanged Kind = "customer_status_changed"
	KYCDocumentExpiring   Kind = "kyc_document_expiring"
	CustomerNotice        Kind = "customer_notice" // a message that staff wrote
	KYCDecisionPending    Kind = "kyc_decision_pending"
	KYCDecisionClosed     Kind = "kyc_decision_closed"
	ScreeningEscalated    Kind = "screening_escalated"
	KYCCaseEscalated      Kind = "kyc_case_escalated" // to administrators: no reviewer may work on it
	TaskAssigned          Kind = "task_assigned"
	TaskStatusChanged     Kind = "task_status_changed"
	TaskDue               Kind = "task_due"
	CredentialOTP         Kind = "credential_otp"
	PasswordChanged       Kind = "password_changed"
	NewDeviceLogin        Kind = "new_device_login"
	CredentialAdded       Kind = "credential_added"
	CredentialRemoved     Kind = "credential_removed"
	FactorChanged         Kind = "factor_changed"
	ServiceTokenExpiring  Kind = "service_token_expiring"
	AccessExpiring        Kind = "access_expiring" // a grant or a role ends
	WebhookPaused         Kind = "webhook_paused"
	WebhookDisabled       Kind = "webhook_disabled"
)

// Event is one event with its recipients.
type Event struct {
	Kind       Kind
	CustomerID string            // empty when the event is not about a customer
	Type       access.RecordType // of the record that the event refers to
	RecordID   string
	Recipients []string       // user ids; duplicates are notified once
	Args       map[string]any // template arguments: texts and numbers, never secrets
	Undo       string         // path of the link that undoes the event; it is secret, and sent to trusted addresses only
	Content    string         // text written by a person, shown verbatim; empty means the templates

	// ChatMessage is the chat message that the event is about; nil for none. The recipients must be allowed to read it.
	ChatMessage *ChatMessage

	// Rendered holds messages that were rendered before the transaction. If nil, Notify renders them in the transaction.
	Rendered any
}

// ChatMessage is a message of a chat as stream frames carry it.
type ChatMessage struct {
	ID        string
	ChatID    string
	Text      string // written by a user; empty for a system message
	TextKey   string // of a system message: the key of its text in the locale files
	CreatedBy string
	CreatedAt time.Time
}

// ReadableMessage is a chat message with the users who may read it.
type ReadableMessage struct {
	ChatMessage
	Readers map[string]bool // ids
}

// OTPMessage is the message that carries a one-time code.
type OTPMessage struct {
	UserID    string
	Channel   string // email or sms
	Recipient string
	Language  string
	Purpose   string // validation, registration, recovery, invitation, or taken for a message without a code
	Code      string // of an invitation: the token of its link
	Minutes   int    // validity of the code
	Path      string // of the console's screen for the code; empty for none
}
