package customers

import (
	"slices"

	"kontor/modules/kit/types"
	"kontor/store"
)

// Status is how far the verification of a customer's identity has come.
type Status string

// The states.
const (
	NotStarted     Status = "not_started"
	Pending        Status = "pending"
	InReview       Status = "in_review"
	Verified       Status = "verified"
	Rejected       Status = "rejected"
	ActionRequired Status = "action_required"
	Expired        Status = "expired"
)

// Values lists the states.
func (Status) Values() []string {
	return []string{string(NotStarted), string(Pending), string(InReview), string(Verified), string(Rejected), string(ActionRequired), string(Expired)}
}

// Level is how well a verified customer is known.
type Level string

// The levels.
const (
	LevelNone     Level = "none"
	LevelBasic    Level = "basic"    // one valid identity document
	LevelStandard Level = "standard" // and a proof of address
	LevelEnhanced Level = "enhanced" // by decision of a reviewer
)

// Values lists the levels.
func (Level) Values() []string {
	return []string{string(LevelNone), string(LevelBasic), string(LevelStandard), string(LevelEnhanced)}
}

// transitions are the changes of state that a reviewer can make. A change of a verified identity also leads from
// verified to in_review, by itself.
var transitions = map[Status][]Status{
	NotStarted:     {Pending},
	Pending:        {InReview},
	InReview:       {Verified, Rejected, ActionRequired},
	ActionRequired: {Pending},
	Verified:       {Expired},
	Expired:        {Pending},
	Rejected:       {Pending},
}

// Who may make a change of state, as the API names them.
const (
	byReviewer = "reviewer" // holds the permission to update all customers
	byOwner    = "owner"    // may update this customer: by handing in documents
	bySystem   = "system"   // the daily job, and a change of the identity that was verified
)

// whoMay lists for each next state who may bring it about.
func whoMay(status Status) map[Status][]string {
	who := map[Status][]string{}
	for _, next := range transitions[status] {
		who[next] = []string{byReviewer}
		switch {
		case next == Pending && status != ActionRequired:
			who[next] = append(who[next], byOwner)
		case next == Expired:
			who[next] = append(who[next], bySystem)
		}
	}
	if status == Verified {
		who[InReview] = []string{bySystem}
	}
	return who
}

func (s Status) allows(next Status) bool { return slices.Contains(transitions[s], next) }

// DocumentType is what a document is.
type DocumentType string

// The document types.
const (
	Passport        DocumentType = "passport"
	IdentityCard    DocumentType = "identity_card"
	ResidencePermit DocumentType = "residence_permit"
	DrivingLicence  DocumentType = "driving_licence"
	ProofOfAddress  DocumentType = "proof_of_address"
	OtherDocument   DocumentType = "other"
)

var documentTypes = []string{string(Passport), string(IdentityCard), string(ResidencePermit), string(DrivingLicence),
	string(ProofOfAddress), string(OtherDocument)}

// Values lists the types.
func (DocumentType) Values() []string { return documentTypes }

// identifies reports whether the document alone proves who somebody is: an official one with a photograph.
func (t DocumentType) identifies() bool {
	return t == Passport || t == IdentityCard || t == ResidencePermit || t == DrivingLicence
}

// Document is a document of a customer as the API shows it.
type Document struct {
	ID         string       `json:"id"`
	Type       DocumentType `json:"type"`
	Number     string       `json:"number" doc:"Masked for a caller who may not update the customer."` // masked for a caller who may not update the customer
	ExpiryDate types.Date   `json:"expiry_date"`
	Country    string       `json:"country"`
	Expired    bool         `json:"expired"`
	CreatedAt  store.Time   `json:"created_at"`
}

// validOn reports whether the document has not expired: its last day counts.
func (d Document) validOn(today types.Date) bool {
	return d.ExpiryDate.IsZero() || !d.ExpiryDate.Before(today)
}

// Requirements is what is missing for the next level, by name: identity_document, proof_of_address, decision, or the
// type of a document that has expired or will.
type Requirements struct {
	CurrentlyDue []string `json:"currently_due" example:"proof_of_address"`
	PastDue      []string `json:"past_due" example:"passport"`
	ExpiringSoon []string `json:"expiring_soon" example:"identity_card"`
}

// What a level needs.
const (
	needIdentity = "identity_document"
	needAddress  = "proof_of_address"
	needDecision = "enhanced_review"
)

// expiringSoonDays is how long before its last day a document is named as expiring.
const expiringSoonDays = 30

// requirements looks at the documents on a day. For a verified customer what a better document does not replace is
// past due once it has expired.
func requirements(c Customer, documents []Document, today types.Date) Requirements {
	r := Requirements{CurrentlyDue: []string{}, PastDue: []string{}, ExpiringSoon: []string{}}
	reached := reachable(documents, today)
	switch {
	case reached == LevelNone:
		r.CurrentlyDue = append(r.CurrentlyDue, needIdentity)
		if !hasAddressProof(documents, today) && c.VerificationLevel != LevelNone && c.VerificationLevel != LevelBasic {
			r.CurrentlyDue = append(r.CurrentlyDue, needAddress)
		}
	case reached == LevelBasic && c.KYCStatus == Verified:
		r.CurrentlyDue = append(r.CurrentlyDue, needAddress)
	case c.KYCStatus == Verified && c.VerificationLevel != LevelEnhanced:
		r.CurrentlyDue = append(r.CurrentlyDue, needDecision)
	}
	for _, d := range documents {
		switch {
		case !d.validOn(today) && !replaced(d, documents, today):
			r.PastDue = appendOnce(r.PastDue, string(d.Type))
		case d.validOn(today) && !d.validOn(today.AddDays(expiringSoonDays)) && !replaced(d, documents, today.AddDays(expiringSoonDays)):
			r.ExpiringSoon = appendOnce(r.ExpiringSoon, string(d.Type))
		}
	}
	return r
}

// replaced reports whether another document of the same use is valid on the day.
func replaced(d Document, documents []Document, day types.Date) bool {
	return slices.ContainsFunc(documents, func(other Document) bool {
		sameUse := other.Type == d.Type || other.Type.identifies() && d.Type.identifies()
		return other.ID != d.ID && sameUse && other.validOn(day)
	})
}

// reachable is the best level that the documents carry on a day without a reviewer's own decision.
func reachable(documents []Document, today types.Date) Level {
	identified := slices.ContainsFunc(documents, func(d Document) bool { return d.Type.identifies() && d.validOn(today) })
	switch {
	case !identified:
		return LevelNone
	case hasAddressProof(documents, today):
		return LevelStandard
	default:
		return LevelBasic
	}
}

func hasAddressProof(documents []Document, today types.Date) bool {
	return slices.ContainsFunc(documents, func(d Document) bool { return d.Type == ProofOfAddress && d.validOn(today) })
}

func appendOnce(names []string, name string) []string {
	if slices.Contains(names, name) {
		return names
	}
	return append(names, name)
}

// maskShown is how many characters of a number stay readable.
const maskShown = 3

// mask hides a document's number but for its end.
func mask(number string) string {
	runes := []rune(number)
	hidden := max(len(runes)-maskShown, (len(runes)+1)/2)
	for i := range hidden {
		runes[i] = '*'
	}
	return string(runes)
}
