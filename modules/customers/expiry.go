package customers

import (
	"context"
	"fmt"

	"kontor/modules/kit/event"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/store"
)

// expiryBatch is how many customers one transaction of the daily job changes.
const expiryBatch = 100

// RunExpiry is the daily job: it expires verified customers whose last valid identity document has expired, and tells
// the creators of customers once for each document that expires soon. It may run at any time and again.
func (s *Service) RunExpiry(ctx context.Context) error {
	today := types.DateOf(s.db.Now().Std())
	ahead := map[string]step{} // of the customers of a batch: digests are made before its transaction
	prepare := func(ids []string) error {
		clear(ahead)
		for _, id := range ids {
			before, err := table.GetUnchecked(ctx, s.db, id)
			if err != nil {
				return err
			}
			ahead[id] = s.expiry(before)
		}
		return nil
	}
	expire := func(ctx context.Context, tx *store.Tx, id string) error {
		before, err := table.GetUnchecked(ctx, tx, id)
		if err != nil {
			return err
		}
		st, prepared := ahead[id]
		if !prepared || st.before.version != before.version {
			st = s.expiry(before)
		}
		return s.write(ctx, tx, st)
	}
	if err := s.inBatches(ctx, today, selectExpired, prepare, expire); err != nil {
		return fmt.Errorf("expire customers: %w", err)
	}
	if err := s.inBatches(ctx, today.AddDays(expiringSoonDays), selectExpiring, nil, s.warn); err != nil {
		return fmt.Errorf("warn of expiring documents: %w", err)
	}
	return nil
}

// inBatches runs a change over the rows that a statement finds until it finds none. prepare, unless it is nil, sees each
// batch before its transaction.
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

// expiry makes the step of a customer that expires.
func (s *Service) expiry(before Customer) step {
	after := before
	after.KYCStatus, after.VerificationLevel = Expired, LevelNone
	return s.verification(before, after, "customers.kyc_expire", "")
}

func (s *Service) warn(ctx context.Context, tx *store.Tx, documentID string) error {
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
