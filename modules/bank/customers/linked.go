package customers

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"kontor/modules/kit/evidence"
	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/store"
)

// Customers of one person are found by proven evidence: addresses and identities that are or were proven. Names count with the same known
// date of birth only, because many people share a name. Owners may record others than themselves: a record is about its owner if it has an
// address that they have validated.

const (
	selectOwned = `SELECT id FROM customers WHERE created_by = $1 AND by_staff = FALSE AND erased_at IS NULL`

	isOwned = `(c.by_staff = FALSE AND c.created_by = u.user_id)`

	selectByEmailOfUser = `
		SELECT c.id FROM customers c JOIN user_credentials u ON u.type = 'email' AND u.value_key = c.email_key
		WHERE u.user_id = $1 AND u.validated = TRUE AND (c.email_proven = TRUE OR ` + isOwned + `) AND c.erased_at IS NULL`

	selectByPhoneOfUser = `
		SELECT c.id FROM customers c JOIN user_credentials u ON u.type = 'phone' AND u.value = c.phone
		WHERE u.user_id = $1 AND u.validated = TRUE AND (c.phone_proven = TRUE OR ` + isOwned + `) AND c.erased_at IS NULL`

	selectByFormerAddress = `SELECT customer_id FROM customer_addresses WHERE proven = TRUE AND digest = $1`

	selectByEmail = `SELECT id FROM customers WHERE email_key = $1 AND email_proven = TRUE AND erased_at IS NULL`

	sameNames = `c.identity_proven = TRUE AND (c.last_name_key = $2 AND c.first_name_key = $3 OR c.last_name_key = $3 AND c.first_name_key = $2)`

	selectByPhone = `SELECT c.id FROM customers c WHERE c.phone = $1 AND c.phone_proven = TRUE AND ` + sameNames + ` AND c.erased_at IS NULL`

	selectByFormerPhone = `
		SELECT a.customer_id FROM customer_addresses a JOIN customers c ON c.id = a.customer_id
		WHERE a.digest = $1 AND a.proven = TRUE AND ` + sameNames

	selectByFormerIdentity = `SELECT customer_id FROM customer_identities WHERE proven = TRUE AND name_hash = $1 AND birth_hash = $2`

	selectExcludedCustomers = `
		SELECT d.customer_id FROM kyc_decision_exclusions x JOIN kyc_decisions d ON d.id = x.decision_id
		WHERE x.user_id = $1 AND x.reason = 'customer'`

	keepAddressStatement = `
		INSERT INTO customer_addresses (customer_id, digest, until, proven)
		SELECT id, $3, CAST($4 AS BIGINT), TRUE FROM customers
		WHERE (email_key = $1 AND (email_proven = TRUE OR by_staff = FALSE AND created_by = $5)
				OR phone = $2 AND (phone_proven = TRUE OR by_staff = FALSE AND created_by = $5))
			AND erased_at IS NULL
		ON CONFLICT (customer_id, digest) DO UPDATE SET until = excluded.until, proven = TRUE`
)

// union is a SELECT of customers that is built from several.
type union struct {
	parts []string
	args  []any
}

// add adds a SELECT, whose placeholders begin with $1.
func (u *union) add(sql string, args ...any) {
	u.parts = append(u.parts, store.Renumbered(sql, len(u.args)))
	u.args = append(u.args, args...)
}

func (u *union) addFormerAddresses(digests []evidence.Proven[string]) {
	if len(digests) > 0 {
		u.add(`SELECT customer_id FROM customer_addresses WHERE proven = TRUE AND digest IN (`+store.In(1, len(digests))+`)`,
			store.AppendIn(nil, evidence.Values(digests))...)
	}
}

// addIdentity adds the customers with a proven identity that is, or was, one of a person. The identity itself is proven, or said by the
// user whom it is held against.
func (u *union) addIdentity(db *store.DB, i types.Identity) {
	if i.DateOfBirth == "" {
		return
	}
	u.add(`SELECT id FROM customers
		WHERE last_name_key IN ($1, $2) AND first_name_key IN ($1, $2) AND date_of_birth = $3 AND identity_proven = TRUE AND erased_at IS NULL`,
		types.Fold(i.LastName), types.Fold(i.FirstName), i.DateOfBirth)
	births := records.BirthMarks(db, i.DateOfBirth)
	for n, name := range records.NameMarks(db, i.FirstName, i.LastName) {
		u.add(selectByFormerIdentity, name, births[n])
	}
}

func (u *union) sql() string { return strings.Join(u.parts, " UNION ") }

// ids returns the customers, each once.
func (u *union) ids(ctx context.Context, q store.Querier) ([]string, error) {
	if len(u.parts) == 0 {
		return nil, nil
	}
	found, err := store.All(ctx, q, store.Text, u.sql(), u.args...)
	if err != nil {
		return nil, fmt.Errorf("find the customers of a person: %w", err)
	}
	return found, nil
}

// ofUser returns the customers that are, or were, a user, as far as both sides are proven.
func (s *Service) ofUser(ctx context.Context, q store.Querier, userID string) (u union, said []evidence.Claimed[types.Identity], err error) {
	for _, statement := range []string{selectByEmailOfUser, selectByPhoneOfUser} {
		u.add(statement, userID)
	}
	known, err := s.users.Marks(ctx, q, userID)
	if err != nil {
		return u, nil, err
	}
	u.addFormerAddresses(known.Addresses)
	identities, said, err := s.identities.Identities(ctx, q, userID)
	for _, i := range identities {
		u.addIdentity(s.db, i.Value())
	}
	return u, said, err
}

