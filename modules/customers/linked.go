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

	selectByFormerIdentity = `SELECT customer_id FROM customer_identities WHERE name_hash = $1 AND birth_hash = $2`

	selectByCreator = `SELECT id FROM customers WHERE created_by = $1 AND erased_at IS NULL ORDER BY id`

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

// OfCreator returns the customers that a user has created. It returns none for users who may update all customers: they record
// customers of the bank.
func (s *Service) OfCreator(ctx context.Context, q store.Querier, userID string) ([]string, error) {
	reviewer, err := store.All(ctx, q, store.Text, selectIsReviewer, userID, access.Administrator)
	if err != nil || len(reviewer) > 0 {
		return nil, err
	}
	return store.All(ctx, q, store.Text, selectByCreator, userID)
}

// AddressGivenUp keeps that customers with an address belong to the user who gives it up.
func (s *Service) AddressGivenUp(ctx context.Context, tx *store.Tx, address string) error {
	_, err := tx.Exec(ctx, keepAddressStatement, types.Email(address).Key(), address, records.AddressMark(s.db, address), tx.Now())
	return err
}

// notOwn returns the condition that a case is not about the caller: it would show them a pending decision about themselves.
func (s *Service) notOwn(ctx context.Context) ([]list.Where, error) {
	caller := access.From(ctx).UserID
	own, err := s.OfUser(ctx, s.db, caller)
	if err != nil {
		return nil, err
	}
	all := ids(own)
	if err := all.add(ctx, s.db, selectExcludedCustomers, caller); err != nil || len(all) == 0 {
		return nil, err
	}
	return []list.Where{{SQL: "kyc_cases.customer_id NOT IN (" + store.In(1, len(all)) + ")", Args: store.AppendIn(nil, all)}}, nil
}
