package customers

import (
	"slices"
	"strconv"

	"kontor/modules/kit/types"
	"kontor/modules/kit/validate"
	"kontor/server/apierr"
	"kontor/store"
)

// Status is the state of a customer's identity verification.
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

// Values returns all states.
func (Status) Values() []string {
	return []string{string(NotStarted), string(Pending), string(InReview), string(Verified), string(Rejected), string(ActionRequired), string(Expired)}
}

// Level is the depth of a customer's verification.
type Level string

// The levels.
const (
	LevelNone     Level = "none"
	LevelBasic    Level = "basic"    // a valid identity document
	LevelStandard Level = "standard" // also a proof of address
	LevelEnhanced Level = "enhanced" // only by decision of a reviewer
)

// Values returns all levels.
func (Level) Values() []string {
	return []string{string(LevelNone), string(LevelBasic), string(LevelStandard), string(LevelEnhanced)}
}

// transitions are the changes of state that a reviewer can make. The program itself also moves a verified customer whose
// identity changes to in_review.
var transitions = map[Status][]Status{
	NotStarted:     {Pending},
	Pending:        {InReview},
	InReview:       {Verified, Rejected, ActionRequired},
	ActionRequired: {Pending},
	Verified:       {Expired},
	Expired:        {Pending},
	Rejected:       {Pending},
}

// The actors of a change of state, as the API names them.
const (
	byReviewer = "reviewer" // holds the permission to update all customers
	byOwner    = "owner"    // may update this customer; changes the state by submitting documents
	bySystem   = "system"   // the daily job, or an update of a verified identity
)

// transitionActors returns the possible next states and the actors that can cause each.
func transitionActors(status Status) map[Status][]string {
	actors := map[Status][]string{}
	for _, next := range transitions[status] {
		actors[next] = []string{byReviewer}
		switch {
		case next == Pending && status != ActionRequired:
			actors[next] = append(actors[next], byOwner)
		case next == Expired:
			actors[next] = append(actors[next], bySystem)
		}
	}
	if status == Verified {
		actors[InReview] = []string{bySystem}
	}
	return actors
}

func (s Status) allows(next Status) bool { return slices.Contains(transitions[s], next) }

// Document is the API's representation of a customer's document.
type Document struct {
	ID         string     `json:"id"`
	Type       string     `json:"type" example:"passport" doc:"As it was given."`
	Number     string     `json:"number" doc:"Masked for a caller who may not update the customer."`
	ExpiryDate types.Date `json:"expiry_date"`
	Country    string     `json:"country"`
	Expired    bool       `json:"expired" doc:"It counts for nothing."`
	CreatedAt  store.Time `json:"created_at"`

	kind  DocumentType // what it counts as
	files int64        // scans and photos
}

// validOn reports whether the document is valid on a day. It is valid on its last day.
func (d Document) validOn(today types.Date) bool {
	return d.ExpiryDate.IsZero() || !d.ExpiryDate.Before(today)
}

func (d Document) hasFiles() bool { return d.files > 0 }

// Requirements lists what is missing for the next level, and the types of expired and expiring documents.
type Requirements struct {
	CurrentlyDue []string `json:"currently_due" example:"proof_of_address" doc:"identity_document, proof_of_address or enhanced_review."`
	PastDue      []string `json:"past_due" example:"passport" doc:"Types of documents that have expired and that no other document replaces."`
	MissingScans []string `json:"missing_scans" format:"uuid" doc:"The valid documents without a scan or photo."`
	ExpiringSoon []string `json:"expiring_soon" example:"identity_card" doc:"Types of documents that expire within 30 days and that no other document replaces."`
}

// The names of requirements for a level.
const (
	needIdentity = "identity_document"
	needAddress  = "proof_of_address"
	needDecision = "enhanced_review"
)

// expiringSoonDays is the number of days before its last day from which on a document is reported as expiring.
const expiringSoonDays = 30

