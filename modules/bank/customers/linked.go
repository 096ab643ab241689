package customers

import (
	"context"
	"fmt"
	"slices"

	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/store"
)

// Customers of one person are found by all evidence: addresses and identities, also former ones. Names count with the same known date
// of birth only, because many people share a name.

const (
	selectByCredentials = `
		SELECT c.id FROM customers c JOIN user_credentials u ON u.type = 'email' AND u.value_key = c.email_key
		WHERE u.user_id = $1 AND u.validated = TRUE AND c.erased_at IS NULL
		UNION
		SELECT c.id FROM customers c JOIN user_credentials u ON u.type = 'phone' AND u.value = c.phone
		WHERE u.user_id = $1 AND u.validated = TRUE AND c.erased_at IS NULL`

	selectByFormerAddress = `SELECT customer_id FROM customer_addresses WHERE digest = $1`

	selectByIdentity = `
		SELECT id FROM customers
		WHERE last_name_key IN ($1, $2) AND first_name_key IN ($1, $2) AND date_of_birth = $3 AND erased_at IS NULL`

	selectByEmail = `SELECT id FROM customers WHERE email_key = $1 AND erased_at IS NULL`

	sameNames = `(c.last_name_key = $2 AND c.first_name_key = $3 OR c.last_name_key = $3 AND c.first_name_key = $2)`

	selectByPhone = `SELECT c.id FROM customers c WHERE c.phone = $1 AND ` + sameNames + ` AND c.erased_at IS NULL`

	selectByFormerPhone = `
		SELECT a.customer_id FROM customer_addresses a JOIN customers c ON c.id = a.customer_id WHERE a.digest = $1 AND ` + sameNames

	selectByFormerIdentity = `SELECT customer_id FROM customer_identities WHERE name_hash = $1 AND birth_hash = $2`

	selectExcludedCustomers = `
		SELECT DISTINCT d.customer_id FROM kyc_decision_exclusions x JOIN kyc_decisions d ON d.id = x.decision_id
		WHERE x.user_id = $1 AND x.reason = 'customer'`

	selectIsReviewer = `
		SELECT h.user_id FROM held_roles h
		WHERE h.user_id = $1 AND (h.role_id = $2 OR h.role_id IN (
			SELECT g.principal_id FROM permissions g WHERE g.rec_type = 'customers' AND g.rec_id = '' AND g.permission = 'update'))
		UNION
		SELECT g.principal_id FROM permissions g
		WHERE g.principal_id = $1 AND g.rec_type = 'customers' AND g.rec_id = '' AND g.permission = 'update'`

	keepAddressStatement = `
		INSERT INTO customer_addresses (customer_id, digest, until)
		SELECT id, $3, CAST($4 AS BIGINT) FROM customers WHERE (email_key = $1 OR phone = $2) AND erased_at IS NULL
		ON CONFLICT (customer_id, digest) DO UPDATE SET until = excluded.until`
)

// ids is a set of customers, in the order in which they were found.
type ids []string

func (all *ids) add(ctx context.Context, q store.Querier, statement string, args ...any) error {
	found, err := store.All(ctx, q, store.Text, statement, args...)
	if err != nil {
		return fmt.Errorf("find the customers of a person: %w", err)
	}
	for _, id := range found {
		if !slices.Contains(*all, id) {
			*all = append(*all, id)
		}
	}
	return nil
}

