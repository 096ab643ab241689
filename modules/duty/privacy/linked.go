package privacy

import (
	"context"
	"fmt"

	"kontor/modules/kit/personal"
	"kontor/modules/kit/types"
	"kontor/store"
)

// The records of one person are found by all evidence: addresses, identities and links, also former ones. Some evidence leads in one
// direction only, because of what is former there are digests. The search therefore begins at both ends, the subject and the customers
// under a hold, and the records are of one person if the two searches meet.

// maxExpanded bounds the records of one person that a search expands. Those that it has found, but not expanded, count.
const maxExpanded = 1000

// held maps the records of persons with a customer under a hold to that customer.
type held map[personal.Subject]string

// heldPersons returns the records of all persons with a customer under a hold. The user who created such a customer is one of them.
func (s *Service) heldPersons(ctx context.Context, q store.Querier) (held, error) {
	customers, err := store.All(ctx, q, store.Text, selectHeld, s.today(q).String())
	if err != nil {
		return nil, fmt.Errorf("read legal holds: %w", err)
	}
	found := held{}
	for _, id := range customers {
		start := []personal.Subject{{Kind: personal.Customer, ID: id}}
		creator, err := s.Customers.CreatorOf(ctx, q, id)
		if err != nil {
			return nil, err
		}
		if creator != "" {
			start = append(start, personal.Subject{Kind: personal.User, ID: creator})
		}
		if err := s.expand(ctx, q, start, func(one personal.Subject) bool {
			_, known := found[one]
			if !known || one.ID == id { // a hold of their own comes first
				found[one] = id
			}
			return !known // what is known was expanded before
		}); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// linkedHold returns a customer under a hold who is the person of the subject, by all evidence; empty for none.
func (s *Service) linkedHold(ctx context.Context, q store.Querier, of personal.Subject, persons held) (customer string, err error) {
	if len(persons) == 0 {
		return "", nil
	}
	seen := map[personal.Subject]bool{}
	err = s.expand(ctx, q, []personal.Subject{of}, func(one personal.Subject) bool {
		known := seen[one]
		seen[one] = true
		if customer == "" {
			customer = persons[one]
		}
		return !known && customer == ""
	})
	return customer, err
}

// expand finds the records of a person, beginning with some of them. It calls add for each; add reports whether to expand it.
func (s *Service) expand(ctx context.Context, q store.Querier, start []personal.Subject, add func(personal.Subject) bool) error {
	var next []personal.Subject
	take := func(found []personal.Subject) {
		for _, one := range found {
			if add(one) {
				next = append(next, one)
			}
		}
	}
	take(start)
	for n := 0; n < len(next) && n < maxExpanded; n++ {
		found, err := s.sameAs(ctx, q, next[n])
		if err != nil {
			return fmt.Errorf("find the records of a person: %w", err)
		}
		take(found)
	}
	return nil
}

// sameAs returns further records of the person that a record is about.
func (s *Service) sameAs(ctx context.Context, q store.Querier, of personal.Subject) (all []personal.Subject, err error) {
	add := func(kind personal.Kind, ids []string) {
		for _, id := range ids {
			all = append(all, personal.Subject{Kind: kind, ID: id})
		}
	}
	var customers, users, personas []string
	switch of.Kind {
	case personal.Customer:
		var identity types.Identity
		if customers, users, identity, err = s.Customers.SamePerson(ctx, q, of.ID); err == nil && identity.DateOfBirth != "" {
			personas, err = s.Personas.WithIdentity(ctx, q, identity)
		}
	case personal.User:
		if customers, err = s.Customers.OfUser(ctx, q, of.ID); err == nil {
			personas, err = s.Personas.OfUser(ctx, q, of.ID)
		}
	case personal.Persona:
		var identities []types.Identity
		if users, err = s.Personas.UsersOf(ctx, q, of.ID); err == nil {
			identities, err = s.Personas.IdentitiesOf(ctx, q, of.ID)
		}
		if err == nil {
			customers, err = s.Customers.OfIdentities(ctx, q, identities)
		}
	}
	add(personal.Customer, customers)
	add(personal.User, users)
	add(personal.Persona, personas)
	return all, err
}
