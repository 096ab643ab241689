package customers

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json"

	"kontor/modules/kit/event"
	"kontor/modules/kit/hit"
	"kontor/modules/kit/records"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

// preparedChange is a change of a customer, prepared before its transaction. Encryption, encoding and digests happen here, so
// that the transaction only writes rows.
type preparedChange struct {
	before, after   Customer
	audits          []auditRecord
	keys            searchKeys // set when the data of the customer changed
	verification    bool       // the state, level or documents of the verification changed
	identity        bool       // the identity changed
	residence       bool       // the country of the address or the nationality changed
	entry           *historyEntry
	former          *identityHash // the identity before the change; nil when it is the same
	formerAddresses []formerAddress
	documents       []sealedDocument
	newDocuments    int64            // how many of the documents are new to the customer
	proposal        *PendingDecision // a decision that waits for a second person
	reviewers       []string         // whom to notify of the proposal
	closing         *PendingDecision // a decision that the change closes
	screened        string           // the identity that was compared with sanctions lists, see [hit.Screening]
}

// formerAddress is the digest of an address that the customer has no more, and whether it was proven.
type formerAddress struct {
	digest string
	proven bool
}

// auditRecord is an audit entry that the transaction writes.
type auditRecord struct {
	action        string
	before, after store.Digest
}

// historyEntry is an entry of the KYC history that the transaction writes.
type historyEntry struct {
	id, reason string  // the reason is for the customer
	decisionID *string // the confirmed decision, which has the reason for reviewers
	changes    string  // sealed
	dataKey    []byte  // with which; nil for none
}

// nextVersion returns after with the next version and the time of the change.
func (s *Service) nextVersion(before, after Customer) Customer {
	after.UpdatedAt, after.version = s.db.Now(), before.version+1
	return after
}

// reasons are the texts of a decision. The customer reads the reason of a decision of one person. That of a decision that needs a second
// person is for reviewers: it may say what the customer must not learn.
type reasons struct {
	reason      string
	forCustomer string  // of a decision that needs a second person
	decisionID  *string // the confirmed decision
}

// prepareVerification prepares a change of the verification only.
func (s *Service) prepareVerification(before, after Customer, action string, why reasons) preparedChange {
	after = s.nextVersion(before, after)
	if after.KYCStatus == Verified && !before.verifiedAs(after) {
		after.proven.identity = true // the reviewer has confirmed it
	}
	change := preparedChange{before: before, after: after, verification: true,
		audits: []auditRecord{s.auditRecord(action, before, after)}}
	if !before.verifiedAs(after) {
		change.entry = &historyEntry{id: store.NewID(), reason: why.reason, decisionID: why.decisionID}
		if why.decisionID != nil {
			change.entry.reason = why.forCustomer
		}
	}
	return change
}

// auditRecord returns the audit entry of a change, with digests and changed fields.
func (s *Service) auditRecord(action string, before, after Customer) auditRecord {
	was := s.db.Digest(audited(before))
	return auditRecord{action, was, s.db.DigestChange(access.Customers.Name, was, s.db.Digest(audited(after)))}
}

// verifiedAs reports whether the verification of two states of a customer is the same.
func (c Customer) verifiedAs(other Customer) bool {
	a, b := c.verifiedAt, other.verifiedAt
	return c.KYCStatus == other.KYCStatus && c.VerificationLevel == other.VerificationLevel && (a == b || a != nil && b != nil && *a == *b)
}

const (
	changesTable  = "kyc_changes"
	changesColumn = "changes"
)

// seal encrypts the changes of an identity for their history entry. Without a data key, which is missing if the verification
// began during the update, it seals as earlier versions did.
func (s *Service) seal(dataKey []byte, customerID, entryID string, changes []FieldChange) (string, error) {
	text, err := json.Marshal(changes)
	if err != nil {
		return "", fmt.Errorf("encode changes of an identity: %w", err)
	}
	return s.close(dataKey, changesTable, changesColumn, customerID+"/"+entryID, text)
}

// unseal decrypts the changes of a history entry. An empty text means no changes.
func (s *Service) unseal(dataKey []byte, customerID, entryID, sealed string) ([]FieldChange, error) {
	changes := []FieldChange{}
	if sealed == "" {
		return changes, nil
	}
	text, err := s.open(dataKey, changesTable, changesColumn, customerID+"/"+entryID, sealed)
	if err != nil {
		return nil, fmt.Errorf("unseal KYC change %s: %w", entryID, err)
	}
	if err := json.Unmarshal(text, &changes); err != nil {
		return nil, fmt.Errorf("decode KYC change %s: %w", entryID, err)
	}
	return changes, nil
}

