package customers

import (
	"context"
	"fmt"

	"kontor/modules/kit/event"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/store"
)

// expiryBatch is the number of customers or documents that one transaction of the daily job changes.
const expiryBatch = 100

// RunExpiry expires verified customers whose last valid identity document has expired. It also notifies the creators of
// customers, once for each document that expires soon, and updates the levels of open cases. It runs daily; it may run at any time and repeatedly.
func (s *Service) RunExpiry(ctx context.Context) error {
	today := types.DateOf(s.db.Now().Std())
	prepared := map[string]preparedChange{} // by customer, for one batch: digests are computed before its transaction
	prepare := func(ids []string) error {
		clear(prepared)
		for _, id := range ids {
			before, err := table.GetUnchecked(ctx, s.db, id)
			if err != nil {
				return err
			}
			prepared[id] = s.prepareExpiry(before)
		}
		return nil
	}
	expire := func(ctx context.Context, tx *store.Tx, id string) error {
		before, err := table.GetUnchecked(ctx, tx, id)
		if err != nil {
			return err
		}
		change, known := prepared[id]
		if !known || change.before.version != before.version {
			change = s.prepareExpiry(before)
		}
		return s.write(ctx, tx, change)
	}
	if err := s.inBatches(ctx, today, selectExpired, prepare, expire); err != nil {
		return fmt.Errorf("expire customers: %w", err)
	}
	if err := s.refreshCases(ctx); err != nil {
		return fmt.Errorf("update the open cases: %w", err)
	}
	if err := s.inBatches(ctx, today.AddDays(expiringSoonDays), selectExpiring, nil, s.warnExpiring); err != nil {
		return fmt.Errorf("warn of expiring documents: %w", err)
	}
	return nil
}

// inBatches applies change to the rows that a statement finds, one transaction a batch, until no rows are left. If prepare is
// not nil, inBatches calls it before each transaction.
func (s *Service) inBatches(ctx context.Context, day types.Date, statement string, prepare func(ids []string) error,
	change func(ctx context.Context, tx *store.Tx, id string) error,
) error {
	for ctx.Err() == nil {
		if prepare != nil {
			ids, err := selectIDs(ctx, s.db, statement, day.String(), types.DateOf(s.db.Now().Std()).String(), expiryBatch)
			if err != nil {
				return err
			}
			if err := prepare(ids); err != nil {
				return err
			}
		}
		found := 0
		err := s.db.InTx(ctx, func(tx *store.Tx) error {
			ids, err := selectIDs(ctx, tx, statement, day.String(), types.DateOf(tx.Now().Std()).String(), expiryBatch)
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

// prepareExpiry prepares the expiry of a customer's verification.
func (s *Service) prepareExpiry(before Customer) preparedChange {
	after := before
	after.KYCStatus, after.VerificationLevel = Expired, LevelNone
	return s.prepareVerification(before, after, "customers.kyc_expire", reasons{})
}

// warnExpiring marks a document as warned about and notifies the creator of its customer.
func (s *Service) warnExpiring(ctx context.Context, tx *store.Tx, documentID string) error {
	customerID, documentType, expiry, err := markWarned(ctx, tx, documentID)
	if err != nil {
		return err
	}
	c, err := table.GetUnchecked(ctx, tx, customerID)
	if err != nil {
		return err
	}
	return s.notify.Notify(ctx, tx, event.Event{
		Kind: event.KYCDocumentExpiring, CustomerID: c.ID, Type: access.Customers, RecordID: c.ID, Recipients: []string{c.createdBy},
		Args: map[string]any{"Name": c.name(), "Document": documentType, "Date": expiry},
	})
}
