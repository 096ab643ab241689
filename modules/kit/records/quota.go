package records

import (
	"context"
	"errors"
	"fmt"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

// Quota bounds what one user may store. The zero Quota counts nothing and has no bound.
type Quota struct {
	Records int64
	Bytes   int64
}

// The limits as errors name them: by the settings.
const (
	recordsLimit = "quotas.records_per_user"
	bytesLimit   = "quotas.megabytes_per_user"
)

// recordBytes is what a record takes beside its texts, about: ids, times, keys of indexes, its audit entry.
const recordBytes = 256

// Weight is what a record with these texts takes.
func Weight(texts ...string) int64 {
	weight := int64(recordBytes)
	for _, text := range texts {
		weight += int64(len(text))
	}
	return weight
}

const (
	selectUsage = `SELECT records, bytes FROM storage_usage WHERE user_id = $1`

	addUsage = `
		INSERT INTO storage_usage (user_id, records, bytes) VALUES ($1, $2, $3)
		ON CONFLICT (user_id) DO UPDATE SET
			records = storage_usage.records + excluded.records, bytes = storage_usage.bytes + excluded.bytes`

	changeUsage = `UPDATE storage_usage SET records = records + $2, bytes = bytes + $3 WHERE user_id = $1`
)

// Charge counts what the caller adds to the records of an owner, or takes away with negative numbers, in the transaction
// of the change and before its other writes. It returns apierr.QuotaExceeded, which names the limit, when the owner would
// have more than allowed. Callers who may read all records of the type, or all customers, are staff: what they add to
// the records of others is counted and never refused, what they make themselves is not counted.
func (q Quota) Charge(ctx context.Context, tx *store.Tx, t access.RecordType, owner string, records, bytes int64) error {
	if q == (Quota{}) || records == 0 && bytes == 0 {
		return nil
	}
	caller := access.From(ctx)
	if caller.UserID == "" || caller.May(t, access.ReadAll) || caller.May(access.Customers, access.ReadAll) {
		if owner == caller.UserID {
			return nil
		}
		return q.Count(ctx, tx, owner, records, bytes)
	}
	if records > 0 || bytes > 0 {
		if err := q.check(ctx, tx, owner, records, bytes); err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, addUsage, owner, records, bytes)
	return err
}

// Count is Charge without a refusal, for changes that others than the owner bring about, or that make room. Of users of
// whom nothing was counted yet, it counts nothing.
func (q Quota) Count(ctx context.Context, tx *store.Tx, owner string, records, bytes int64) error {
	if q == (Quota{}) || records == 0 && bytes == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, changeUsage, owner, records, bytes)
	return err
}

// check looks before anything is written: a refusal after a write would cost the others of the group their work.
func (q Quota) check(ctx context.Context, tx *store.Tx, owner string, records, bytes int64) error {
	var hasRecords, hasBytes int64
	err := tx.QueryRow(ctx, selectUsage, owner).Scan(&hasRecords, &hasBytes)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("read the usage of storage: %w", err)
	}
	switch {
	case records > 0 && hasRecords+records > q.Records:
		return exceeded(recordsLimit, q.Records, fmt.Sprint(q.Records), hasRecords)
	case bytes > 0 && hasBytes+bytes > q.Bytes:
		return exceeded(bytesLimit, q.Bytes, fmt.Sprintf("%d MB", q.Bytes>>20), hasBytes)
	}
	return nil
}

func exceeded(limit string, most int64, shown string, used int64) error {
	return apierr.QuotaExceeded.With(apierr.Args{"Limit": limit, "Max": shown}).Detail("limit", limit).Detail("max", most).Detail("used", used)
}
