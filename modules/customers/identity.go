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

// FieldChange is a member of a customer's identity before and after a change.
type FieldChange struct {
	Field string `json:"field" enum:"type,first_name,last_name,date_of_birth,nationality"`
	From  string `json:"from"`
	To    string `json:"to"`
}

// identityChanges lists what changed of the identity that a reviewer verifies: type, names, date of birth and
// nationality. Upper and lower case and white space do not count. Everything else does, accents and punctuation among
// them: whether "Muller" is "Müller" is for a reviewer to say.
func identityChanges(before, after Customer) []FieldChange {
	var changes []FieldChange
	for _, f := range []FieldChange{
		{"type", before.Type, after.Type},
		{"first_name", before.FirstName, after.FirstName},
		{"last_name", before.LastName, after.LastName},
		{"date_of_birth", before.DateOfBirth.String(), after.DateOfBirth.String()},
		{"nationality", text(before.Nationality), text(after.Nationality)},
	} {
		if spelling(f.From) != spelling(f.To) {
			changes = append(changes, f)
		}
	}
	return changes
}

func spelling(text string) string { return strings.Join(strings.Fields(types.Fold(text)), " ") }

const (
	updateAction = "customers.update"
	reopenAction = "customers.kyc_reopen"
)

// revision makes the step of an update. A changed identity is what nobody has verified: a verified case goes back to
// review without a level, one in review stays there, and the history has the old and the new values.
func (s *Service) revision(ctx context.Context, q store.Querier, before, after Customer) (step, error) {
	changes := identityChanges(before, after)
	mid := s.next(before, after)
	after = mid
	st := step{before: before, keys: after.derive()}
	st.audits = []auditStep{{updateAction, s.db.Digest(audited(before)), s.db.Digest(audited(mid))}}
	if len(changes) > 0 && before.KYCStatus == Verified {
		after.KYCStatus, after.VerificationLevel, after.verifiedAt = InReview, LevelNone, nil
		st.moved = true
		st.audits = append(st.audits, auditStep{reopenAction, st.audits[0].after, s.db.Digest(audited(after))})
	}
	st.after = after
	if len(changes) > 0 && before.KYCStatus != NotStarted {
		st.entry = &historyEntry{id: store.NewID()}
		var err error
		if st.entry.changes, err = s.seal(before.ID, st.entry.id, changes); err != nil {
			return st, err
		}
	}
	if former := s.hashOf(before); former != s.hashOf(after) {
		st.former = &former
	}
	return st, s.refuseTakeover(ctx, q, after)
}

// refuseTakeover keeps a reviewer who has decided a case from making it their own afterwards.
func (s *Service) refuseTakeover(ctx context.Context, q store.Querier, after Customer) error {
	caller := access.From(ctx)
	if !mayReview(caller) {
		return nil
	}
	decided, err := hasDecided(ctx, q, after.ID, caller.UserID)
	if err != nil || !decided {
		return err
	}
	return s.refuseSelf(ctx, q, after)
}

// identityHash is an identity as keyed hashes: names by [value.PersonKey], and the day of birth, empty where unknown.
type identityHash struct{ name, birth string }

func (s *Service) hash(i types.Identity) identityHash {
	h := identityHash{name: s.keyed("customer name", types.PersonKey(i.FirstName, i.LastName))}
	if i.DateOfBirth != "" {
		h.birth = s.keyed("customer birth", i.DateOfBirth)
	}
	return h
}

func (s *Service) keyed(purpose, text string) string {
	return hex.EncodeToString(s.db.Keyed(purpose, []byte(text)))
}

func (s *Service) hashOf(c Customer) identityHash {
	return s.hash(types.Identity{FirstName: c.FirstName, LastName: c.LastName, DateOfBirth: c.DateOfBirth.String()})
}

// fits reports whether two identities may be one person: the same names and, where both are known, the same birth.
func (h identityHash) fits(other identityHash) bool {
	return h.name == other.name && (h.birth == other.birth || h.birth == "" || other.birth == "")
}

// refuseSelf keeps a reviewer from deciding about themselves: about a customer with an e-mail address of theirs, or who
// has, or ever had, the names and, as far as it is known, the day of birth that the reviewer has or ever had by a persona.
func (s *Service) refuseSelf(ctx context.Context, q store.Querier, c Customer) error {
	reviewer := access.From(ctx).UserID
	same, err := ownsEmail(ctx, q, reviewer, c.Email)
	if err != nil {
		return err
	}
	if same {
		return apierr.SelfVerification
	}
	mine, err := s.identities.Identities(ctx, q, reviewer)
	if err != nil || len(mine) == 0 {
		return err
	}
	customer, err := selectIdentities(ctx, q, c.ID)
	if err != nil {
		return err
	}
	customer = append(customer, s.hashOf(c))
	for _, identity := range mine {
		if slices.ContainsFunc(customer, s.hash(identity).fits) {
			return apierr.SelfVerification
		}
	}
	return nil
}
