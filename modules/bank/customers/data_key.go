package customers

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"kontor/modules/kit/records"
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

// A rotation of the master key seals the numbers of documents and the changes of identities again. Digests in the audit trail
// cover the hashes of numbers and the sealed changes, so that each new value has an audit entry.

const (
	selectOldDocuments = `
		SELECT id, customer_id, ` + givenType + `, number_key, number_sealed FROM kyc_documents
		WHERE number_sealed <> '' AND number_sealed NOT LIKE $1 AND id > $2
		ORDER BY id LIMIT $3`

	updateNumber = `
		UPDATE kyc_documents SET number_key = $3, number_sealed = $4
		WHERE id = $1 AND number_sealed = $2`

	selectOldChanges = `
		SELECT id, customer_id, changes_sealed FROM kyc_changes
		WHERE changes_sealed <> '' AND changes_sealed NOT LIKE $1 AND id > $2
		ORDER BY id LIMIT $3`

	updateChanges = `UPDATE kyc_changes SET changes_sealed = $3 WHERE id = $1 AND changes_sealed = $2`
)

// oldDocuments returns documents whose numbers are not sealed with the newest key.
func (s *Service) oldDocuments(ctx context.Context, newest, after string, limit int) ([]store.SealedValue, error) {
	return store.All(ctx, s.db, func(row store.Scanner) (store.SealedValue, error) {
		var id, customerID, given, key, sealed string
		err := row.Scan(&id, &customerID, &given, &key, &sealed)
		return store.SealedValue{After: id, Reseal: func(ctx context.Context) (func(context.Context, *store.Tx) error, error) {
			dataKey, err := s.readKey(ctx, s.db, customerID)
			if err != nil {
				return nil, err
			}
			number, err := s.open(dataKey, documentsTable, numberColumn, customerID+"/"+key, sealed)
			if err != nil {
				return nil, err
			}
			newKey := s.numberKey(given, string(number))
			resealed, err := s.close(dataKey, documentsTable, numberColumn, customerID+"/"+newKey, number)
			return func(ctx context.Context, tx *store.Tx) error {
				return replaceProven(ctx, tx, documentProof, id, updateNumber, id, sealed, newKey, resealed)
			}, err
		}}, err
	}, selectOldDocuments, newest, after, limit)
}

// oldChanges returns entries of the KYC history that are not sealed with the newest key.
func (s *Service) oldChanges(ctx context.Context, newest, after string, limit int) ([]store.SealedValue, error) {
	return store.All(ctx, s.db, func(row store.Scanner) (store.SealedValue, error) {
		var id, customerID, sealed string
		err := row.Scan(&id, &customerID, &sealed)
		return store.SealedValue{After: id, Reseal: func(ctx context.Context) (func(context.Context, *store.Tx) error, error) {
			dataKey, err := s.readKey(ctx, s.db, customerID)
			if err != nil {
				return nil, err
			}
			place := customerID + "/" + id
			changes, err := s.open(dataKey, changesTable, changesColumn, place, sealed)
			if err != nil {
				return nil, err
			}
			resealed, err := s.close(dataKey, changesTable, changesColumn, place, changes)
			return func(ctx context.Context, tx *store.Tx) error {
				return replaceProven(ctx, tx, changeProof, id, updateChanges, id, sealed, resealed)
			}, err
		}}, err
	}, selectOldChanges, newest, after, limit)
}

// replaceProven runs an update and writes the audit entry of its record, if the record still has the old value.
func replaceProven(ctx context.Context, tx *store.Tx, proof records.Proof, id, update string, args ...any) error {
	was, err := proof.Read(ctx, tx, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	changed, err := tx.Exec(ctx, update, args...)
	if err != nil || changed == 0 {
		return err
	}
	return proof.Audit(ctx, tx, "keys.reseal", id, was)
}

// currentDocument returns the document sealed with the newest key, in case a rotation has begun since it was sealed.
func (s *Service) currentDocument(tx *store.Tx, d sealedDocument) (sealedDocument, error) {
	if tx.IsNewest(d.number) {
		return d, nil
	}
	number, err := s.open(d.dataKey, documentsTable, numberColumn, d.customerID+"/"+d.numberKey, d.number)
	if err != nil {
		return d, err
	}
	d.numberKey, d.olderKeys = s.numberKey(d.given, string(number)), s.olderNumberKeys(d.given, string(number))
	d.number, err = s.close(d.dataKey, documentsTable, numberColumn, d.customerID+"/"+d.numberKey, number)
	return d, err
}

// sealCurrent seals the changes of an entry with the newest key, in case a rotation has begun since they were sealed.
func (s *Service) sealCurrent(tx *store.Tx, customerID string, e *historyEntry) (err error) {
	if e.changes == "" || tx.IsNewest(e.changes) {
		return nil
	}
	place := customerID + "/" + e.id
	changes, err := s.open(e.dataKey, changesTable, changesColumn, place, e.changes)
	if err == nil {
		e.changes, err = s.close(e.dataKey, changesTable, changesColumn, place, changes)
	}
	return err
}
