package demo

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// createPersonas creates the personas of a day: a family, a deceased person, or a person with a link to another one.
func (b *builder) createPersonas(ctx context.Context, day int) error {
	if day == 41 {
		return b.createKellerFamily(ctx)
	}
	if day%6 != 0 {
		return nil
	}
	who := b.randomIdentity()
	for who.business {
		who = b.randomIdentity()
	}
	head, err := b.createPersona(ctx, who)
	if err != nil {
		return err
	}
	if day%12 == 0 {
		return b.createFamily(ctx, head, who)
	}
	if day%42 == 6 { // deceased
		return b.api.do(ctx, b.staff[0], http.MethodPut, "/v1/personas/"+head, object{"first_name": who.first, "last_name": who.last, "date_of_birth": "1934-02-11",
			"date_of_death": b.today().AddDate(0, 0, -9).Format(time.DateOnly), "nationality": who.nationality, "active": false}, nil)
	}
	if len(b.personas) > 4 {
		relation := pick(b, []string{"legal_representative", "beneficial_owner", "authorised_signatory", "guardian"})
		return b.linkPersonas(ctx, head, b.personas[b.random.IntN(len(b.personas)-1)], relation)
	}
	return nil
}

func (b *builder) createPersona(ctx context.Context, who identity) (string, error) {
	var created record
	err := b.api.post(ctx, b.staff[0], "/v1/personas", object{"first_name": who.first, "last_name": who.last, "date_of_birth": who.born,
		"nationality": who.nationality, "metadata": object{"language": who.language}}, &created)
	b.personas = append(b.personas, created.ID)
	return created.ID, err
}

// createFamily creates the spouse and a child of a persona.
func (b *builder) createFamily(ctx context.Context, head string, who identity) error {
	spouse := b.randomIdentity()
	spouse.last, spouse.business = who.last, false
	if spouse.first == "" {
		spouse.first = "Robin"
	}
	partner, err := b.createPersona(ctx, spouse)
	if err != nil {
		return err
	}
	child := spouse
	child.first, child.born = pick(b, regions[0].first), fmt.Sprintf("20%02d-0%d-1%d", 6+b.random.IntN(15), 1+b.random.IntN(9), b.random.IntN(9))
	young, err := b.createPersona(ctx, child)
	if err != nil {
		return err
	}
	for _, l := range []struct{ from, to, relation string }{{head, partner, "spouse"}, {head, young, "child"}, {partner, young, "child"}} {
		if err := b.linkPersonas(ctx, l.from, l.to, l.relation); err != nil {
			return err
		}
	}
	return nil
}

// createKellerFamily creates the family and the other links of the user Nina Keller.
func (b *builder) createKellerFamily(ctx context.Context) error {
	ids := map[string]string{}
	for _, p := range []identity{
		{first: "Nina", last: "Keller", born: "1991-05-14"}, {first: "Jonas", last: "Keller", born: "1989-11-02"}, {first: "Mia", last: "Keller", born: "2018-03-27"},
		{first: "Leo", last: "Keller", born: "2021-08-09"}, {first: "Regula", last: "Wyss", born: "1960-01-30"}, {first: "Mathieu", last: "Aubert", born: "1978-06-17"},
	} {
		p.language, p.nationality = "de", "CHE"
		id, err := b.createPersona(ctx, p)
		if err != nil {
			return err
		}
		ids[p.first] = id
	}
	for _, l := range [][3]string{{"Nina", "Jonas", "spouse"}, {"Nina", "Mia", "child"}, {"Nina", "Leo", "child"}, {"Nina", "Regula", "parent"}, {"Nina", "Mathieu", "authorised_signatory"},
		{"Jonas", "Mia", "child"}, {"Jonas", "Leo", "child"}, {"Mia", "Regula", "guardian"}} {
		if err := b.linkPersonas(ctx, ids[l[0]], ids[l[1]], l[2]); err != nil {
			return err
		}
	}
	return b.api.post(ctx, b.staff[0], "/v1/personas/"+ids["Nina"]+"/users", object{"user_id": b.customer.id}, nil)
}

// linkPersonas links two personas. relation is the relation of the second to the first.
func (b *builder) linkPersonas(ctx context.Context, from, to, relation string) error {
	return b.api.post(ctx, b.staff[0], "/v1/personas/"+from+"/links", object{"linked_persona_id": to, "relation": relation}, nil)
}

// createPayer creates a payer for a random customer on every third day.
func (b *builder) createPayer(ctx context.Context, day int) error {
	if day%3 != 0 || len(b.customers) == 0 {
		return nil
	}
	c := pick(b, b.customers)
	who := b.randomIdentity()
	name := who.first + " " + who.last
	body := object{"customer_id": c.id, "name": name, "email": who.email(day), "country": "CHE", "metadata": object{"terms_days": 30}}
	if who.business {
		body["name"], body["company"] = "Buchhaltung", who.last
	}
	if who.nationality != "CHE" {
		body["country"] = who.nationality
	}
	return b.api.post(ctx, b.staff[0], "/v1/payers", body, nil)
}

// billsName is the directory of the sample bills, beside the database.
const billsName = "sample-bills"

// bills are invoices of fictitious creditors: a usual one, one in euros with billing information, one without an amount,
// and one that violates the standard.
//
//go:embed bills/*.pdf
var bills embed.FS

// writeBills writes the sample bills to a data directory.
func writeBills(dir string) error {
	dir = filepath.Join(dir, billsName)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	names, err := fs.Glob(bills, "bills/*.pdf")
	if err != nil {
		return err
	}
	for _, name := range names {
		data, err := bills.ReadFile(name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(name)), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}
