package customers

import (
	"context"
	"strconv"

	"kontor/modules/kit/types"
	"kontor/modules/kit/validate"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

const (
	maxReason    = 1000 // characters
	maxNumber    = 64   // characters
	maxDocuments = 20   // in one request
)

// DocumentInput is a submitted document.
type DocumentInput struct {
	Type       string `json:"type" enum:"passport,identity_card,residence_permit,driving_licence,proof_of_address,other" required:"true"`
	Number     string `json:"number" maxLength:"64" required:"true"`
	ExpiryDate string `json:"expiry_date" format:"date" doc:"Required for documents that prove an identity."`
	Country    string `json:"country" doc:"ISO 3166-1, two or three letters."`
}

// submitted is a checked document.
type submitted struct {
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

// Validate checks the documents. SubmitKYC checks their expiry dates again, and whether verified_at is in the future: callers
// who are no reviewers may send anything in it.
func (in *SubmitInput) Validate(ctx context.Context, v *apierr.Fields) {
	if in.VerifiedAt != nil && *in.VerifiedAt != "" {
		at, err := store.ParseTime(*in.VerifiedAt)
		if err != nil {
			v.Add("verified_at", "invalid.datetime")
		}
		in.verifiedAt = &at
	}
	in.Reason, in.CustomerReason = checkReason(v, "reason", in.Reason), checkReason(v, "customer_reason", in.CustomerReason)
	if len(in.Documents) == 0 && in.verifiedAt == nil {
		v.Add("documents", "invalid.required")
	}
	if len(in.Documents) > maxDocuments {
		v.Add("documents", "invalid.max_items", apierr.Args{"Max": maxDocuments})
		return
	}
	for i, d := range in.Documents {
		in.documents = append(in.documents, d.check(v, "documents."+strconv.Itoa(i)+"."))
	}
	in.checkExpiry(v, types.DateOf(endpoint.Of(ctx).Now.UTC()))
}

func (d DocumentInput) check(v *apierr.Fields, at string) submitted {
	checked := submitted{
		kind:       DocumentType(validate.OneOf(v, at+"type", d.Type, documentTypes...)),
		number:     validate.Required(v, at+"number", d.Number, maxNumber),
		expiryDate: validate.Parsed(v, at+"expiry_date", d.ExpiryDate, types.ParseDate),
		country:    d.Country,
		countryKey: validate.Parsed(v, at+"country", d.Country, types.CountryOf).String(),
	}
	if checked.kind.identifies() && d.ExpiryDate == "" {
		v.Add(at+"expiry_date", "invalid.required")
	}
	return checked
}

// checkDates rejects expired documents and a verification in the future.
func (in SubmitInput) checkDates(today types.Date, now store.Time) error {
	var problems apierr.Fields
	in.checkExpiry(&problems, today)
	if in.verifiedAt != nil && *in.verifiedAt > now {
		problems.Add("verified_at", "invalid.date_future")
	}
	return problems.Err()
}

func (in SubmitInput) checkExpiry(v *apierr.Fields, today types.Date) {
	for i, d := range in.documents {
		if !d.expiryDate.IsZero() && d.expiryDate.Before(today) {
			v.Add("documents."+strconv.Itoa(i)+".expiry_date", "customers.document_expired")
		}
	}
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
