package records

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"golang.org/x/text/unicode/norm"

	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

// Quota limits the records and bytes of one user. The zero Quota counts nothing and allows everything.
type Quota struct {
	Records int64
	Bytes   int64
}

// The limits in error details are the names of the settings.
const (
	recordsLimit = "quotas.records_per_user"
	bytesLimit   = "quotas.megabytes_per_user"
)

// recordBytes is the approximate size of a record apart from its texts: ids, times, keys of indexes, its audit entry.
const recordBytes = 256

// Weight returns the number of bytes that a record with these texts counts for.
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

// Charge adds records and bytes to the usage of an owner; negative numbers subtract. It must be called in the transaction of
// the change, before its other writes. It returns apierr.QuotaExceeded with the name of the limit if the owner would exceed it.
// Callers who may read all records of the type, or all customers, are staff. Their own records are not counted, and their
// changes to records of others are counted but never rejected.
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

// Check returns apierr.QuotaExceeded if [Quota.Charge] would return it now for records and bytes of the caller's own.
func (q Quota) Check(ctx context.Context, r store.Querier, t access.RecordType, records, bytes int64) error {
	caller := access.From(ctx)
	if q == (Quota{}) || caller.May(t, access.ReadAll) || caller.May(access.Customers, access.ReadAll) {
		return nil
	}
	return q.check(ctx, r, caller.UserID, records, bytes)
}

// Count is Charge without a limit, for changes by others than the owner and for deletions. It ignores users without a row in
// storage_usage.
func (q Quota) Count(ctx context.Context, tx *store.Tx, owner string, records, bytes int64) error {
	if q == (Quota{}) || records == 0 && bytes == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, changeUsage, owner, records, bytes)
	return err
}

// check runs before any write: a rollback after a write would affect the other jobs of the group.
func (q Quota) check(ctx context.Context, tx store.Querier, owner string, records, bytes int64) error {
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

// Marks are keyed digests of what identifies a person: present and former names and addresses. Modules keep the digests of former
// ones, so that a change does not hide that two records belong to one person.
const (
	namePurpose    = "customer name"
	birthPurpose   = "customer birth"
	addressPurpose = "person address"
)

// NameMark returns the digest of a person's names to store, by [types.PersonKey].
func NameMark(db *store.DB, names ...string) string {
	return mark(db, namePurpose, types.PersonKey(names...))
}

// NameMarks returns the digests that a stored one of the names may have: those of the present key and of earlier ones.
func NameMarks(db *store.DB, names ...string) []string {
	return marks(db, namePurpose, types.PersonKey(names...))
}

// BirthMark returns the digest of a date of birth to store; empty for an unknown date.
func BirthMark(db *store.DB, date string) string {
	if date == "" {
		return ""
	}
	return mark(db, birthPurpose, date)
}

// BirthMarks returns the digests of a date of birth under the keys of [NameMarks], in their order. All are empty for an unknown date.
func BirthMarks(db *store.DB, date string) []string {
	all := marks(db, birthPurpose, date)
	if date == "" {
		clear(all)
	}
	return all
}

// AddressMark returns the digest of an e-mail address or phone number to store.
func AddressMark(db *store.DB, address string) string {
	return mark(db, addressPurpose, addressKey(address))
}

// AddressMarks returns the digests that a stored one of an address may have.
func AddressMarks(db *store.DB, address string) []string {
	return marks(db, addressPurpose, addressKey(address))
}

// addressKey returns the same key for all ways to write an address.
func addressKey(text string) string {
	if email, err := types.ParseEmail(norm.NFKC.String(text)); err == nil && email != "" {
		return email.LookAlikeKey()
	}
	if phone, err := types.ParsePhone(text); err == nil && phone.String() != "" {
		return phone.String()
	}
	return types.Fold(text)
}

func mark(db *store.DB, purpose, text string) string {
	return hex.EncodeToString(db.Keyed(purpose, []byte(text)))
}

func marks(db *store.DB, purpose, text string) []string {
	all := []string{mark(db, purpose, text)}
	for _, older := range db.KeyedOlder(purpose, []byte(text)) {
		all = append(all, hex.EncodeToString(older))
	}
	return all
}
