package customers

import (
	"context"
	"errors"

	"kontor/modules/kit/records"
	"kontor/store"
)

// A rotation of the master key seals the numbers of documents and the changes of identities again. Digests in the audit trail
// cover the hashes of numbers and the sealed changes, so that each new value has an audit entry.

const resealAction = "keys.reseal"

const (
	selectOldDocuments = `
		SELECT id, customer_id, type, number_key, number_sealed FROM kyc_documents
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
	rows, err := s.db.Query(ctx, selectOldDocuments, newest, after, limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var values []store.SealedValue
	for rows.Next() {
		var id, customerID, kind, key, sealed string
		if err := rows.Scan(&id, &customerID, &kind, &key, &sealed); err != nil {
			return nil, err
		}
		values = append(values, store.SealedValue{After: id, Reseal: func(ctx context.Context) (func(context.Context, *store.Tx) error, error) {
			dataKey, err := s.readKey(ctx, s.db, customerID)
			if err != nil {
				return nil, err
			}
			number, err := s.open(dataKey, documentsTable, numberColumn, customerID+"/"+key, sealed)
			if err != nil {
				return nil, err
			}
			newKey := s.numberKey(DocumentType(kind), string(number))
			resealed, err := s.close(dataKey, documentsTable, numberColumn, customerID+"/"+newKey, number)
			return func(ctx context.Context, tx *store.Tx) error {
				return replaceProven(ctx, tx, documentProof, id, updateNumber, id, sealed, newKey, resealed)
			}, err
		}})
	}
	return values, rows.Err()
}

// oldChanges returns entries of the KYC history that are not sealed with the newest key.
func (s *Service) oldChanges(ctx context.Context, newest, after string, limit int) ([]store.SealedValue, error) {
	rows, err := s.db.Query(ctx, selectOldChanges, newest, after, limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var values []store.SealedValue
	for rows.Next() {
		var id, customerID, sealed string
		if err := rows.Scan(&id, &customerID, &sealed); err != nil {
			return nil, err
		}
		values = append(values, store.SealedValue{After: id, Reseal: func(ctx context.Context) (func(context.Context, *store.Tx) error, error) {
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
		}})
	}
	return values, rows.Err()
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
	return proof.Audit(ctx, tx, resealAction, id, was)
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
	d.numberKey, d.olderKeys = s.numberKey(d.kind, string(number)), s.olderNumberKeys(d.kind, string(number))
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
