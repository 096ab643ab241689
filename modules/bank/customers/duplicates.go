package customers

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"kontor/modules/kit/names"
	"kontor/modules/kit/types"
	"kontor/modules/kit/validate"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

const (
	maxCandidates = 20
	// mostRead bounds the customers that one kind of evidence finds. Names that more customers have than this are compared in part.
	mostRead = 500
	// keyPatience is how long a search waits for the keys of customers that were written since the last one.
	keyPatience = 3 * time.Second
)

// DuplicatesInput contains members of a new customer, and whom it may already exist as.
type DuplicatesInput struct {
	CustomerID  string         `json:"customer_id" required:"false" format:"uuid" doc:"A customer who exists: they are left out, and those who were dismissed as another person."`
	Type        string         `json:"type" required:"false" enum:"individual,business" default:"individual"`
	FirstName   string         `json:"first_name" maxLength:"100" required:"false"`
	LastName    string         `json:"last_name" maxLength:"100" doc:"The name of a business."`
	Email       string         `json:"email" required:"false"`
	Phone       string         `json:"phone" required:"false"`
	DateOfBirth string         `json:"date_of_birth" required:"false" format:"date"`
	Nationality string         `json:"nationality" required:"false"`
	Address     *Address       `json:"address" required:"false"`
	Metadata    jsontext.Value `json:"metadata" required:"false" doc:"Of which external_id is compared."`

	customer Customer
}

// Validate checks the members as those of a creation. Only the last name is required.
func (in *DuplicatesInput) Validate(ctx context.Context, v *apierr.Fields) {
	if in.CustomerID != "" {
		in.CustomerID = validate.Parsed(v, "customer_id", in.CustomerID, types.ParseID)
	}
	create := CreateInput{Type: in.Type, FirstName: in.FirstName, LastName: in.LastName, Email: in.Email, Phone: in.Phone, DateOfBirth: in.DateOfBirth,
		Nationality: in.Nationality, Address: in.Address, Metadata: in.Metadata}
	var problems apierr.Fields
	in.customer = create.check(&problems, types.DateOf(endpoint.Of(ctx).Now.UTC()))
	validate.Given(v, &problems, map[string]bool{"type": true, "first_name": in.FirstName != "", "last_name": true, "email": in.Email != "", "phone": true,
		"date_of_birth": true, "nationality": true, "address": true, "metadata": true})
}

// Candidates is the answer of a search for duplicates.
type Candidates struct {
	Candidates []Candidate `json:"candidates" doc:"The best first, at most 20."`
	Complete   bool        `json:"complete" doc:"False while customers of an earlier version are prepared for the first search: ask again a minute later."`
}

// Candidate is a customer who may be the wanted one.
type Candidate struct {
	ID       string     `json:"id"`
	Name     string     `json:"name" example:"Hans Müller"`
	Score    float64    `json:"score" minimum:"0" maximum:"1" example:"0.93" doc:"How alike the names are, less what contradicts, and more for all else that agrees. No probability."`
	Matched  []NamePart `json:"matched" doc:"Which parts of the names matched."`
	Agrees   []string   `json:"agrees" enum:"date_of_birth,email,phone,address,external_id" doc:"What else agrees."`
	Customer Customer   `json:"customer" doc:"The customer, to be shown beside the new one."`
}

// NamePart is a part of both names.
type NamePart struct {
	Query string  `json:"query" example:"Mueller"`
	Entry string  `json:"entry" example:"Müller"`
	Score float64 `json:"score" minimum:"0" maximum:"1" example:"1"`
}

// Duplicates returns the customers, of those that the caller may read, who may be the one of the input. It returns
// apierr.CustomerNotFound and apierr.NoAccess for the customer that the input names.
func (s *Service) Duplicates(ctx context.Context, in DuplicatesInput) (Candidates, error) {
	answer := Candidates{Candidates: []Candidate{}}
	excluded := map[string]bool{in.CustomerID: true}
	if in.CustomerID != "" {
		if _, err := table.Get(ctx, s.db, in.CustomerID, access.Read); err != nil {
			return answer, err
		}
		others, err := store.All(ctx, s.db, store.Text, selectDistinct, in.CustomerID)
		if err != nil {
			return answer, err
		}
		for _, id := range others {
			excluded[id] = true
		}
	}
	limited, cancel := context.WithTimeout(ctx, keyPatience)
	defer cancel()
	var err error
	if answer.Complete, err = s.keyed(limited); err != nil {
		return answer, err
	}
	found, err := findAlike(ctx, s.db, in.customer)
	if err != nil {
		return answer, err
	}
	for _, c := range found {
		if excluded[c.ID] {
			continue
		}
		if one, alike := compare(in.customer, c); alike {
			answer.Candidates = append(answer.Candidates, one)
		}
	}
	slices.SortFunc(answer.Candidates, func(a, b Candidate) int { return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID)) })
	answer.Candidates = answer.Candidates[:min(len(answer.Candidates), maxCandidates)]
	return answer, nil
}