// OfUser returns the customers that are not erased and that are, or were, the same person as a user.
func (s *Service) OfUser(ctx context.Context, q store.Querier, userID string) ([]string, error) {
	u, _, err := s.ofUser(ctx, q, userID)
	if err != nil {
		return nil, err
	}
	return u.ids(ctx, q)
}

// OfIdentities returns the customers that are not erased and that have, or had, one of the identities.
func (s *Service) OfIdentities(ctx context.Context, q store.Querier, identities []evidence.Proven[types.Identity]) ([]string, error) {
	var u union
	for _, i := range identities {
		u.addIdentity(s.db, i.Value())
	}
	return u.ids(ctx, q)
}

// SamePerson returns the customers and users who are, or were, the same person as a customer: those that have, or had, one of its proven
// addresses or identities, and its owner, if it is about them. The identity is nil if it is not proven, or without a date of birth: many people share a name.
func (s *Service) SamePerson(ctx context.Context, q store.Querier, id string) (customers, users []string, identity *evidence.Proven[types.Identity], err error) {
	c, err := table.GetUnchecked(ctx, q, id)
	if err != nil {
		return nil, nil, nil, err
	}
	former, err := store.All(ctx, q, func(row store.Scanner) (evidence.Proven[string], error) {
		digest, err := store.Text(row)
		return evidence.Recorded(digest), err
	}, selectFormerAddresses, id)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("read former addresses: %w", err)
	}
	if users, err = s.users.WithFormerAddress(ctx, q, former); err != nil {
		return nil, nil, nil, err
	}
	for _, a := range c.addresses() {
		if !a.proven {
			continue
		}
		of, err := s.users.WithAddress(ctx, q, evidence.Recorded(a.text))
		if err != nil {
			return nil, nil, nil, err
		}
		users = append(users, of...)
	}
	if owner := c.owner(); owner != "" {
		about, err := s.OfUser(ctx, q, owner)
		if err != nil {
			return nil, nil, nil, err
		}
		if slices.Contains(about, id) {
			users = append(users, owner)
		}
	}
	var u union
	s.addSameAddress(&u, c, former)
	if err := s.addSameIdentity(ctx, q, &u, c); err != nil {
		return nil, nil, nil, err
	}
	if c.proven.identity && !c.DateOfBirth.IsZero() {
		proven := evidence.Recorded(c.identity())
		identity = &proven
	}
	customers, err = u.ids(ctx, q)
	return customers, users, identity, err
}

// addSameAddress adds the customers that have, or had, a proven address of a customer. former are the digests of its former addresses. A
// phone number counts with the same names only, because families and companies share one.
func (s *Service) addSameAddress(u *union, c Customer, former []evidence.Proven[string]) {
	u.addFormerAddresses(former)
	if c.proven.email {
		u.add(selectByEmail, types.Email(c.Email).Key())
		for _, digest := range records.AddressMarks(s.db, c.Email) {
			u.add(selectByFormerAddress, digest)
		}
	}
	if !c.proven.phone || !c.proven.identity {
		return
	}
	first, last := types.Fold(c.FirstName), types.Fold(c.LastName)
	u.add(selectByPhone, *c.Phone, last, first)
	for _, digest := range records.AddressMarks(s.db, *c.Phone) {
		u.add(selectByFormerPhone, digest, last, first)
	}
}

// addSameIdentity adds the customers that have, or had, the present or a former identity of a customer, proven and with a known date of
// birth.
func (s *Service) addSameIdentity(ctx context.Context, q store.Querier, u *union, c Customer) error {
	if c.proven.identity {
		u.addIdentity(s.db, c.identity())
	}
	former, err := selectIdentities(ctx, q, c.ID)
	for _, h := range former {
		if h.birth != "" && err == nil {
			u.add(selectByFormerIdentity, h.name, h.birth)
		}
	}
	return err
}

// CreatorOf returns the user who has recorded themselves as a customer; empty for a record of the bank.
func (s *Service) CreatorOf(ctx context.Context, q store.Querier, id string) (string, error) {
	c, err := table.GetUnchecked(ctx, q, id)
	return c.owner(), err
}

// AddressGivenUp keeps that customers with an address belong to the user who gives it up: those to which staff gave it, and the user's own.
func (s *Service) AddressGivenUp(ctx context.Context, tx *store.Tx, userID string, address evidence.Proven[string]) error {
	text := address.Value()
	_, err := tx.Exec(ctx, keepAddressStatement, types.Email(text).Key(), text, records.AddressMark(s.db, text), tx.Now(), userID)
	return err
}

// Own returns a SELECT of the customers that are, or were, the caller. Claims of callers about themselves count against them.
func (s *Service) Own(ctx context.Context, q store.Querier) (records.Selection, error) {
	caller := access.From(ctx).UserID
	u, said, err := s.ofUser(ctx, q, caller)
	if err != nil {
		return records.Selection{}, err
	}
	for _, i := range evidence.Said(said) {
		u.addIdentity(s.db, i)
	}
	u.add(selectOwned, caller)
	u.add(selectExcludedCustomers, caller)
	return records.Selection{SQL: u.sql(), Args: u.args,
		Tables: []string{"customers", "credentials", "customer_addresses", "customer_identities", "kyc_decision_exclusions"}}, nil
}

// notOwn returns the condition that a case is not about the caller: it would show them a pending decision about themselves.
func (s *Service) notOwn(ctx context.Context) (list.Where, error) {
	own, err := s.Own(ctx, s.db)
	return list.Where{SQL: "kyc_cases.customer_id NOT IN (" + own.SQL + ")", Args: own.Args, Tables: own.Tables}, err
}
