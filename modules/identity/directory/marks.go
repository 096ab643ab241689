package directory

import (
	"context"
	"fmt"

	"kontor/modules/kit/records"
	"kontor/store"
)

const (
	insertMark = `
		INSERT INTO former_marks (user_id, kind, digest, until) VALUES ($1, $2, $3, $4)
		ON CONFLICT (user_id, kind, digest) DO UPDATE SET until = excluded.until`

	selectMarks = `SELECT kind, digest FROM former_marks WHERE user_id = $1`

	selectNamesOf = `
		SELECT 'name', display_name FROM users WHERE id = $1 AND display_name <> ''
		UNION ALL
		SELECT CASE type WHEN 'username' THEN 'name' ELSE 'address' END, value FROM credentials WHERE user_id = $1 AND validated = TRUE`

	selectByMark = `SELECT user_id FROM former_marks WHERE digest = $1 AND kind = 'address'`

	selectByAddress = `SELECT user_id FROM credentials WHERE value_key = $1 AND type <> 'username' AND validated = TRUE`

	deleteMarks = `DELETE FROM former_marks WHERE user_id = $1`
)

// The kinds of marks.
const (
	markName    = "name"
	markAddress = "address"
)

// Marks returns the marks of a user: the display name, user names and validated addresses, also former ones.
func (s *Service) Marks(ctx context.Context, q store.Querier, userID string) (records.Marks, error) {
	var all records.Marks
	add := func(kind string, digests ...string) {
		if kind == markName {
			all.Names = append(all.Names, digests...)
		} else {
			all.Addresses = append(all.Addresses, digests...)
		}
	}
	for _, statement := range []string{selectMarks, selectNamesOf} {
		rows, err := store.All(ctx, q, func(row store.Scanner) (pair [2]string, err error) {
			err = row.Scan(&pair[0], &pair[1])
			return pair, err
		}, statement, userID)
		if err != nil {
			return all, fmt.Errorf("read the marks of a user: %w", err)
		}
		for _, row := range rows {
			switch {
			case statement == selectMarks:
				add(row[0], row[1])
			case row[0] == markName:
				add(markName, records.NameMarks(s.db, row[1])...)
			default:
				add(markAddress, records.AddressMarks(s.db, row[1])...)
			}
		}
	}
	return all, nil
}

// WithAddress returns the users who have validated an address, and those who gave up one with one of the digests.
func (s *Service) WithAddress(ctx context.Context, q store.Querier, address string, digests []string) ([]string, error) {
	users, err := store.All(ctx, q, store.Text, selectByAddress, LoginKey(address))
	if err != nil {
		return nil, fmt.Errorf("find the users of an address: %w", err)
	}
	for _, digest := range digests {
		former, err := store.All(ctx, q, store.Text, selectByMark, digest)
		if err != nil {
			return nil, fmt.Errorf("find the former users of an address: %w", err)
		}
		users = append(users, former...)
	}
	return users, nil
}

// customers is implemented by the module customers.
type customers interface {
	// AddressGivenUp keeps that customers with an address belong to the user who gives it up.
	AddressGivenUp(ctx context.Context, tx *store.Tx, address string) error
}

// SetCustomers registers the module that is called when a user gives up an address; it breaks an initialisation cycle.
func (s *Service) SetCustomers(c customers) { s.customers = c }

// keepName stores the mark of a former name of a user.
func (s *Service) keepName(ctx context.Context, tx *store.Tx, userID, name string) error {
	if name == "" {
		return nil
	}
	return keepMark(ctx, tx, userID, markName, records.NameMark(s.db, name))
}

// keepCredential stores the mark of a validated credential that a user gives up.
func (s *Service) keepCredential(ctx context.Context, tx *store.Tx, c Credential) error {
	switch {
	case !c.Validated:
		return nil
	case c.Type == Username:
		return s.keepName(ctx, tx, c.UserID, c.Value)
	}
	if s.customers != nil {
		if err := s.customers.AddressGivenUp(ctx, tx, c.Value); err != nil {
			return err
		}
	}
	return keepMark(ctx, tx, c.UserID, markAddress, records.AddressMark(s.db, c.Value))
}

func keepMark(ctx context.Context, tx *store.Tx, userID, kind, digest string) error {
	_, err := tx.Exec(ctx, insertMark, userID, kind, digest, tx.Now())
	return err
}