// requirements returns the requirements of a customer on a day. An expired document is past due unless another valid
// document replaces it.
func requirements(c Customer, documents []Document, today types.Date) Requirements {
	r := Requirements{CurrentlyDue: []string{}, PastDue: []string{}, ExpiringSoon: []string{}, MissingScans: missingScans(documents, today)}
	supported := supportedLevel(documents, today)
	switch {
	case supported == LevelNone:
		r.CurrentlyDue = append(r.CurrentlyDue, needIdentity)
		if !hasAddressProof(documents, today) && c.VerificationLevel != LevelNone && c.VerificationLevel != LevelBasic {
			r.CurrentlyDue = append(r.CurrentlyDue, needAddress)
		}
	case supported == LevelBasic && c.KYCStatus == Verified:
		r.CurrentlyDue = append(r.CurrentlyDue, needAddress)
	case c.KYCStatus == Verified && c.VerificationLevel != LevelEnhanced:
		r.CurrentlyDue = append(r.CurrentlyDue, needDecision)
	}
	for _, d := range documents {
		switch {
		case d.kind == OtherDocument: // no level needs it
		case !d.validOn(today) && !replaced(d, documents, today):
			r.PastDue = appendOnce(r.PastDue, d.Type)
		case d.validOn(today) && !d.validOn(today.AddDays(expiringSoonDays)) && !replaced(d, documents, today.AddDays(expiringSoonDays)):
			r.ExpiringSoon = appendOnce(r.ExpiringSoon, d.Type)
		}
	}
	return r
}

// missingScans returns the ids of the valid documents without a file. It never returns nil.
func missingScans(documents []Document, today types.Date) []string {
	ids := []string{}
	for _, d := range documents {
		if d.validOn(today) && !d.hasFiles() {
			ids = append(ids, d.ID)
		}
	}
	return ids
}

// replaced reports whether another document that serves the same purpose is valid on the day.
func replaced(d Document, documents []Document, day types.Date) bool {
	return slices.ContainsFunc(documents, func(other Document) bool {
		samePurpose := other.kind == d.kind || other.kind.identifies() && d.kind.identifies()
		return other.ID != d.ID && samePurpose && other.validOn(day)
	})
}

// supportedLevel returns the highest level that the documents support on a day. Only a reviewer can set a higher one.
func supportedLevel(documents []Document, today types.Date) Level {
	identified := slices.ContainsFunc(documents, func(d Document) bool { return d.kind.identifies() && d.validOn(today) })
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
	return slices.ContainsFunc(documents, func(d Document) bool { return d.kind == ProofOfAddress && d.validOn(today) })
}

func appendOnce(names []string, name string) []string {
	if slices.Contains(names, name) {
		return names
	}
	return append(names, name)
}

// maskShown is the number of characters that mask leaves readable.
const maskShown = 3

// mask hides a document's number except its end.
func mask(number string) string {
	runes := []rune(number)
	hidden := max(len(runes)-maskShown, (len(runes)+1)/2)
	for i := range hidden {
		runes[i] = '*'
	}
	return string(runes)
}

const (
	maxReason = 1000 // characters
	maxType   = 50   // characters
	maxNumber = 64   // characters
)

// DocumentInput is a submitted document.
type DocumentInput struct {
	Type       string `json:"type" maxLength:"50" required:"true" example:"passport" doc:"Any text. passport, identity_card, residence_permit, driving_licence, proof_of_address and their usual names, such as id_card, count for levels; others for none."`
	Number     string `json:"number" maxLength:"64" required:"true"`
	ExpiryDate string `json:"expiry_date" format:"date" doc:"Required for documents that prove an identity. A document that has expired is stored, and counts for nothing."`
	Country    string `json:"country" doc:"ISO 3166-1 or Kosovo, two or three letters."`
}

// submitted is a checked document.
type submitted struct {
	given      string // the type
	kind       DocumentType
	number     string
	expiryDate types.Date
	country    string
	countryKey string
}

