package privacy

import (
	"kontor/modules/kit/personal"
	"kontor/modules/kit/types"
	"kontor/server/endpoint"
	"kontor/store"
)

// Status is the state of an erasure.
type Status string

// The states.
const (
	Running  Status = "running"  // personal data are being overwritten
	Cleaning Status = "cleaning" // no answer contains them any more; the files of the database may
	Erased   Status = "erased"   // no file of the data directory contains them any more
)

// Values returns all states.
func (Status) Values() []string { return []string{string(Running), string(Cleaning), string(Erased)} }

// Erasure is the erasure of a person's data.
type Erasure struct {
	ID          string        `json:"id"`
	Kind        personal.Kind `json:"kind"`
	SubjectID   string        `json:"subject_id" doc:"The customer, user or persona."`
	Reason      string        `json:"reason" enum:"request,retention,order,error"`
	Status      Status        `json:"status" doc:"running: the data are being overwritten. cleaning: no answer contains them any more. erased: no file of the data directory does."`
	RequestedAt store.Time    `json:"requested_at"`
	RequestedBy string        `json:"requested_by"`
	ErasedAt    *store.Time   `json:"erased_at" doc:"When the files were clean; null until then."`
	Left        []Left        `json:"left" doc:"What stays, and why."`

	version int64
}

// ETag returns the version of the record.
func (e Erasure) ETag() string { return endpoint.VersionTag(e.version) }

// EachUser names the requester.
func (e Erasure) EachUser(add func(id string)) { add(e.RequestedBy) }

// Left is something that an erasure does not remove.
type Left struct {
	What string `json:"what" example:"audit_trail"`
	Why  string `json:"why" doc:"In the language of the request."`
}

// left lists what the erasure of a person of each kind does not remove. The texts have the keys "privacy.left.<name>".
var left = map[personal.Kind][]string{
	personal.Customer: {"audit_trail", "ids", "users_of_customer", "views_of_others", "backups"},
	personal.User:     {"audit_trail", "ids", "messages_of_others", "authorship", "customers_of_user", "views_of_others", "backups"},
	personal.Persona:  {"audit_trail", "ids", "views_of_others", "backups"},
}

// Relationship is the business relationship with a customer.
type Relationship struct {
	CustomerID     string      `json:"customer_id"`
	Customer       bool        `json:"customer" doc:"Whether the identity was verified at any time. Retention periods apply to such customers only."`
	EndedAt        *store.Time `json:"ended_at" doc:"null: it has not ended."`
	RetentionUntil types.Date  `json:"retention_until" doc:"The last day on which the data must be kept; null until the relationship has ended."`
	OnHold         bool        `json:"on_hold" doc:"Whether a legal hold prevents the erasure: on the customer, or on another one of the same person."`
	Erasable       bool        `json:"erasable" doc:"Whether the data may be erased today."`
	// ProposedEnd waits for a second person.
	ProposedEnd *ProposedEnd `json:"proposed_end,omitzero" doc:"An end far in the past, which counts when a second person sends the same; missing without one."`

	heldBy  string // the customer under the hold
	version int64
}

// ProposedEnd is an end of a relationship far in the past, as one person has stated it.
type ProposedEnd struct {
	EndedAt    store.Time  `json:"ended_at"`
	ProposedAt *store.Time `json:"proposed_at" nullable:"false"`
	ProposedBy string      `json:"proposed_by"`
}

// EachUser names the user who proposed an end.
func (r Relationship) EachUser(add func(id string)) {
	if r.ProposedEnd != nil {
		add(r.ProposedEnd.ProposedBy)
	}
}

// ETag returns the version of the record.
func (r Relationship) ETag() string { return endpoint.VersionTag(r.version) }

// LegalHold prevents the erasure of a customer.
type LegalHold struct {
	CustomerID string     `json:"customer_id"`
	Reason     string     `json:"reason" maxLength:"500"`
	Until      types.Date `json:"until" doc:"The last day of the hold; null: until it is removed."`
	CreatedAt  store.Time `json:"created_at"`
	CreatedBy  string     `json:"created_by"`

	version int64
}

// ETag returns the version of the record.
func (h LegalHold) ETag() string { return endpoint.VersionTag(h.version) }

// EachUser names the creator.
func (h LegalHold) EachUser(add func(id string)) { add(h.CreatedBy) }

// Due is a customer whose data may be erased: the retention period has ended, and there is no hold.
type Due struct {
	CustomerID string     `json:"customer_id"`
	EndedAt    store.Time `json:"ended_at" doc:"When the business relationship ended."`
}