// write stores a prepared change: the customer, its history and the audit entries. It notifies the customer's creator when
// the state changed.
func (s *Service) write(ctx context.Context, tx *store.Tx, change preparedChange) error {
	actor, c := records.Actor(ctx), change.after
	if err := s.rejectOpenHits(ctx, tx, change); err != nil {
		return err
	}
	added, bytes := change.quotaGrowth()
	if err := s.quota.Charge(ctx, tx, access.Customers, change.before.createdBy, added, bytes); err != nil {
		return err
	}
	for _, d := range change.documents {
		if d, err := s.currentDocument(tx, d); err != nil {
			return err
		} else if err := upsertDocument(ctx, tx, d, actor); err != nil {
			return err
		}
	}
	if len(change.audits) > 0 && change.audits[0].action == updateAction {
		if err := updateCustomer(ctx, tx, c, change.keys, actor); err != nil {
			return err
		}
	}
	if change.verification {
		if err := updateVerification(ctx, tx, c, actor); err != nil {
			return err
		}
	}
	if h := change.former; h != nil {
		if _, err := tx.Exec(ctx, insertIdentityStatement, c.ID, h.name, h.birth, tx.Now(), change.before.proven.identity); err != nil {
			return err
		}
	}
	for _, former := range change.formerAddresses {
		if _, err := tx.Exec(ctx, insertFormerAddress, c.ID, former.digest, tx.Now(), former.proven); err != nil {
			return err
		}
	}
	for _, a := range change.audits {
		table.Audit(ctx, tx, a.action, c.ID, a.before, a.after)
	}
	if err := s.writeReview(ctx, tx, change); err != nil {
		return err
	}
	if change.entry != nil {
		if err := s.sealCurrent(tx, c.ID, change.entry); err != nil {
			return err
		}
		if err := insertChange(ctx, tx, change, actor); err != nil {
			return err
		}
	}
	if c.KYCStatus == change.before.KYCStatus {
		return nil
	}
	creators, err := table.Creators(ctx, tx, c.ID)
	if err != nil {
		return err
	}
	return s.notifyAbout(ctx, tx, c, event.CustomerStatusChanged, creators, map[string]any{"From": string(change.before.KYCStatus), "To": string(c.KYCStatus)})
}

// notifyAbout notifies users of an event about a customer, whose name is added to the arguments.
func (s *Service) notifyAbout(ctx context.Context, tx *store.Tx, c Customer, kind event.Kind, recipients []string, args map[string]any) error {
	args["Name"] = c.name()
	return s.notify.Notify(ctx, tx, event.Event{Kind: kind, CustomerID: c.ID, Type: access.Customers, RecordID: c.ID, Recipients: recipients, Args: args})
}

// writeReview stores what a change means for the case of the customer: a proposed or closed decision, what it means for a pending one,
// and whether the case is open.
func (s *Service) writeReview(ctx context.Context, tx *store.Tx, change preparedChange) error {
	err := s.flagPossibleSelf(ctx, tx, change)
	switch {
	case err != nil:
	case change.proposal != nil:
		err = s.writeProposal(ctx, tx, change.after, *change.proposal, change.reviewers)
	case change.closing != nil:
		err = s.writeClosing(ctx, tx, change.after, *change.closing)
	case change.verification || change.identity:
		err = s.followPending(ctx, tx, change)
	}
	if err != nil || !change.verification && !change.residence && change.proposal == nil && change.closing == nil {
		return err
	}
	return s.refreshCase(ctx, tx, change.after)
}

// flagPossibleSelf leaves an audit entry when a reviewer decides about a customer who claims their address or name.
func (s *Service) flagPossibleSelf(ctx context.Context, tx *store.Tx, change preparedChange) error {
	decides := change.proposal != nil || change.closing != nil || change.verification && !change.identity
	if !decides || !mayReview(access.From(ctx)) {
		return nil
	}
	possible, err := s.possiblySelf(ctx, tx, change.before)
	if err == nil && possible {
		table.Audit(ctx, tx, "customers.kyc_possible_self_review", change.before.ID, nil, nil)
	}
	return err
}

// quotaGrowth returns how many records and bytes a change adds to the quota of the customer's creator.
func (change preparedChange) quotaGrowth() (added, bytes int64) {
	bytes = change.after.weight() - change.before.weight()
	if change.newDocuments > 0 {
		bytes += change.newDocuments * records.Weight(change.documents[0].number)
	}
	if change.entry != nil && change.entry.changes != "" {
		bytes += records.Weight(change.entry.changes)
	}
	return change.newDocuments, bytes
}

// A customer whose name is like that of an entry of a sanctions list is not verified before reviewers have dismissed the hit. Only
// reviewers learn of hits: a customer cannot cause apierr.ScreeningOpen.

// screen compares a customer with sanctions lists before a reviewer verifies it: the comparison in the background may not have come so
// far. It returns the state of the identity that was compared. It returns apierr.Unavailable while the lists are being read.
func (s *Service) screen(ctx context.Context, id string) (state string, err error) {
	if !mayReview(access.From(ctx)) {
		return "", nil
	}
	return s.Peers.Screening.Screen(ctx, id)
}

// rejectOpenHits returns apierr.ScreeningOpen, with the ids of the hits, for a change that verifies a customer with hits, or that proposes
// to do so.
func (s *Service) rejectOpenHits(ctx context.Context, tx *store.Tx, change preparedChange) error {
	if !change.verifies() {
		return nil
	}
	hits, err := s.Peers.Screening.Blocking(ctx, tx, change.after.ID, change.screened)
	if err == nil && len(hits) > 0 {
		err = apierr.ScreeningOpen.Detail("hits", hits)
	}
	return err
}

// verifies reports whether the customer becomes verified, is verified again or gets another level, now or once it is confirmed.
func (change preparedChange) verifies() bool {
	if d := change.proposal; d != nil && d.verifies() {
		return true
	}
	return change.after.KYCStatus == Verified && !change.before.verifiedAs(change.after)
}

// hits returns the hits of a customer for reviewers; none for other callers.
func (s *Service) hits(ctx context.Context, customerID string) ([]hit.Hit, error) {
	if !mayReview(access.From(ctx)) {
		return nil, nil
	}
	return s.Peers.Screening.OfCustomer(ctx, s.db, customerID)
}
