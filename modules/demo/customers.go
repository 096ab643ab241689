package demo

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// record is the id of a record that the API returned.
type record struct {
	ID string `json:"id"`
}

// today returns the date that the clock shows.
func (b *builder) today() time.Time { return b.clock.Now().UTC() }

// createCustomers creates the customers of a day: one on every other day, and more later in the year.
func (b *builder) createCustomers(ctx context.Context, day int) error {
	if day == 40 { // the user Nina Keller creates her own record
		return b.createCustomer(ctx, day, identity{language: "de", first: "Nina", last: "Keller", born: "1991-05-14", nationality: "CHE",
			street: "Rosenweg 12", place: place{"8001", "Zürich"}}, b.customer)
	}
	for chance := 28 + day/8; b.random.IntN(100) < chance; chance /= 3 {
		advisor := pick(b, b.staff)
		if b.random.IntN(15) == 0 {
			advisor = b.admin
		}
		if err := b.createCustomer(ctx, day, b.randomIdentity(), advisor); err != nil {
			return err
		}
	}
	return nil
}

// createCustomer creates the customer record of an identity, as a user.
func (b *builder) createCustomer(ctx context.Context, day int, who identity, by *person) error {
	body := object{"first_name": who.first, "last_name": who.last, "email": who.email(len(b.customers)), "date_of_birth": who.born,
		"nationality": who.nationality, "phone": fmt.Sprintf("+4179555%04d", b.random.IntN(10000)),
		"address":  object{"street": who.street, "city": who.place.city, "postal_code": who.place.code, "country": "CH"},
		"metadata": object{"language": who.language, "segment": pick(b, []string{"retail", "private", "young"})}}
	if who.business {
		body["type"] = "business"
		delete(body, "date_of_birth")
		delete(body, "nationality")
	}
	var created record
	if err := b.api.post(ctx, by, "/v1/customers", body, &created); err != nil {
		return err
	}
	b.customers = append(b.customers, customer{id: created.ID, advisor: by, identity: who, day: day})
	return nil
}

// advanceVerifications submits documents and makes decisions for the customers of the days before.
func (b *builder) advanceVerifications(ctx context.Context, day int) error {
	for i := range b.customers {
		c := &b.customers[i]
		if c.advisor == b.customer {
			i = 1 // the verification of Nina Keller succeeds
		}
		var err error
		switch day - c.day {
		case 1:
			if i%9 != 0 { // some never submit documents
				err = b.submitDocuments(ctx, c, i)
			}
		case 3:
			if i%9 != 0 && i%7 != 0 {
				err = b.decide(ctx, c, "in_review", "")
			}
		case 6:
			err = b.concludeReview(ctx, c, i)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// submitDocuments submits an identity document and, for most customers, a proof of address.
func (b *builder) submitDocuments(ctx context.Context, c *customer, i int) error {
	expiry := b.today().AddDate(1+i%8, i%12, i%28)
	if i%9 == 5 { // has expired today, or expires soon
		expiry = b.today().AddDate(0, 0, days-c.day+10-i%20)
	}
	if !expiry.After(b.today()) {
		expiry = b.today().AddDate(0, 0, 3)
	}
	kinds := []string{"passport", "identity_card"}
	if c.identity.nationality != "CHE" {
		kinds = []string{"passport", "residence_permit"}
	}
	documents := []object{{"type": pick(b, kinds), "number": fmt.Sprintf("X%07d", 1000000+i*7919%8999999),
		"expiry_date": expiry.Format(time.DateOnly), "country": c.identity.nationality}}
	if i%3 != 0 {
		documents = append(documents, object{"type": "proof_of_address", "number": fmt.Sprintf("EW-%05d", i), "country": "CHE",
			"expiry_date": b.today().AddDate(1, 0, 0).Format(time.DateOnly)})
	}
	err := b.api.do(ctx, c.advisor, http.MethodPut, "/v1/customers/"+c.id+"/kyc", object{"documents": documents}, nil)
	if err != nil {
		return err
	}
	return b.evidenceOf(ctx, c, i)
}

// concludeReview decides the verification of a customer.
func (b *builder) concludeReview(ctx context.Context, c *customer, i int) error {
	if i%9 == 0 || i%7 == 0 {
		return nil
	}
	switch i % 11 {
	case 4:
		return b.decide(ctx, c, "rejected", "The documents do not belong to the applicant.")
	case 6:
		return b.decide(ctx, c, "action_required", "The copy of the document cannot be read.")
	case 8:
		return nil // still in review
	}
	if c.identity.business || i%10 == 3 {
		return b.decideTogether(ctx, c)
	}
	return b.decide(ctx, c, "verified", "Documents checked against the original.")
}

// openDecisions is the number of days before today from which on decisions still wait for a second person.
const openDecisions = 90

// decideTogether verifies a customer at the level enhanced: one reviewer proposes it, another one confirms it. The newest decisions still
// wait.
func (b *builder) decideTogether(ctx context.Context, c *customer) error {
	first := b.staff[c.day%len(b.staff)]
	if first == c.advisor {
		first = b.reviewerOf(c)
	}
	body := object{"kyc_status": "verified", "verification_level": "enhanced", "reason": "Source of funds and beneficial owner documented."}
	var proposed struct {
		PendingDecision record `json:"pending_decision"`
	}
	path := "/v1/customers/" + c.id + "/kyc"
	if err := b.api.do(ctx, first, http.MethodPatch, path+"/status", body, &proposed); err != nil || c.day > days-openDecisions {
		return err
	}
	second := b.admin
	for _, advisor := range b.staff {
		if advisor != first {
			second = advisor
		}
	}
	return b.api.do(ctx, second, http.MethodPost, path+"/decisions/"+proposed.PendingDecision.ID+"/confirm", object{}, nil)
}

// reviewerOf returns an advisor who did not create the record of a customer.
func (b *builder) reviewerOf(c *customer) *person {
	if b.staff[0] == c.advisor {
		return b.staff[1]
	}
	return b.staff[0]
}

// decide sets the status of a verification, as an advisor who did not create the record.
func (b *builder) decide(ctx context.Context, c *customer, status, reason string) error {
	body := object{"kyc_status": status, "reason": reason}
	return b.api.do(ctx, b.reviewerOf(c), http.MethodPatch, "/v1/customers/"+c.id+"/kyc/status", body, nil)
}
