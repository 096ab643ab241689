package customers

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"kontor/store"
)

// fillBatch is the number of customers that one transaction gives their external id.
const fillBatch = 200

const (
	selectWithoutExternalID = `
		SELECT id, metadata FROM customers
		WHERE id > $1 AND external_id = '' AND metadata LIKE '%"external_id"%' ORDER BY id LIMIT $2`

	setExternalID = `UPDATE customers SET external_id = $2 WHERE id = $1 AND external_id = ''`
)

// fillExternalIDs computes the external ids of customers that earlier versions have stored. It may be interrupted and run again.
func (s *Service) fillExternalIDs(ctx context.Context) error {
	for after, more := "", true; more; {
		err := s.db.InTx(ctx, func(tx *store.Tx) error {
			found, err := store.All(ctx, tx, func(row store.Scanner) (c Customer, err error) {
				err = row.Scan(&c.ID, (*[]byte)(&c.Metadata))
				return c, err
			}, selectWithoutExternalID, after, fillBatch)
			if err != nil {
				return err
			}
			for _, c := range found {
				after = c.ID
				if _, id := c.fromMetadata(); id != "" {
					if _, err := tx.Exec(ctx, setExternalID, c.ID, id); err != nil {
						return err
					}
				}
			}
			more = len(found) == fillBatch
			return nil
		})
		if err != nil {
			return fmt.Errorf("fill the external ids of customers: %w", err)
		}
	}
	return nil
}

const withExternalID = `external_id = $2 AND external_id <> '' AND erased_at IS NULL`

// findExternal returns the ids of the customers with an external id that the caller may list, at most two.
func findExternal(ctx context.Context, q store.Querier, externalID string) ([]string, error) {
	found, err := table.Find(ctx, q, 2, withExternalID, externalID)
	ids := make([]string, len(found))
	for i, c := range found {
		ids[i] = c.ID
	}
	return ids, err
}

// addExternalID returns metadata with an external id. ok is false if the metadata is no object, or has another external id.
func addExternalID(metadata jsontext.Value, externalID string) (with jsontext.Value, ok bool) {
	with = metadata.Clone()
	if len(with) == 0 {
		with = jsontext.Value("{}")
	}
	if with.Kind() != '{' || with.Compact() != nil {
		return metadata, false
	}
	_, known := Customer{Metadata: with}.fromMetadata()
	if known == externalID {
		return with, true
	}
	if known != "" {
		return metadata, false
	}
	quoted, err := jsontext.AppendQuote(nil, externalID)
	if err != nil {
		return metadata, false
	}
	body := with[:len(with)-1]
	if len(body) > 1 {
		body = append(body, ',')
	}
	with = append(append(append(body, `"external_id":`...), quoted...), '}')
	return with, with.IsValid()
}