// SubmitInput contains submitted documents and, from a reviewer, the time at which the customer was verified.
type SubmitInput struct {
	ID         string          `path:"id"`
	VerifiedAt *string         `json:"verified_at" format:"date-time" example:"2026-01-31T08:15:30.123Z" doc:"The time at which a reviewer verified the customer. Ignored from other callers."`
	Documents  []DocumentInput `json:"documents" maxItems:"20" required:"false"`
	Reason     string          `json:"reason" maxLength:"1000" doc:"Of a verification that needs a second person, for reviewers."`
	// CustomerReason is stored with the reason.
	CustomerReason string `json:"customer_reason" maxLength:"1000" doc:"What the customer reads about a verification that needs a second person."`

	verifiedAt *store.Time
	documents  []submitted
}

// Validate checks the documents. SubmitKYC checks whether verified_at is in the future: callers who are no reviewers may send
// anything in it.
func (in *SubmitInput) Validate(v *apierr.Fields) {
	if in.VerifiedAt != nil && *in.VerifiedAt != "" {
		at, err := store.ParseTime(*in.VerifiedAt)
		if err != nil {
			v.Add("verified_at", "invalid.datetime")
		}
		in.verifiedAt = &at
	}
	in.Reason, in.CustomerReason = checkReason(v, "reason", in.Reason), checkReason(v, "customer_reason", in.CustomerReason)
	for i, d := range in.Documents {
		in.documents = append(in.documents, d.check(v, "documents."+strconv.Itoa(i)+"."))
	}
}

func (d DocumentInput) check(v *apierr.Fields, at string) submitted {
	checked := submitted{
		given:      validate.Required(v, at+"type", d.Type, maxType),
		number:     validate.Required(v, at+"number", d.Number, maxNumber),
		expiryDate: validate.Parsed(v, at+"expiry_date", d.ExpiryDate, types.ParseDate),
		country:    d.Country,
		countryKey: validate.Parsed(v, at+"country", d.Country, types.CountryOf).String(),
	}
	checked.kind = documentTypeOf(checked.given)
	if checked.kind.identifies() && d.ExpiryDate == "" {
		v.Add(at+"expiry_date", "invalid.required")
	}
	return checked
}

// hasValid reports whether a submitted document is valid on a day.
func (in SubmitInput) hasValid(today types.Date) bool {
	return slices.ContainsFunc(in.documents, func(d submitted) bool { return d.validOn(today) })
}

func (d submitted) validOn(today types.Date) bool {
	return Document{ExpiryDate: d.expiryDate}.validOn(today)
}

// DecideInput is a decision of a reviewer.
type DecideInput struct {
	ID                string `path:"id"`
	KYCStatus         Status `json:"kyc_status" required:"false" example:"verified"`
	VerificationLevel Level  `json:"verification_level" example:"standard"`
	Reason            string `json:"reason" maxLength:"1000" doc:"The customer reads it, unless the decision needs a second person. Then it is required, and for reviewers only."`
	CustomerReason    string `json:"customer_reason" maxLength:"1000" doc:"What the customer reads about a decision that needs a second person, once it is confirmed."`
}

// Validate checks that the decision names an existing state or level.
func (in *DecideInput) Validate(v *apierr.Fields) {
	if in.KYCStatus == "" && in.VerificationLevel == "" {
		v.Add("kyc_status", "invalid.required")
	}
	if in.KYCStatus != "" {
		validate.OneOf(v, "kyc_status", string(in.KYCStatus), in.KYCStatus.Values()...)
	}
	if in.VerificationLevel != "" {
		validate.OneOf(v, "verification_level", string(in.VerificationLevel), in.VerificationLevel.Values()...)
	}
	in.Reason, in.CustomerReason = checkReason(v, "reason", in.Reason), checkReason(v, "customer_reason", in.CustomerReason)
}

func checkReason(v *apierr.Fields, name, reason string) string {
	return validate.Text(v, name, reason, maxReason)
}
