package customers

import (
	"context"
	"encoding/hex"
	"slices"
	"strings"

	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/apierr"
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

// identityHash holds keyed hashes of an identity: of the names, by [types.PersonKey], and of the date of birth. The latter is
// empty when the date is unknown.
type identityHash struct{ name, birth string }

func (s *Service) hash(i types.Identity) identityHash {
	h := identityHash{name: hex.EncodeToString(s.db.Keyed(namePurpose, nameOf(i)))}
	if i.DateOfBirth != "" {
		h.birth = hex.EncodeToString(s.db.Keyed(birthPurpose, []byte(i.DateOfBirth)))
	}
	return h
}

const (
	namePurpose  = "customer name"
	birthPurpose = "customer birth"
)

func nameOf(i types.Identity) []byte { return []byte(types.PersonKey(i.FirstName, i.LastName)) }

// hashes returns the hashes of an identity under all keys that stored ones may have: the text of a former identity is not
// stored, so that a rotation of the master key cannot hash it again.
func (s *Service) hashes(i types.Identity) []identityHash {
	all := []identityHash{s.hash(i)}
	births := s.db.KeyedOlder(birthPurpose, []byte(i.DateOfBirth))
	for n, name := range s.db.KeyedOlder(namePurpose, nameOf(i)) {
		h := identityHash{name: hex.EncodeToString(name)}
		if i.DateOfBirth != "" {
			h.birth = hex.EncodeToString(births[n])
		}
		all = append(all, h)
	}
	return all
}

func (s *Service) hashOf(c Customer) identityHash {
	return s.hash(types.Identity{FirstName: c.FirstName, LastName: c.LastName, DateOfBirth: c.DateOfBirth.String()})
}

// matches reports whether two identities may be one person: the same names and, where both are known, the same birth.
func (h identityHash) matches(other identityHash) bool {
	return h.name == other.name && (h.birth == other.birth || h.birth == "" || other.birth == "")
}

// rejectSelfReview returns apierr.SelfVerification when the calling reviewer is the customer. That is so when the customer has
// a validated e-mail address of the reviewer. It is also so when a present or former identity of the customer matches one of
// the reviewer's personas: the names, and the date of birth unless one of them is unknown.
func (s *Service) rejectSelfReview(ctx context.Context, q store.Querier, c Customer) error {
	reviewer := access.From(ctx).UserID
	same, err := s.users.OwnsEmail(ctx, q, reviewer, c.Email)
	if err != nil {
		return err
	}
	if same {
		return apierr.SelfVerification
	}
	identities, err := s.identities.Identities(ctx, q, reviewer)
	if err != nil {
		return err
	}
	same, err = s.matchesAny(ctx, q, c, identities)
	if err == nil && same {
		err = apierr.SelfVerification
	}
	return err
}

// matchesAny reports whether a present or former identity of the customer may be one of the identities.
func (s *Service) matchesAny(ctx context.Context, q store.Querier, c Customer, identities []types.Identity) (bool, error) {
	if len(identities) == 0 {
		return false, nil
	}
	customer, err := selectIdentities(ctx, q, c.ID)
	if err != nil {
		return false, err
	}
	customer = append(customer, s.hashOf(c))
	for _, identity := range identities {
		for _, hash := range s.hashes(identity) {
			if slices.ContainsFunc(customer, hash.matches) {
				return true, nil
			}
		}
	}
	return false, nil
}
