package customers

import (
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"kontor/modules/kit/attachment"
	"kontor/modules/kit/event"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

// sealedDocument is a document as it is stored. Its number is encrypted; a keyed hash finds the same number again.
type sealedDocument struct {
	id, customerID string
	kind           DocumentType
	given          string // the type
	number         string // sealed
	numberKey      string
	country        string
	countryKey     string
	expiryDate     types.Date
	late           bool     // it has expired
	olderKeys      []string // see olderNumberKeys
	dataKey        []byte   // of the customer
}

const (
	documentsTable = "kyc_documents"
	numberColumn   = "number"
)

// sealDocuments encrypts the numbers of documents before the transaction, because encryption is slow. A document that exists
// already keeps its row. The encryption is therefore bound to the customer and the keyed hash, not to the id of the row.
func (s *Service) sealDocuments(ctx context.Context, customerID string, documents []submitted) ([]sealedDocument, error) {
	today := types.DateOf(s.db.Now().Std())
	dataKey, err := s.ensureKey(ctx, customerID)
	if err != nil {
		return nil, err
	}
	sealed := make([]sealedDocument, 0, len(documents))
	for _, d := range documents {
		key := s.numberKey(d.given, d.number)
		number, err := s.db.SealWith(dataKey, documentsTable, numberColumn, customerID+"/"+key, []byte(d.number))
		if err != nil {
			return nil, fmt.Errorf("seal document number: %w", err)
		}
		sealed = append(sealed, sealedDocument{id: store.NewID(), customerID: customerID, kind: d.kind, given: d.given, number: number,
			numberKey: key, country: d.country, countryKey: d.countryKey, expiryDate: d.expiryDate, late: !d.validOn(today),
			olderKeys: s.olderNumberKeys(d.given, d.number), dataKey: dataKey})
	}
	return sealed, nil
}

// givenIfOther returns the given type, and an empty text if it is that by which the document counts.
func (d sealedDocument) givenIfOther() string {
	if d.given == string(d.kind) {
		return ""
	}
	return d.given
}

const numberPurpose = "kyc document number"

// numberKey returns the keyed hash that finds the number of a document of a given type again.
func (s *Service) numberKey(given, number string) string {
	return hex.EncodeToString(s.db.Keyed(numberPurpose, hashedNumber(given, number)))
}

// olderNumberKeys returns the hashes under which a document may be stored while a rotation of the master key is not complete.
func (s *Service) olderNumberKeys(given, number string) (keys []string) {
	for _, key := range s.db.KeyedOlder(numberPurpose, hashedNumber(given, number)) {
		keys = append(keys, hex.EncodeToString(key))
	}
	return keys
}

func hashedNumber(given, number string) []byte {
	return []byte(typeKey(given) + "\x00" + types.Fold(number))
}

// documentValidity returns types and expiry dates of a customer's documents, without their numbers. It includes the submitted
// documents, which replace stored documents with the same number.
func documentValidity(ctx context.Context, q store.Querier, customerID string, submitted []sealedDocument, today types.Date) ([]Document, error) {
	type key struct {
		kind            DocumentType
		number, country string
	}
	documents := map[key]Document{}
	_, err := store.All(ctx, q, func(row store.Scanner) (d Document, err error) {
		var k key
		err = row.Scan(&d.ID, (*string)(&d.kind), &d.Type, &k.number, &k.country, &d.ExpiryDate, &d.files)
		k.kind = d.kind
		documents[k] = d
		return d, err
	}, selectValidity, customerID)
	if err != nil {
		return nil, fmt.Errorf("read documents: %w", err)
	}
	for _, s := range submitted {
		for _, older := range s.olderKeys {
			delete(documents, key{s.kind, older, s.countryKey})
		}
		documents[key{s.kind, s.numberKey, s.countryKey}] = Document{ID: s.id, Type: s.given, kind: s.kind, ExpiryDate: s.expiryDate}
	}
	all := slices.SortedFunc(maps.Values(documents), func(a, b Document) int { return strings.Compare(a.ID, b.ID) })
	for i := range all {
		all[i].Expired = !all[i].validOn(today)
	}
	return all, nil
}

// maxStored limits the documents of a customer, because one answer contains all of them.
const maxStored = 200

// newDocuments counts the submitted documents that the customer does not have yet.
func newDocuments(ctx context.Context, q store.Querier, customerID string, submitted []sealedDocument) (int64, error) {
	stored, err := documentValidity(ctx, q, customerID, nil, types.Date{})
	if err != nil {
		return 0, err
	}
	all, err := documentValidity(ctx, q, customerID, submitted, types.Date{})
	if err != nil {
		return 0, err
	}
	if len(all) > maxStored && len(all) > len(stored) {
		return 0, apierr.Invalid("documents", "invalid.max_items", apierr.Args{"Max": maxStored})
	}
	return int64(len(all) - len(stored)), nil
}

// documents returns the documents of a customer with their numbers.
func (s *Service) documents(ctx context.Context, q store.Querier, customerID string, today types.Date) ([]Document, error) {
	dataKey, err := s.readKey(ctx, q, customerID)
	if err != nil {
		return nil, err
	}
	documents, err := store.All(ctx, q, func(row store.Scanner) (d Document, err error) {
		var sealed, key string
		err = row.Scan(&d.ID, (*string)(&d.kind), &d.Type, &sealed, &key, &d.Country, &d.ExpiryDate, &d.CreatedAt, &d.files)
		if err == nil && sealed != "" { // not erased
			var number []byte
			number, err = s.open(dataKey, documentsTable, numberColumn, customerID+"/"+key, sealed)
			d.Number = string(number)
		}
		d.Expired = !d.validOn(today)
		return d, err
	}, selectDocuments, customerID)
	if err != nil {
		return nil, fmt.Errorf("read documents: %w", err)
	}
	return append([]Document{}, documents...), nil
}

const selectDocumentOf = `SELECT 1 FROM kyc_documents WHERE id = $1 AND customer_id = $2`

// selectDecidedSince finds a decision of a reviewer, or an expiry, from a time on.
const selectDecidedSince = `
	SELECT 1 FROM kyc_changes
	WHERE customer_id = $1 AND changed_at >= $2 AND from_status <> to_status AND to_status IN ('verified', 'rejected', 'action_required', 'expired')
	LIMIT 1`

// AllowFile decides about the evidence of documents: callers who may read the customer may read it, those who may update the customer
// may add to it. Uploaders may delete a file until a reviewer begins to review it; from then on only callers with the permission to delete
// the customer may, which being its creator does not give.
func (s *Service) AllowFile(ctx context.Context, q store.Querier, target attachment.Target, wanted access.Permission, file *attachment.File) error {
	if wanted == access.Read {
		return s.Allow(ctx, q, target.Parent, access.Read)
	}
	c, err := table.Get(ctx, q, target.Parent, access.Update)
	if err != nil {
		return err
	}
	if c.Erased() {
		return apierr.RecordErased
	}
	if wanted == access.Create {
		exists, err := store.Exists(ctx, q, selectDocumentOf, target.Record, target.Parent)
		if err == nil && !exists {
			err = apierr.FileRecordNotFound
		}
		return err
	}
	if may, err := table.Granted(ctx, q, c.ID, access.Delete); err != nil || may {
		return err
	}
	if file.UploadedBy != access.From(ctx).UserID {
		return apierr.NoAccess
	}
	decided, err := store.Exists(ctx, q, selectDecidedSince, c.ID, file.CreatedAt)
	if err == nil && (decided || c.KYCStatus == InReview) {
		err = apierr.FileLocked
	}
	return err
}

// expiryBatch is the number of customers or documents that one transaction of the daily job changes.
const expiryBatch = 100

// RunExpiry expires verified customers whose last valid identity document has expired. It also notifies the creators of
// customers, once for each document that expires soon, and updates the levels of open cases. It runs daily; it may run at any time and repeatedly.
func (s *Service) RunExpiry(ctx context.Context) error {
	prepared := map[string]preparedChange{} // by customer, for one batch: digests are computed before its transaction
	err := store.EachFound(ctx, s.db, func(q store.Querier) ([]string, error) {
		ids, err := store.All(ctx, q, store.Text, selectExpired, types.DateOf(q.Now().Std()).String(), expiryBatch)
		if err != nil || q != store.Querier(s.db) { // in the transaction
			return ids, err
		}
		clear(prepared)
		for _, id := range ids {
			before, err := table.GetUnchecked(ctx, q, id)
			if err != nil {
				return nil, err
			}
			prepared[id] = s.prepareExpiry(before)
		}
		return ids, nil
	}, func(tx *store.Tx, id string) error {
		before, err := table.GetUnchecked(ctx, tx, id)
		if err != nil {
			return err
		}
		change, known := prepared[id]
		if !known || change.before.version != before.version {
			change = s.prepareExpiry(before)
		}
		return s.write(ctx, tx, change)
	})
	if err != nil {
		return fmt.Errorf("expire customers: %w", err)
	}
	if err := s.refreshCases(ctx); err != nil {
		return fmt.Errorf("update the open cases: %w", err)
	}
	until := types.DateOf(s.db.Now().Std()).AddDays(expiringSoonDays).String()
	err = store.EachFound(ctx, s.db, func(q store.Querier) ([]string, error) {
		return store.All(ctx, q, store.Text, selectExpiring, until, types.DateOf(q.Now().Std()).String(), expiryBatch)
	}, func(tx *store.Tx, id string) error { return s.warnExpiring(ctx, tx, id) })
	if err != nil {
		return fmt.Errorf("warn of expiring documents: %w", err)
	}
	return nil
}

// prepareExpiry prepares the expiry of a customer's verification.
func (s *Service) prepareExpiry(before Customer) preparedChange {
	after := before
	after.KYCStatus, after.VerificationLevel = Expired, LevelNone
	return s.prepareVerification(before, after, "customers.kyc_expire", reasons{})
}

// warnExpiring marks a document as warned about and notifies the creator of its customer.
func (s *Service) warnExpiring(ctx context.Context, tx *store.Tx, documentID string) error {
	var customerID, documentType, expiry string
	if err := tx.QueryRow(ctx, markWarnedStatement, documentID, tx.Now()).Scan(&customerID, &documentType, &expiry); err != nil {
		return err
	}
	c, err := table.GetUnchecked(ctx, tx, customerID)
	if err != nil {
		return err
	}
	creators, err := table.Creators(ctx, tx, c.ID)
	if err != nil {
		return err
	}
	return s.notifyAbout(ctx, tx, c, event.KYCDocumentExpiring, creators, map[string]any{"Document": documentType, "Date": expiry})
}
