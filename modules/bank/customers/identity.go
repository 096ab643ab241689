package customers

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"kontor/modules/kit/evidence"
	"kontor/modules/kit/records"
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
	submitAction = "customers.kyc_submit"
)

// prepareUpdate prepares an update. A changed identity is not verified. A verified customer therefore returns to review
// without a level, and the history records the old and the new values. A customer in review stays in review.
func (s *Service) prepareUpdate(ctx context.Context, q store.Querier, before, after Customer) (change preparedChange, err error) {
	after.prove(before, access.From(ctx).ActsForBank(access.Customers))
	changes := identityChanges(before, after)
	after = s.nextVersion(before, after)
	change = preparedChange{before: before, keys: after.searchKeys()}
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
	if change.formerAddresses, err = s.formerAddresses(ctx, q, before, after); err != nil {
		return change, err
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
	decided, err := store.Exists(ctx, q, hasDecidedStatement, after.ID, caller.UserID)
	if err != nil || !decided {
		return err
	}
	return s.rejectSelfReview(ctx, q, after)
}

// exclusion is why a user is no second person.
type exclusion string

const (
	isTheCustomer     exclusion = "customer"
	isLinkedToThem    exclusion = "linked"   // by a persona, to the customer
	isLinkedToTheUser exclusion = "proposer" // is the proposer, or linked to them
)

// err returns the error for an excluded caller, or nil.
func (e exclusion) err() error {
	switch e {
	case "":
		return nil
	case isTheCustomer:
		return apierr.SelfVerification
	}
	return apierr.SecondPersonRequired
}

// identityHash holds keyed hashes of an identity: of the names, by [types.PersonKey], and of the date of birth. The latter is
// empty when the date is unknown.
type identityHash struct{ name, birth string }

// matches reports whether two identities may be one person: the same names and, where both are known, the same birth.
func (h identityHash) matches(other identityHash) bool {
	return h.name == other.name && (h.birth == other.birth || h.birth == "" || other.birth == "")
}

func (s *Service) hashOf(c Customer) identityHash {
	i := c.identity()
	return identityHash{records.NameMark(s.db, i.FirstName, i.LastName), records.BirthMark(s.db, i.DateOfBirth)}
}

func (c Customer) identity() types.Identity {
	return types.Identity{FirstName: c.FirstName, LastName: c.LastName, DateOfBirth: c.DateOfBirth.String()}
}

// hashes returns the hashes of an identity under all keys that stored ones may have: the text of a former identity is not
// stored, so that a rotation of the master key cannot hash it again.
func (s *Service) hashes(i types.Identity) []identityHash {
	births := records.BirthMarks(s.db, i.DateOfBirth)
	var all []identityHash
	for n, name := range records.NameMarks(s.db, i.FirstName, i.LastName) {
		all = append(all, identityHash{name, births[n]})
	}
	return all
}

// marks are what a person is known by, at present and in the past.
type marks struct {
	identities []identityHash
	addresses  []string
}

func (m marks) share(other marks) bool {
	return slices.ContainsFunc(m.addresses, func(a string) bool { return slices.Contains(other.addresses, a) }) || m.sharesIdentity(other.identities)
}

func (m marks) sharesIdentity(others []identityHash) bool {
	return slices.ContainsFunc(m.identities, func(h identityHash) bool { return slices.ContainsFunc(others, h.matches) })
}

// user is what is known of a user: what is proven, and what they say about themselves.
type user struct {
	id      string
	proven  evidence.Proven[marks]
	claimed evidence.Claimed[marks]
}

// is reports whether a user is, or was, a person. Claims of users about themselves count against these users alone: the marks of the
// person must be proven.
func (u user) is(person evidence.Proven[marks]) bool {
	return u.proven.Value().share(person.Value()) || u.claimed.Value().share(person.Value())
}

// userOf returns what a user is known by: the identities of personas, the display name and user names, and the addresses. A date of
// birth belongs to the latter names only if other members of staff have recorded it.
func (s *Service) userOf(ctx context.Context, q store.Querier, userID string) (u user, err error) {
	identities, said, err := s.identities.Identities(ctx, q, userID)
	if err != nil {
		return u, err
	}
	known, err := s.users.Marks(ctx, q, userID)
	if err != nil {
		return u, err
	}
	born, err := s.identities.BirthDates(ctx, q, userID)
	if err != nil {
		return u, err
	}
	births := []string{""}
	for i, date := range born {
		if i == 0 {
			births = nil
		}
		births = append(births, records.BirthMarks(s.db, date.Value())...)
	}
	claimed := marks{identities: s.hashAll(evidence.Said(said))}
	for _, name := range evidence.Said(known.Names) {
		for _, birth := range births {
			claimed.identities = append(claimed.identities, identityHash{name, birth})
		}
	}
	proven := marks{identities: s.hashAll(evidence.Values(identities)), addresses: evidence.Values(known.Addresses)}
	return user{id: userID, proven: evidence.Recorded(proven), claimed: evidence.Claim(claimed)}, nil
}

func (s *Service) hashAll(identities []types.Identity) (all []identityHash) {
	for _, identity := range identities {
		all = append(all, s.hashes(identity)...)
	}
	return all
}

// provenMarks returns what a customer is and was known by, as far as it is proven: what staff wrote, what reviewers have confirmed, and
// addresses that its owner has validated.
func (s *Service) provenMarks(ctx context.Context, q store.Querier, c Customer) (proven evidence.Proven[marks], err error) {
	var m marks
	if m.identities, err = selectIdentities(ctx, q, c.ID); err != nil {
		return proven, err
	}
	if m.addresses, err = store.All(ctx, q, store.Text, selectFormerAddresses, c.ID); err != nil {
		return proven, fmt.Errorf("read former addresses: %w", err)
	}
	if c.proven.identity {
		m.identities = append(m.identities, s.hashes(c.identity())...)
	}
	var validated []string
	if owner := c.owner(); owner != "" {
		known, err := s.users.Marks(ctx, q, owner)
		if err != nil {
			return proven, err
		}
		validated = evidence.Values(known.Addresses)
	}
	for _, a := range c.addresses() {
		digests := records.AddressMarks(s.db, a.text)
		if a.proven || slices.ContainsFunc(digests, func(d string) bool { return slices.Contains(validated, d) }) {
			m.addresses = append(m.addresses, digests...)
		}
	}
	return evidence.Recorded(m), nil
}

// owner returns the user who has recorded themselves as the customer; empty for a record of the bank.
func (c Customer) owner() string {
	if c.byStaff {
		return ""
	}
	return c.createdBy
}

// address is the e-mail address or the phone number of a customer.
type address struct {
	text   string
	proven bool
}

func (c Customer) addresses() []address {
	all := []address{{c.Email, c.proven.email}}
	if c.Phone != nil {
		all = append(all, address{*c.Phone, c.proven.phone})
	}
	return all
}

// formerAddresses returns the digests of addresses that a change removes.
func (s *Service) formerAddresses(ctx context.Context, q store.Querier, before, after Customer) (former []formerAddress, err error) {
	var was *evidence.Proven[marks]
	for _, a := range before.addresses() {
		if slices.ContainsFunc(after.addresses(), func(b address) bool { return a.text == b.text }) {
			continue
		}
		if was == nil {
			proven, err := s.provenMarks(ctx, q, before)
			if err != nil {
				return nil, err
			}
			was = &proven
		}
		digest := records.AddressMark(s.db, a.text)
		former = append(former, formerAddress{digest, slices.Contains(was.Value().addresses, digest)})
	}
	return former, nil
}

// rejectSelfReview returns apierr.SelfVerification when the calling reviewer is the customer. That is so when the record is theirs, and
// when a proven address of the customer is or was theirs. It is also so when proven identities of the customer match theirs: the names,
// and the date of birth unless one of them is unknown. Claims of the customer do not count, see [Service.possiblySelf].
func (s *Service) rejectSelfReview(ctx context.Context, q store.Querier, c Customer) error {
	self, err := s.isCustomer(ctx, q, c, access.From(ctx).UserID)
	if err == nil && self {
		err = apierr.SelfVerification
	}
	return err
}

func (s *Service) isCustomer(ctx context.Context, q store.Querier, c Customer, userID string) (bool, error) {
	if c.owner() == userID {
		return true, nil
	}
	customer, err := s.provenMarks(ctx, q, c)
	if err != nil {
		return false, err
	}
	u, err := s.userOf(ctx, q, userID)
	return u.is(customer), err
}

// possiblySelf reports whether a customer claims, or claimed, an address or the names of the caller: people must look at that. It decides
// nothing, because the owner of the record could exclude any reviewer.
func (s *Service) possiblySelf(ctx context.Context, q store.Querier, c Customer) (bool, error) {
	u, err := s.userOf(ctx, q, access.From(ctx).UserID)
	if err != nil {
		return false, err
	}
	present := marks{identities: s.hashes(c.identity())}
	for _, a := range c.addresses() {
		present.addresses = append(present.addresses, records.AddressMarks(s.db, a.text)...)
	}
	claims := evidence.Claim(present)
	addresses, identities := u.proven.Value().addresses, slices.Concat(u.proven.Value().identities, u.claimed.Value().identities)
	if (marks{identities, addresses}).share(claims.Value()) {
		return true, nil
	}
	if len(addresses) > 0 {
		former, err := store.Exists(ctx, q, `SELECT 1 FROM customer_addresses WHERE customer_id = $1 AND digest IN (`+store.In(2, len(addresses))+`) LIMIT 1`,
			store.AppendIn([]any{c.ID}, addresses)...)
		if former || err != nil {
			return former, err
		}
	}
	for _, i := range identities {
		former, err := store.Exists(ctx, q, hasClaimedIdentity, c.ID, i.name, i.birth)
		if former || err != nil {
			return former, err
		}
	}
	return false, nil
}

const hasClaimedIdentity = `
	SELECT 1 FROM customer_identities
	WHERE customer_id = $1 AND name_hash = $2 AND (birth_hash = $3 OR birth_hash = '' OR CAST($3 AS TEXT) = '')
	LIMIT 1`

// concerned is what exclusions from one decision depend on.
type concerned struct {
	customer    Customer
	proposer    user
	related     map[string]bool // to the proposer
	customerWas evidence.Proven[marks]
}

func (s *Service) concerned(ctx context.Context, q store.Querier, c Customer, proposer string) (k concerned, err error) {
	if k, err = s.concernedProposer(ctx, q, proposer); err != nil {
		return k, err
	}
	k.customer = c
	k.customerWas, err = s.provenMarks(ctx, q, c)
	return k, err
}

func (s *Service) concernedProposer(ctx context.Context, q store.Querier, proposer string) (k concerned, err error) {
	if k.related, err = s.identities.RelatedUsers(ctx, q, proposer); err != nil {
		return k, err
	}
	k.proposer, err = s.userOf(ctx, q, proposer)
	return k, err
}

// covers reports whether a user is the proposer, or related to them.
func (k concerned) covers(u user) bool {
	return u.id == k.proposer.id || k.related[u.id] || u.is(k.proposer.proven)
}

// exclusionOf returns why a user is no second person, by all evidence of the present and the past; empty for a user who is one.
func (s *Service) exclusionOf(ctx context.Context, q store.Querier, k concerned, userID string) (exclusion, error) {
	if userID == k.proposer.id {
		return isLinkedToTheUser, nil
	}
	u, err := s.userOf(ctx, q, userID)
	switch {
	case err != nil:
		return "", err
	case userID == k.customer.owner() || u.is(k.customerWas):
		return isTheCustomer, nil
	case k.covers(u):
		return isLinkedToTheUser, nil
	}
	linked, err := s.identities.LinkedIdentities(ctx, q, userID)
	if err == nil && k.customerWas.Value().sharesIdentity(s.hashAll(evidence.Values(linked))) {
		return isLinkedToThem, nil
	}
	return "", err
}

// CheckOther returns apierr.SelfVerification for a caller who is, or was, a customer, for other modules.
func (s *Service) CheckOther(ctx context.Context, q store.Querier, customerID string) error {
	c, err := table.GetUnchecked(ctx, q, customerID)
	if err != nil {
		return err
	}
	return s.rejectSelfReview(ctx, q, c)
}

// CheckOtherProposer returns apierr.SecondPersonRequired for a caller who is, or was, the proposer of a decision or related to them, for
// decisions that are about no customer.
func (s *Service) CheckOtherProposer(ctx context.Context, q store.Querier, proposer string) error {
	k, err := s.concernedProposer(ctx, q, proposer)
	if err != nil {
		return err
	}
	u, err := s.userOf(ctx, q, access.From(ctx).UserID)
	if err == nil && k.covers(u) {
		err = apierr.SecondPersonRequired
	}
	return err
}

// CheckSecondPerson checks for other modules that the caller counts as another person than the proposer of a change of a customer. It
// returns apierr.SecondPersonRequired and apierr.SelfVerification.
func (s *Service) CheckSecondPerson(ctx context.Context, q store.Querier, customerID, proposer string) error {
	c, err := table.GetUnchecked(ctx, q, customerID)
	if err != nil {
		return err
	}
	return s.checkPresent(ctx, q, c, proposer)
}

func (s *Service) checkPresent(ctx context.Context, q store.Querier, c Customer, proposer string) error {
	k, err := s.concerned(ctx, q, c, proposer)
	if err != nil {
		return err
	}
	excluded, err := s.exclusionOf(ctx, q, k, access.From(ctx).UserID)
	if err != nil {
		return err
	}
	return excluded.err()
}