func (all *ids) addIdentities(ctx context.Context, q store.Querier, db *store.DB, identities []types.Identity) error {
	for _, i := range identities {
		if i.DateOfBirth == "" {
			continue
		}
		if err := all.add(ctx, q, selectByIdentity, types.Fold(i.LastName), types.Fold(i.FirstName), i.DateOfBirth); err != nil {
			return err
		}
		births := records.BirthMarks(db, i.DateOfBirth)
		for n, name := range records.NameMarks(db, i.FirstName, i.LastName) {
			if err := all.add(ctx, q, selectByFormerIdentity, name, births[n]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (all *ids) addFormerAddresses(ctx context.Context, q store.Querier, digests []string) error {
	for _, digest := range digests {
		if err := all.add(ctx, q, selectByFormerAddress, digest); err != nil {
			return err
		}
	}
	return nil
}

// OfUser returns the customers that are not erased and that are, or were, the same person as a user.
func (s *Service) OfUser(ctx context.Context, q store.Querier, userID string) ([]string, error) {
	var all ids
	if err := all.add(ctx, q, selectByCredentials, userID); err != nil {
		return nil, err
	}
	known, err := s.users.Marks(ctx, q, userID)
	if err != nil {
		return nil, err
	}
	if err := all.addFormerAddresses(ctx, q, known.Addresses); err != nil {
		return nil, err
	}
	identities, err := s.identities.Identities(ctx, q, userID)
	if err != nil {
		return nil, err
	}
	return all, all.addIdentities(ctx, q, s.db, identities)
}

// OfIdentities returns the customers that are not erased and that have, or had, one of the identities.
func (s *Service) OfIdentities(ctx context.Context, q store.Querier, identities []types.Identity) ([]string, error) {
	var all ids
	err := all.addIdentities(ctx, q, s.db, identities)
	return all, err
}

// SamePerson returns the customers and users who are, or were, the same person as a customer. Customers have, or had, one of its
// addresses or identities. Users have, or had, one of its addresses, or they created the customer and are it by other evidence. The
// identity is empty without a date of birth: many people share a name.
func (s *Service) SamePerson(ctx context.Context, q store.Querier, id string) (customers, users []string, identity types.Identity, err error) {
	c, err := table.GetUnchecked(ctx, q, id)
	if err != nil {
		return nil, nil, identity, err
	}
	former, err := store.All(ctx, q, store.Text, selectFormerAddresses, id)
	if err != nil {
		return nil, nil, identity, fmt.Errorf("read former addresses: %w", err)
	}
	for _, address := range c.addresses() {
		of, err := s.users.WithAddress(ctx, q, address, slices.Concat(records.AddressMarks(s.db, address), former))
		if err != nil {
			return nil, nil, identity, err
		}
		users = append(users, of...)
	}
	var all ids
	if err := s.addSameAddress(ctx, q, c, former, &all); err != nil {
		return nil, nil, identity, err
	}
	if err := s.addSameIdentity(ctx, q, c, &all); err != nil {
		return nil, nil, identity, err
	}
	own, err := s.OfUser(ctx, q, c.createdBy)
	if slices.Contains(own, id) {
		users = append(users, c.createdBy)
	}
	if !c.DateOfBirth.IsZero() {
		identity = c.identity()
	}
	return all, users, identity, err
}

// addSameAddress adds the customers that have, or had, an address of a customer. former are the digests of its former addresses. A phone
// number counts with the same names only, because families and companies share one.
func (s *Service) addSameAddress(ctx context.Context, q store.Querier, c Customer, former []string, all *ids) error {
	if err := all.add(ctx, q, selectByEmail, types.Email(c.Email).Key()); err != nil {
		return err
	}
	if err := all.addFormerAddresses(ctx, q, slices.Concat(former, records.AddressMarks(s.db, c.Email))); err != nil || c.Phone == nil {
		return err
	}
	first, last := types.Fold(c.FirstName), types.Fold(c.LastName)
	if err := all.add(ctx, q, selectByPhone, *c.Phone, last, first); err != nil {
		return err
	}
	for _, digest := range records.AddressMarks(s.db, *c.Phone) {
		if err := all.add(ctx, q, selectByFormerPhone, digest, last, first); err != nil {
			return err
		}
	}
	return nil
}

// addSameIdentity adds the customers that have, or had, the present or a former identity of a customer, with a known date of birth.
func (s *Service) addSameIdentity(ctx context.Context, q store.Querier, c Customer, all *ids) error {
	if err := all.addIdentities(ctx, q, s.db, []types.Identity{c.identity()}); err != nil {
		return err
	}
	former, err := selectIdentities(ctx, q, c.ID)
	for _, h := range former {
		if h.birth != "" && err == nil {
			err = all.add(ctx, q, selectByFormerIdentity, h.name, h.birth)
		}
	}
	return err
}

// CreatorOf returns the user who has created a customer. It is empty for users who may update all customers: they record customers of
// the bank.
func (s *Service) CreatorOf(ctx context.Context, q store.Querier, id string) (string, error) {
	c, err := table.GetUnchecked(ctx, q, id)
	if err != nil {
		return "", err
	}
	reviewer, err := store.All(ctx, q, store.Text, selectIsReviewer, c.createdBy, access.Administrator)
	if err != nil || len(reviewer) > 0 {
		return "", err
	}
	return c.createdBy, nil
}

// AddressGivenUp keeps that customers with an address belong to the user who gives it up.
func (s *Service) AddressGivenUp(ctx context.Context, tx *store.Tx, address string) error {
	_, err := tx.Exec(ctx, keepAddressStatement, types.Email(address).Key(), address, records.AddressMark(s.db, address), tx.Now())
	return err
}

// Own returns the customers that are, or were, the caller, as far as lists leave them out.
func (s *Service) Own(ctx context.Context, q store.Querier) ([]string, error) {
	caller := access.From(ctx).UserID
	own, err := s.OfUser(ctx, q, caller)
	if err != nil {
		return nil, err
	}
	all := ids(own)
	return all, all.add(ctx, q, selectExcludedCustomers, caller)
}

// notOwn returns the condition that a case is not about the caller: it would show them a pending decision about themselves.
func (s *Service) notOwn(ctx context.Context) ([]list.Where, error) {
	all, err := s.Own(ctx, s.db)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return []list.Where{{SQL: "kyc_cases.customer_id NOT IN (" + store.In(1, len(all)) + ")", Args: store.AppendIn(nil, all)}}, nil
}
