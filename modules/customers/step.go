package customers

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json"

	"kontor/modules/kit/event"
	"kontor/modules/kit/records"
	"kontor/server/access"
	"kontor/store"
)

// step is a change of a customer with everything that takes time, made before the transaction: the writer stores it and
// encrypts, encodes and digests nothing.
type step struct {
	before, after Customer
	audits        []auditStep
	keys          derived // when the data changed
	moved         bool    // the verification changed
	entry         *historyEntry
	former        *identityHash // who the customer was, when that changed
	documents     []sealedDocument
	added         int64 // of the documents, those that were not known
}

// auditStep is an audit entry to be.
type auditStep struct {
	action        string
	before, after store.Digest
}

// historyEntry is an entry of the KYC history to be.
type historyEntry struct {
	id, reason string
	changes    string // sealed
}

// next gives the customer of a step its new version.
func (s *Service) next(before, after Customer) Customer {
	after.UpdatedAt, after.version = s.db.Now(), before.version+1
	return after
}

// verification makes the step of a change that concerns the verification only.
func (s *Service) verification(before, after Customer, action, reason string) step {
	after = s.next(before, after)
	st := step{before: before, after: after, moved: true,
		audits: []auditStep{{action, s.db.Digest(audited(before)), s.db.Digest(audited(after))}}}
	if before.KYCStatus != after.KYCStatus || before.VerificationLevel != after.VerificationLevel || !sameTime(before.verifiedAt, after.verifiedAt) {
		st.entry = &historyEntry{id: store.NewID(), reason: reason}
	}
	return st
}

func sameTime(a, b *store.Time) bool { return a == b || a != nil && b != nil && *a == *b }

const (
	changesTable  = "kyc_changes"
	changesColumn = "changes"
)

// seal encrypts what changed of an identity for its entry of the history.
func (s *Service) seal(customerID, entryID string, changes []FieldChange) (string, error) {
	text, err := json.Marshal(changes)
	if err != nil {
		return "", fmt.Errorf("encode changes of an identity: %w", err)
	}
	return s.db.Seal(changesTable, changesColumn, customerID+"/"+entryID, text)
}

// unseal decrypts the changes of an entry; an entry without any has none.
func (s *Service) unseal(customerID, entryID, sealed string) ([]FieldChange, error) {
	changes := []FieldChange{}
	if sealed == "" {
		return changes, nil
	}
	text, err := s.db.Unseal(changesTable, changesColumn, customerID+"/"+entryID, sealed)
	if err != nil {
		return nil, fmt.Errorf("unseal KYC change %s: %w", entryID, err)
	}
	if err := json.Unmarshal(text, &changes); err != nil {
		return nil, fmt.Errorf("decode KYC change %s: %w", entryID, err)
	}
	return changes, nil
}

// write stores a step: the customer, its history and the audit entries. It tells the creator of the customer when the
// state is another one.
func (s *Service) write(ctx context.Context, tx *store.Tx, st step) error {
	actor, c := records.Actor(ctx), st.after
	added, bytes := st.growth()
	if err := s.quota.Charge(ctx, tx, access.Customers, st.before.createdBy, added, bytes); err != nil {
		return err
	}
	for _, d := range st.documents {
		if err := upsertDocument(ctx, tx, d, actor); err != nil {
			return err
		}
	}
	if st.audits[0].action == updateAction {
		if err := updateCustomer(ctx, tx, c, st.keys, actor); err != nil {
			return err
		}
	}
	if st.moved {
		if err := updateVerification(ctx, tx, c, actor); err != nil {
			return err
		}
	}
	if st.former != nil {
		if err := insertIdentity(ctx, tx, c.ID, *st.former); err != nil {
			return err
		}
	}
	for _, a := range st.audits {
		table.Audit(ctx, tx, a.action, c.ID, a.before, a.after)
	}
	if st.entry != nil {
		if err := insertChange(ctx, tx, st, actor); err != nil {
			return err
		}
	}
	if c.KYCStatus == st.before.KYCStatus {
		return nil
	}
	return s.notify.Notify(ctx, tx, event.Event{
		Kind: event.CustomerStatusChanged, CustomerID: c.ID, Type: access.Customers, RecordID: c.ID, Recipients: []string{c.createdBy},
		Args: map[string]any{"Name": c.name(), "From": string(st.before.KYCStatus), "To": string(c.KYCStatus)},
	})
}

// growth is what a step adds to the quota of the customer's creator.
func (st step) growth() (added, bytes int64) {
	bytes = st.after.weight() - st.before.weight()
	if st.added > 0 {
		bytes += st.added * records.Weight(st.documents[0].number)
	}
	if st.entry != nil && st.entry.changes != "" {
		bytes += records.Weight(st.entry.changes)
	}
	return st.added, bytes
}
