package customers

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

// Each customer has a data key, from the first sealed value on. All sealed values of the customer need it: the erasure of the
// customer deletes it. Values of earlier versions were sealed without a data key; the erasure overwrites them like all others.

const (
	keysTable = "customer_keys"
	keyColumn = "key"
	keyBytes  = 32
)

const (
	selectKeyStatement = `SELECT key_sealed FROM customer_keys WHERE customer_id = $1`

	insertKeyStatement = `
		INSERT INTO customer_keys (customer_id, key_sealed, created_at)
		SELECT id, $2, $3 FROM customers WHERE id = $1 AND erased_at IS NULL
		ON CONFLICT (customer_id) DO NOTHING`

	deleteKeyStatement = `DELETE FROM customer_keys WHERE customer_id = $1`
)

// readKey returns the data key of a customer, or nil if there is none: open then decrypts values of earlier versions only.
func (s *Service) readKey(ctx context.Context, q store.Querier, customerID string) ([]byte, error) {
	var sealed string
	err := q.QueryRow(ctx, selectKeyStatement, customerID).Scan(&sealed)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the key of a customer: %w", err)
	}
	return s.db.Unseal(keysTable, keyColumn, customerID, sealed)
}

// open decrypts a value of a customer. Values of earlier versions were sealed without the data key.
func (s *Service) open(dataKey []byte, table, column, rowID, sealed string) ([]byte, error) {
	if dataKey == nil {
		return s.db.Unseal(table, column, rowID, sealed)
	}
	plain, err := s.db.UnsealWith(dataKey, table, column, rowID, sealed)
	if err != nil {
		if earlier, unsealed := s.db.Unseal(table, column, rowID, sealed); unsealed == nil {
			return earlier, nil
		}
	}
	return plain, err
}

// close encrypts a value of a customer, with the data key if there is one.
func (s *Service) close(dataKey []byte, table, column, rowID string, plain []byte) (string, error) {
	if dataKey == nil {
		return s.db.Seal(table, column, rowID, plain)
	}
	return s.db.SealWith(dataKey, table, column, rowID, plain)
}

// registerKeys registers the data keys for rotations of the master key.
func registerKeys(db *store.DB) {
	db.RegisterSealed(store.SealedColumn{
		Table: keysTable, Column: keyColumn,
		Select: `SELECT customer_id, customer_id, key_sealed FROM customer_keys
			WHERE key_sealed NOT LIKE $1 AND customer_id > $2 ORDER BY customer_id LIMIT $3`,
		Update: `UPDATE customer_keys SET key_sealed = $3 WHERE customer_id = $1 AND key_sealed = $2`,
	})
}

// ensureKey returns the data key of a customer, who gets one if there is none. It runs outside a transaction. It returns
// apierr.RecordErased for an erased customer.
func (s *Service) ensureKey(ctx context.Context, customerID string) ([]byte, error) {
	key, err := s.readKey(ctx, s.db, customerID)
	if key != nil || err != nil {
		return key, err
	}
	key = make([]byte, keyBytes)
	rand.Read(key) // does not fail: it would end the program
	sealed, err := s.db.Seal(keysTable, keyColumn, customerID, key)
	if err != nil {
		return nil, err
	}
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		current, err := tx.Reseal(keysTable, keyColumn, customerID, sealed) // a rotation may have begun
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, insertKeyStatement, customerID, current, tx.Now())
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("store the key of a customer: %w", err)
	}
	if key, err = s.readKey(ctx, s.db, customerID); key == nil && err == nil {
		err = apierr.RecordErased
	}
	return key, err
}

// prepareKey makes sure that a customer whose verification has begun has a data key: an update may seal changes of the identity.
func (s *Service) prepareKey(ctx context.Context, id string) error {
	c, err := table.Get(ctx, s.db, id, access.Update)
	if err != nil || c.Erased() || c.KYCStatus == NotStarted {
		return err
	}
	_, err = s.ensureKey(ctx, id)
	return err
}
