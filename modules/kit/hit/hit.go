// Package hit declares the hits of screening as the API shows them: a record whose name is like that of an entry of a sanctions list.
// The module screening keeps them, and the module customers shows them to reviewers.
package hit

import (
	"context"

	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/store"
)

// Type is the type of hits in the audit trail and in events. There are no grants on it: reviewers may read hits.
var Type = access.RecordType{Name: "screening_hits"}

// Status is the state of a hit.
type Status string

// The states.
const (
	Open      Status = "open"
	Pending   Status = "pending" // a decision waits for a second person
	Dismissed Status = "dismissed"
	Confirmed Status = "confirmed"
	Closed    Status = "closed" // the entry is not listed any more, or has other names
)

// Values returns all states.
func (Status) Values() []string {
	return []string{string(Open), string(Pending), string(Dismissed), string(Confirmed), string(Closed)}
}

// The types of screened records.
const (
	Customer = "customer"
	Persona  = "persona"
	Payer    = "payer"
)

// Hit is a record whose name is like that of an entry of a list.
type Hit struct {
	ID          string      `json:"id"`
	Status      Status      `json:"status" doc:"open; pending: a decision waits for a second person; dismissed; confirmed; closed: the entry is not listed any more, or has other names."`
	Score       float64     `json:"score" minimum:"0" maximum:"1" example:"0.94" doc:"How alike the names are, less what contradicts."`
	List        string      `json:"list" example:"SECO"`
	EntryID     string      `json:"entry_id" doc:"Stays the same when the entry changes."`
	SourceID    string      `json:"source_id" format:"-" example:"12345" doc:"The id of the entry in its file."`
	EntryName   string      `json:"entry_name" example:"Sergey Viktorovich LAVROV" doc:"The name of the entry that is most alike."`
	SubjectType string      `json:"subject_type" enum:"customer,persona,payer"`
	SubjectID   string      `json:"subject_id"`
	SubjectName string      `json:"subject_name" doc:"As it was compared when the hit was opened."`
	CustomerID  *string     `json:"customer_id" doc:"The customer whose verification the hit can block: the subject itself, or the customer of a payer. null for a persona."`
	CreatedAt   store.Time  `json:"created_at"`
	UpdatedAt   store.Time  `json:"updated_at"`
	Decision    string      `json:"decision" enum:"dismissed,confirmed," doc:"The last decision, also while it waits for a second person; empty for none."`
	Reason      string      `json:"reason" doc:"Of the decision."`
	ProposedAt  *store.Time `json:"proposed_at" doc:"When a decision was proposed that needs, or needed, a second person."`
	ProposedBy  *string     `json:"proposed_by"`
	DecidedAt   *store.Time `json:"decided_at" doc:"When the decision took effect."`
	DecidedBy   *string     `json:"decided_by"`
	Cause       string      `json:"cause,omitzero" enum:"mixed_scripts,many_parts,single_letters" doc:"Why a person must look at a name that is like no entry; missing from all other hits. Such a hit has no list and no entry."`
	Escalation  string      `json:"escalation,omitzero" enum:"reviewers,everyone" doc:"Who may not decide because the hit is about them: all reviewers but administrators, or everyone. Missing from all other hits."`
	Version     int64       `json:"version"`
}

// The values of [Hit.Escalation].
const (
	AllReviewers = "reviewers" // administrators decide
	Everyone     = "everyone"
)

// ETag returns the version of the hit.
func (h Hit) ETag() string { return endpoint.VersionTag(h.Version) }

// EachUser names the reviewers who have proposed and decided.
func (h Hit) EachUser(add func(id string)) {
	for _, id := range []*string{h.ProposedBy, h.DecidedBy} {
		if id != nil {
			add(*id)
		}
	}
}

// Screening compares customers with sanctions lists. The module screening implements it.
type Screening interface {
	// Screen compares a customer with the lists and stores the hits. It returns the state of the identity that it has compared; empty if
	// no list is loaded. Call it before a transaction. It returns apierr.Unavailable while the lists are being read.
	Screen(ctx context.Context, customerID string) (state string, err error)
	// Blocking returns the ids of the hits of a customer and its payers that block a verification. It returns apierr.Unavailable if the
	// identity is not the compared one any more; an empty state stands for any.
	Blocking(ctx context.Context, tx *store.Tx, customerID, state string) ([]string, error)
	// OfCustomer returns the hits of a customer and its payers, the newest first. The caller decides who may see them.
	OfCustomer(ctx context.Context, q store.Querier, customerID string) ([]Hit, error)
	// CountBlocking returns how many hits block the verification of each of the customers; those without are missing. The caller decides
	// who may see the numbers.
	CountBlocking(ctx context.Context, q store.Querier, customerIDs []string) (map[string]int64, error)
}
