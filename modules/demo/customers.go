package demo

import (
	"fmt"
	"net/http"
	"time"
)

// idOf reads the id of a record.
type idOf struct {
	ID string `json:"id"`
}

// today is the day that the demo has reached.
func (b *bank) today() time.Time { return b.clock.Now().UTC() }

// meetCustomers lets a customer come in on every other day, and more often as the bank becomes known.
func (b *bank) meetCustomers(day int) error {
	if day == 40 { // the customer of the demo enters herself
		return b.meetCustomer(day, identity{language: "de", first: "Nina", last: "Keller", born: "1991-05-14", nationality: "CHE",
			street: "Rosenweg 12", place: place{"8001", "Zürich"}}, b.customer)
	}
	for chance := 28 + day/8; b.random.IntN(100) < chance; chance /= 3 {
		advisor := pick(b, b.staff)
		if b.random.IntN(15) == 0 {
			advisor = b.admin
		}
		if err := b.meetCustomer(day, b.invent(), advisor); err != nil {
			return err
		}
	}
	return nil
}

func (b *bank) meetCustomer(day int, who identity, by *person) error {
	body := object{"first_name": who.first, "last_name": who.last, "email": who.email(len(b.customers)), "date_of_birth": who.born,
		"nationality": who.nationality, "phone": fmt.Sprintf("+4179555%04d", b.random.IntN(10000)),
		"address":  object{"street": who.street, "city": who.place.city, "postal_code": who.place.code, "country": "CH"},
		"metadata": object{"language": who.language, "segment": pick(b, []string{"retail", "private", "young"})}}
	if who.business {
		body["type"] = "business"
		delete(body, "date_of_birth")
		delete(body, "nationality")
	}
	var made idOf
	if err := b.api.post(by, "/v1/customers", body, &made); err != nil {
		return err
	}
	b.customers = append(b.customers, customer{id: made.ID, advisor: by, who: who, day: day})
	return nil
}

// verify takes the customers who came some days ago a step further.
func (b *bank) verify(day int) error {
	for i := range b.customers {
		c := &b.customers[i]
		if c.advisor == b.customer {
			i = 1 // all goes well with the customer of the demo
		}
		var err error
		switch day - c.day {
		case 1:
			if i%9 != 0 { // some never hand in anything
				err = b.submit(c, i)
			}
		case 3:
			if i%9 != 0 && i%7 != 0 {
				err = b.decide(c, "in_review", "")
			}
		case 6:
			err = b.conclude(c, i)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// submit hands in an identity document, and often a proof of address.
func (b *bank) submit(c *customer, i int) error {
	expiry := b.today().AddDate(1+i%8, i%12, i%28)
	if i%9 == 5 { // has expired by today, or is about to
		expiry = b.today().AddDate(0, 0, days-c.day+10-i%20)
	}
	if !expiry.After(b.today()) {
		expiry = b.today().AddDate(0, 0, 3)
	}
	kinds := []string{"passport", "identity_card"}
	if c.who.nationality != "CHE" {
		kinds = []string{"passport", "residence_permit"}
	}
	documents := []object{{"type": pick(b, kinds), "number": fmt.Sprintf("X%07d", 1000000+i*7919%8999999),
		"expiry_date": expiry.Format(time.DateOnly), "country": c.who.nationality}}
	if i%3 != 0 {
		documents = append(documents, object{"type": "proof_of_address", "number": fmt.Sprintf("EW-%05d", i), "country": "CHE",
			"expiry_date": b.today().AddDate(1, 0, 0).Format(time.DateOnly)})
	}
	return b.api.do(c.advisor, http.MethodPut, "/v1/customers/"+c.id+"/kyc", object{"documents": documents}, nil)
}

// conclude ends the review of a customer.
func (b *bank) conclude(c *customer, i int) error {
	if i%9 == 0 || i%7 == 0 {
		return nil
	}
	switch i % 11 {
	case 4:
		return b.decide(c, "rejected", "The documents do not belong to the applicant.")
	case 6:
		return b.decide(c, "action_required", "The copy of the document cannot be read.")
	case 8:
		return nil // still in review
	}
	if c.who.business || i%10 == 3 { // more is asked of those who may do more
		return b.decide(c, "verified", "Source of funds and beneficial owner documented.", "enhanced")
	}
	return b.decide(c, "verified", "Documents checked against the original.")
}

// decide is the decision of an advisor other than the one who entered the customer.
func (b *bank) decide(c *customer, status, reason string, level ...string) error {
	reviewer := b.staff[0]
	if reviewer == c.advisor {
		reviewer = b.staff[1]
	}
	body := object{"kyc_status": status, "reason": reason}
	if len(level) > 0 {
		body["verification_level"] = level[0]
	}
	return b.api.do(reviewer, http.MethodPatch, "/v1/customers/"+c.id+"/kyc/status", body, nil)
}