const (
	withEmail = `email_key = $2 AND erased_at IS NULL`

	withPhone = `phone = $2 AND erased_at IS NULL`
)

// findAlike reads the customers that share some evidence with one, of those that the caller may list, each once.
func findAlike(ctx context.Context, q store.Querier, c Customer) ([]Customer, error) {
	found := map[string]Customer{}
	find := func(condition string, args ...any) error {
		some, err := table.Find(ctx, q, mostRead, condition, args...)
		for _, one := range some {
			found[one.ID] = one
		}
		return err
	}
	byKeys := func(keys []string) error {
		return find(`customers.id IN (SELECT k.customer_id FROM customer_name_keys k WHERE k.name_key IN (`+store.In(2, len(keys))+`)) AND erased_at IS NULL`,
			store.AppendIn(nil, keys)...)
	}
	var err error
	if c.Email != "" {
		err = find(withEmail, types.Email(c.Email).Key())
	}
	if err == nil && c.Phone != nil {
		err = find(withPhone, *c.Phone)
	}
	if _, externalID := c.fromMetadata(); err == nil && externalID != "" {
		err = find(withExternalID, externalID)
	}
	if err == nil && !c.DateOfBirth.IsZero() {
		err = byKeys([]string{c.DateOfBirth.String()})
	}
	name := names.Parse(c.name(), c.nameKind())
	if err == nil && !name.Empty() {
		err = byKeys([]string{name.Key()}) // by itself: a common part must not crowd out the same name
	}
	if err == nil && !name.Empty() {
		err = byKeys(name.SearchKeys())
	}
	all := make([]Customer, 0, len(found))
	for _, one := range found {
		all = append(all, one)
	}
	return all, err
}

// compare compares a new customer with an existing one. Each agreement halves what the score of the names lacks to 1. alike is false for
// customers that callers need not see.
func compare(wanted, c Customer) (one Candidate, alike bool) {
	kind := names.Unknown
	if wanted.Type == c.Type {
		kind = c.nameKind()
	}
	score, matches := names.CompareTexts(wanted.name(), c.name(), kind, nil)
	score *= wanted.signals().Factor(c.signals())
	one = Candidate{ID: c.ID, Name: c.name(), Matched: []NamePart{}, Agrees: agreements(wanted, c), Customer: c}
	one.Score = math.Round((1-(1-score)*math.Pow(0.5, float64(len(one.Agrees))))*100) / 100
	for _, m := range matches {
		one.Matched = append(one.Matched, NamePart{m.Query, m.Entry, m.Score})
	}
	sure := slices.ContainsFunc(one.Agrees, func(what string) bool { return what != "date_of_birth" && what != "address" })
	return one, sure || one.Score >= names.DefaultThreshold
}

func (c Customer) signals() (s names.Signals) {
	if !c.DateOfBirth.IsZero() {
		year, month, day := c.DateOfBirth.Start().Date()
		s.Births = []names.Birth{{Year: year, Month: int(month), Day: day}}
	}
	if country, err := types.CountryOf(types.EmptyIfNil(c.Nationality)); err == nil { // XXA (stateless) contradicts no nationality
		s.Countries = []string{country.String()}
	}
	return s
}

// DismissInput names two customers.
type DismissInput struct {
	ID    string `path:"id"`
	Other string `path:"other" doc:"The id of another customer."`
}

const (
	// A distinction is about the identities that were compared: one that has changed since is compared again.
	selectDistinct = `
		SELECT d.other_id FROM customer_distinctions d WHERE d.customer_id = $1 AND ` + sameSince + `
		UNION ALL SELECT d.customer_id FROM customer_distinctions d WHERE d.other_id = $1 AND ` + sameSince + `
		`
	sameSince = `NOT EXISTS (
			SELECT 1 FROM customer_identities i WHERE i.customer_id IN (d.customer_id, d.other_id) AND i.until > d.created_at)`

	insertDistinction = `
		INSERT INTO customer_distinctions (customer_id, other_id, created_at, created_by) VALUES ($1, $2, $3, $4)
		ON CONFLICT (customer_id, other_id) DO UPDATE SET created_at = excluded.created_at, created_by = excluded.created_by
		WHERE EXISTS (SELECT 1 FROM customer_identities i
			WHERE i.customer_id IN (excluded.customer_id, excluded.other_id) AND i.until > customer_distinctions.created_at)`

	deleteDistinctions = `DELETE FROM customer_distinctions WHERE customer_id = $1 OR other_id = $1`

	distinctionRecords = "customer_distinctions"
)

