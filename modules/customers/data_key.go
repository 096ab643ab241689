package customers

import (
	"context"
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
)

const (
	selectKeyStatement = `SELECT key_sealed FROM customer_keys WHERE customer_id = $1`

	insertKeyStatement = `
		INSERT INTO customer_keys (customer_id, key_sealed, created_at)
		SELECT id, $2, $3 FROM customers WHERE id = $1 AND erased_at IS NULL
		ON CONFLICT (customer_id) DO NOTHING`

	deleteKeyStatement = `DELETE FROM customer_keys WHERE customer_id = $1`
)

// readKey returns the data key of a customer, or nil if there is none: UnsealWith then decrypts values of earlier versions only.
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

// ensureKey returns the data key of a customer, who gets one if there is none. It runs outside a transaction. It returns
// apierr.RecordErased for an erased customer.
func (s *Service) ensureKey(ctx context.Context, customerID string) ([]byte, error) {
	key, err := s.readKey(ctx, s.db, customerID)
	if key != nil || err != nil {
		return key, err
	}
	sealed, err := s.db.Seal(keysTable, keyColumn, customerID, store.NewDataKey())
	if err != nil {
		return nil, err
	}
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec(ctx, insertKeyStatement, customerID, sealed, tx.Now())
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
