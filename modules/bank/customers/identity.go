package customers

import (
	"context"
	"strings"

	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/store"
)

// FieldChange is the old and the new value of one member of a customer's identity.
type FieldChange struct {
	Field string `json:"field" enum:"type,first_name,last_name,date_of_birth,nationality"`
	From  string `json:"from"`
	To    string `json:"to"`
}

// identityChanges lists the changed members of the identity that a reviewer verifies: type, names, date of birth and
// nationality. Changes of case and white space are ignored. Changes of accents and punctuation are not: a reviewer decides
// whether "Muller" is "Müller".
func identityChanges(before, after Customer) []FieldChange {
	var changes []FieldChange
	for _, f := range []FieldChange{
		{"type", before.Type, after.Type},
		{"first_name", before.FirstName, after.FirstName},
		{"last_name", before.LastName, after.LastName},
		{"date_of_birth", before.DateOfBirth.String(), after.DateOfBirth.String()},
		{"nationality", types.EmptyIfNil(before.Nationality), types.EmptyIfNil(after.Nationality)},
	} {
		if normalized(f.From) != normalized(f.To) {
			changes = append(changes, f)
		}
	}
	return changes
}

func normalized(text string) string { return strings.Join(strings.Fields(types.Fold(text)), " ") }

const (
	updateAction = "customers.update"
	reopenAction = "customers.kyc_reopen"
	submitAction = "customers.kyc_submit"
)

// prepareUpdate prepares an update. A changed identity is not verified. A verified customer therefore returns to review
// without a level, and the history records the old and the new values. A customer in review stays in review.
func (s *Service) prepareUpdate(ctx context.Context, q store.Querier, before, after Customer) (preparedChange, error) {
	changes := identityChanges(before, after)
	after = s.nextVersion(before, after)
	change := preparedChange{before: before, keys: after.searchKeys()}
	change.audits = []auditRecord{s.auditRecord(updateAction, before, after)}
	if len(changes) > 0 && before.KYCStatus == Verified {
		after.KYCStatus, after.VerificationLevel, after.verifiedAt = InReview, LevelNone, nil
		change.verification = true
		change.audits = append(change.audits, auditRecord{reopenAction, change.audits[0].after, s.db.Digest(audited(after))})
	}
	change.after, change.identity, change.residence = after, len(changes) > 0, before.residence() != after.residence()
	if len(changes) > 0 && before.KYCStatus != NotStarted {
		change.entry = &historyEntry{id: store.NewID()}
		dataKey, err := s.readKey(ctx, q, before.ID)
		if err != nil {
			return change, err
		}
		change.entry.dataKey = dataKey
		if change.entry.changes, err = s.seal(dataKey, before.ID, change.entry.id, changes); err != nil {
			return change, err
		}
	}
	if former := s.hashOf(before); former != s.hashOf(after) {
		change.former = &former
	}
	change.formerAddresses = s.formerAddresses(before, after)
	return change, s.rejectTakeover(ctx, q, after)
}

// rejectTakeover returns apierr.SelfVerification when a reviewer who has decided about the customer would become the
// customer.
func (s *Service) rejectTakeover(ctx context.Context, q store.Querier, after Customer) error {
	caller := access.From(ctx)
	if !mayReview(caller) {
		return nil
	}
	decided, err := hasDecided(ctx, q, after.ID, caller.UserID)
	if err != nil || !decided {
		return err
	}
	return s.rejectSelfReview(ctx, q, after)
}