// Dismiss remembers that two customers are two persons. It returns apierr.CustomerNotFound, apierr.NoAccess and apierr.RecordErased.
func (s *Service) Dismiss(ctx context.Context, in DismissInput) (endpoint.Message, error) {
	answer := endpoint.Confirm(ctx, s.texts, "customers.two_persons")
	caller := access.From(ctx)
	return answer, s.db.InTx(ctx, func(tx *store.Tx) error {
		for _, id := range []string{in.ID, in.Other} {
			if err := s.Allow(ctx, tx, id, access.Update); err != nil {
				return err
			}
		}
		if in.ID == in.Other {
			return apierr.Invalid("other", "customers.same_customer")
		}
		added, err := tx.Exec(ctx, insertDistinction, min(in.ID, in.Other), max(in.ID, in.Other), tx.Now(), caller.UserID)
		if err != nil || added == 0 {
			return err
		}
		for _, id := range []string{in.ID, in.Other} {
			tx.Audit(store.AuditEntry{Actor: caller.UserID, Action: "customers.dismiss_duplicate", RecType: distinctionRecords, RecID: id})
		}
		return nil
	})
}

// keyBatch is the number of customers that one transaction gives their keys.
const keyBatch = 100

const (
	selectUnkeyed = `
		SELECT id, type, first_name, last_name, date_of_birth, version, erased_at FROM customers
		WHERE keyed_version <> version ORDER BY id LIMIT $1`

	deleteNameKeys = `DELETE FROM customer_name_keys WHERE customer_id = $1`

	insertNameKey = `INSERT INTO customer_name_keys (name_key, customer_id) VALUES ($1, $2)`

	setKeyed = `UPDATE customers SET keyed_version = $2 WHERE id = $1`

	selectAnyUnkeyed = `SELECT id FROM customers WHERE keyed_version <> version LIMIT 1`

	selectAnyKey = `SELECT customer_id FROM customer_name_keys LIMIT 1`
)

func (c Customer) nameKind() names.Kind {
	if c.Type == Business {
		return names.Organisation
	}
	return names.Person
}

// nameKeys returns the keys by which a search for duplicates finds the customer.
func (c Customer) nameKeys() []string {
	keys := names.Parse(c.name(), c.nameKind()).Keys()
	if !c.DateOfBirth.IsZero() {
		keys = append(keys, c.DateOfBirth.String())
	}
	return keys
}

// FillNameKeys computes the keys of customers that were written since the last search for duplicates. It does nothing in a bank that
// has never searched. It may be interrupted and run again.
func (s *Service) FillNameKeys(ctx context.Context) error {
	begun, err := store.Exists(ctx, s.db, selectAnyKey)
	if err == nil && begun {
		_, err = s.keyed(ctx)
	}
	return err
}

// keyed reports whether all customers have their keys. It computes the missing ones until the context ends.
func (s *Service) keyed(ctx context.Context) (bool, error) {
	for {
		missing, err := store.Exists(ctx, s.db, selectAnyUnkeyed)
		if err != nil || !missing {
			return err == nil, err
		}
		if err := s.fillNameKeys(context.WithoutCancel(ctx)); err != nil {
			return false, err
		}
		if ctx.Err() != nil {
			return false, nil //nolint:nilerr // the answer says that it is not complete
		}
	}
}

// fillNameKeys computes the keys of the next batch.
func (s *Service) fillNameKeys(ctx context.Context) error {
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		found, err := store.All(ctx, tx, func(row store.Scanner) (c Customer, err error) {
			err = row.Scan(&c.ID, &c.Type, &c.FirstName, &c.LastName, &c.DateOfBirth, &c.version, &c.ErasedAt)
			return c, err
		}, selectUnkeyed, keyBatch)
		if err != nil {
			return err
		}
		for _, c := range found {
			if err := writeNameKeys(ctx, tx, c); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("write the keys of names: %w", err)
	}
	return nil
}

func writeNameKeys(ctx context.Context, tx *store.Tx, c Customer) error {
	if _, err := tx.Exec(ctx, deleteNameKeys, c.ID); err != nil {
		return err
	}
	if !c.Erased() {
		for _, key := range c.nameKeys() {
			if _, err := tx.Exec(ctx, insertNameKey, key, c.ID); err != nil {
				return err
			}
		}
	}
	_, err := tx.Exec(ctx, setKeyed, c.ID, c.version)
	return err
}

// agreements returns what two customers have in common besides their names.
func agreements(a, b Customer) []string {
	found := []string{}
	add := func(what string, agrees bool) {
		if agrees {
			found = append(found, what)
		}
	}
	_, x := a.fromMetadata()
	_, y := b.fromMetadata()
	add("date_of_birth", !a.DateOfBirth.IsZero() && a.DateOfBirth == b.DateOfBirth)
	add("email", a.Email != "" && types.Email(a.Email).Key() == types.Email(b.Email).Key())
	add("phone", a.Phone != nil && types.EmptyIfNil(a.Phone) == types.EmptyIfNil(b.Phone))
	add("address", sameAddress(a.address(), b.address()))
	add("external_id", x != "" && x == y)
	return found
}

// sameAddress reports whether two addresses have the same street, and the same postal code or city.
func sameAddress(a, b *Address) bool {
	same := func(x, y string) bool { return x != "" && normalized(x) == normalized(y) }
	return same(a.Street, b.Street) && (same(a.PostalCode, b.PostalCode) || same(a.City, b.City))
}
