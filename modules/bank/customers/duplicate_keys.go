package customers

import (
	"context"
	"fmt"

	"kontor/modules/kit/names"
	"kontor/modules/kit/types"
	"kontor/store"
)

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
	begun, err := store.All(ctx, s.db, store.Text, selectAnyKey)
	if err != nil || len(begun) == 0 {
		return err
	}
	for more := true; more && err == nil; {
		more, err = s.fillNameKeys(ctx)
	}
	return err
}

// keyed reports whether all customers have their keys. It computes the missing ones until the context ends.
func (s *Service) keyed(ctx context.Context) (bool, error) {
	for {
		missing, err := store.All(ctx, s.db, store.Text, selectAnyUnkeyed)
		if err != nil || len(missing) == 0 {
			return err == nil, err
		}
		if _, err = s.fillNameKeys(context.WithoutCancel(ctx)); err != nil {
			return false, err
		}
		if ctx.Err() != nil {
			return false, nil //nolint:nilerr // the answer says that it is not complete
		}
	}
}

// fillNameKeys computes the keys of the next batch. more reports whether there may be another.
func (s *Service) fillNameKeys(ctx context.Context) (more bool, err error) {
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
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
		more = len(found) == keyBatch
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("write the keys of names: %w", err)
	}
	return more, nil
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
