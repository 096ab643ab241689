package customers

import (
	"context"
	"fmt"

	"kontor/modules/notice"
	"kontor/modules/value"
	"kontor/server/access"
	"kontor/store"
)

// expiryBatch is how many customers one transaction of the daily job changes.
const expiryBatch = 100

// RunExpiry is the daily job: it expires verified customers whose last valid identity document has expired, and tells
// the creators of customers once for each document that expires soon. It may run at any time and again.
func (s *Service) RunExpiry(ctx context.Context) error {
	today := value.DateOf(s.db.Now().Std())
	if err := s.inBatches(ctx, today, selectExpired, s.expire); err != nil {
		return fmt.Errorf("expire customers: %w", err)
	}
	if err := s.inBatches(ctx, today.AddDays(expiringSoonDays), selectExpiring, s.warn); err != nil {
		return fmt.Errorf("warn of expiring documents: %w", err)
	}
	return nil
}

// inBatches runs a change over the customers that a statement finds until it finds none.
func (s *Service) inBatches(ctx context.Context, day value.Date, statement string,
	change func(ctx context.Context, tx *store.Tx, id string) error,
) error {
	for ctx.Err() == nil {
		found := 0
		err := s.db.InTx(ctx, func(tx *store.Tx) error {
			ids, err := selectIDs(ctx, tx, statement, day.String(), value.DateOf(tx.Now().Std()).String(), expiryBatch)
			if err != nil {
				return err
			}
			found = len(ids)
			for _, id := range ids {
				if err := change(ctx, tx, id); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil || found < expiryBatch {
			return err
		}
	}
	return ctx.Err()
}

func (s *Service) expire(ctx context.Context, tx *store.Tx, id string) error {
	before, err := table.Any(ctx, tx, id)
	if err != nil {
		return err
	}
	c := before
	c.KYCStatus, c.VerificationLevel = Expired, LevelNone
	return s.change(ctx, tx, before, &c, "customers.kyc_expire", "")
}

func (s *Service) warn(ctx context.Context, tx *store.Tx, documentID string) error {
	customerID, documentType, expiry, err := markWarned(ctx, tx, documentID)
	if err != nil {
		return err
	}
	c, err := table.Any(ctx, tx, customerID)
	if err != nil {
		return err
	}
	return s.notify.Notify(ctx, tx, notice.Notice{
		Event: notice.KYCDocumentExpiring, CustomerID: c.ID, Type: access.Customers, RecordID: c.ID, Recipients: []string{c.createdBy},
		Args: map[string]any{"Name": c.name(), "Document": documentType, "Date": expiry},
	})
}
