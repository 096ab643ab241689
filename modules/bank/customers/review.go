package customers

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"kontor/modules/kit/hit"
	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/etag"
	"kontor/store"
)

// KYC is the state of a customer's verification, with documents and history.
type KYC struct {
	CustomerID        string              `json:"customer_id"`
	KYCStatus         Status              `json:"kyc_status"`
	VerificationLevel Level               `json:"verification_level"`
	VerifiedAt        *store.Time         `json:"verified_at"`
	Documents         []Document          `json:"documents"`
	Requirements      Requirements        `json:"requirements"`
	Transitions       map[Status][]string `json:"transitions" doc:"The possible next states, and who can cause each: reviewer, owner or system."`
	History           []Change            `json:"history" doc:"Newest first."`
	Suggestion        Suggestion          `json:"suggestion"`
	FourEyes          string              `json:"four_eyes" enum:"off,enhanced,always" doc:"Which decisions need a second person."`
	PendingDecision   *PendingDecision    `json:"pending_decision" doc:"The decision that waits for a second person; null without one, for callers who may not review, and for the customer."`
	ScreeningHits     []hit.Hit           `json:"screening_hits" doc:"The hits of the customer and its payers, newest first, also dismissed ones. Open, pending and confirmed ones block a verification. Empty for callers who may not review, and for the customer."`
	PossibleSelf      bool                `json:"possible_self_review,omitzero" doc:"true for a reviewer whose address or name the customer claims: this may be their own case. A claim proves nothing, so they are not excluded; leave the case to others if it is yours. Missing otherwise."`
	Decisions         []PendingDecision   `json:"decisions" doc:"Closed decisions that needed a second person, newest first; empty for callers who may not review, and for the customer."`

	version int64
}

// ETag returns the version of the customer, and names the number of files, which change without it. For reviewers it also names the state of the decisions and hits, which change without the customer:
// to all others nothing must show them.
func (k KYC) ETag() string {
	tag := endpoint.VersionTag(k.version)
	if k.PendingDecision == nil && len(k.Decisions) == 0 && len(k.ScreeningHits) == 0 && !k.PossibleSelf && !slices.ContainsFunc(k.Documents, Document.hasFiles) {
		return tag
	}
	state := sha256.New()
	if k.PossibleSelf {
		fmt.Fprintln(state, k.PossibleSelf)
	}
	for _, d := range k.Documents {
		fmt.Fprintln(state, d.files)
	}
	if d := k.PendingDecision; d != nil {
		fmt.Fprintln(state, d.ID)
		if d.ChangedSince != nil {
			fmt.Fprintln(state, *d.ChangedSince)
		}
	}
	for _, d := range k.Decisions {
		fmt.Fprintln(state, d.ID, d.State)
	}
	for _, h := range k.ScreeningHits {
		fmt.Fprintln(state, h.ID, h.Version)
	}
	return etag.Beside(tag, hex.EncodeToString(state.Sum(nil)[:4]))
}

// EachUser names the actors of the history.
func (k KYC) EachUser(add func(id string)) {
	for _, c := range k.History {
		add(c.ChangedBy)
	}
	if k.PendingDecision != nil {
		add(k.PendingDecision.ProposedBy)
	}
	for _, d := range k.Decisions {
		add(d.ProposedBy)
		if d.ClosedBy != "" {
			add(d.ClosedBy)
		}
	}
	for _, h := range k.ScreeningHits {
		h.EachUser(add)
	}
}

// Change is a history entry: one change of a customer's state or identity.
type Change struct {
	From              Status        `json:"from"`
	To                Status        `json:"to"`
	VerificationLevel Level         `json:"verification_level"`
	Reason            string        `json:"reason" doc:"Of a decision that needed a second person, reviewers get its reason, and all others what it says to the customer. The customer is no reviewer of their own."`
	CustomerReason    string        `json:"customer_reason,omitzero" doc:"For reviewers: what a decision that needed a second person says to the customer."`
	ChangedAt         store.Time    `json:"changed_at"`
	ChangedBy         string        `json:"changed_by"`
	Changes           []FieldChange `json:"changes" doc:"The changed members of the customer's identity; empty for callers who may not review, and for the customer."`

	id, sealed string
	decisionID *string
	internal   string // the reason of the decision
}

// mayReview reports whether the caller may decide about customers. Reviewers hold the permission to update all customers;
// the owner of a single customer does not.
func mayReview(caller *access.Caller) bool { return caller.May(access.Customers, access.Update) }

// GetKYC returns the state of a customer's verification. It masks the numbers of documents for callers who may not update the
// customer. Only reviewers who are not the customer see the changes of the identity, and the reasons of decisions of two persons.
func (s *Service) GetKYC(ctx context.Context, in OneInput) (KYC, error) {
	c, err := table.Get(ctx, s.db, in.ID, access.Read)
	if err != nil {
		return KYC{}, err
	}
	_, err = table.Get(ctx, s.db, in.ID, access.Update)
	masked := errors.Is(err, apierr.NoAccess)
	if err != nil && !masked {
		return KYC{}, err
	}
	k := KYC{CustomerID: c.ID, KYCStatus: c.KYCStatus, VerificationLevel: c.VerificationLevel, VerifiedAt: c.verifiedAt,
		Transitions: transitionActors(c.KYCStatus), version: c.version}
	today := types.DateOf(s.db.Now().Std())
	if k.Documents, err = s.documents(ctx, s.db, c.ID, today); err != nil {
		return KYC{}, err
	}
	k.Requirements, k.Suggestion, k.FourEyes = requirements(c, k.Documents, today), suggest(c, k.Documents, today), s.fourEyes
	if err := s.addReview(ctx, &k, c); err != nil {
		return KYC{}, err
	}
	read := endpoint.Event{Kind: endpoint.Reading, Action: "customers.kyc_read", RecType: access.Customers.Name, RecID: c.ID}
	if !masked && len(k.Documents) > 0 {
		read.Note = "document_numbers"
	}
	endpoint.Report(ctx, read)
	if masked {
		for i := range k.Documents {
			k.Documents[i].Number = mask(k.Documents[i].Number)
		}
	}
	return k, nil
}

// addReview adds the history and, for reviewers who are not the customer, the decisions that needed a second person, and hits. All others get no
// decisions, no hits, no changes of the identity, and of reasons only what is for the customer.
func (s *Service) addReview(ctx context.Context, k *KYC, c Customer) error {
	changes, err := selectChanges(ctx, s.db, c.ID)
	if err != nil {
		return err
	}
	k.History, k.Decisions, k.ScreeningHits = changes, []PendingDecision{}, []hit.Hit{}
	var all []PendingDecision
	reviewer := mayReview(access.From(ctx))
	hits, err := s.hits(ctx, c.ID)
	if err != nil {
		return err
	}
	if reviewer {
		if all, err = selectDecisions(ctx, s.db, c.ID); err != nil {
			return err
		}
	}
	if reviewer {
		self, err := s.isCustomer(ctx, s.db, c, access.From(ctx).UserID)
		if err != nil {
			return err
		}
		reviewer = !self
	}
	if !reviewer {
		for i := range k.History {
			k.History[i].Changes = []FieldChange{}
		}
		return nil
	}
	dataKey, err := s.readKey(ctx, s.db, c.ID)
	if err != nil {
		return err
	}
	for i := range k.History {
		if err := s.complete(dataKey, c.ID, &k.History[i]); err != nil {
			return err
		}
	}
	k.ScreeningHits = append(k.ScreeningHits, hits...)
	if k.PossibleSelf, err = s.possiblySelf(ctx, s.db, c); err != nil {
		return err
	}
	return k.addDecisions(all)
}

// complete adds to an entry of the history what only reviewers read.
func (s *Service) complete(dataKey []byte, customerID string, c *Change) (err error) {
	if c.decisionID != nil {
		c.CustomerReason, c.Reason = c.Reason, c.internal
	}
	c.Changes, err = s.unseal(dataKey, customerID, c.id, c.sealed)
	return err
}

func (k *KYC) addDecisions(all []PendingDecision) (err error) {
	for _, d := range all {
		if d.State == DecisionPending {
			if d.DocumentsAdded, err = documentsAdded(d, k.Documents); err != nil {
				return err
			}
			k.PendingDecision = &d
		} else {
			k.Decisions = append(k.Decisions, d)
		}
	}
	return nil
}

// SubmitKYC adds documents to a customer. A valid document moves a customer whose verification has not started, was rejected or
// expired to pending. With verified_at from a reviewer it moves the customer to verified, which is a decision. It returns
// apierr.InvalidKYCTransition when the documents do not support that, and apierr.SelfVerification for a reviewer who is the
// customer, and apierr.DecisionWaits for a verification while a decision waits, and apierr.ScreeningOpen for one with hits. A verification that needs a second person waits for them.
func (s *Service) SubmitKYC(ctx context.Context, in SubmitInput) (endpoint.Result, error) {
	verifies := in.verifiedAt != nil && mayReview(access.From(ctx))
	if !verifies && len(in.documents) == 0 { // nothing to change
		c, err := records.GetForUpdate(ctx, s.db, table, in.ID, access.Update)
		return Decision{c, nil}.answer(), err
	}
	if err := s.Allow(ctx, s.db, in.ID, access.Update); err != nil {
		return endpoint.Result{}, err
	}
	sealed, err := s.sealDocuments(ctx, in.ID, in.documents)
	if err != nil {
		return endpoint.Result{}, err
	}
	screened := ""
	if verifies {
		if screened, err = s.screen(ctx, in.ID); err != nil {
			return endpoint.Result{}, err
		}
	}
	prepare := func(ctx context.Context, q store.Querier, before Customer) (preparedChange, error) {
		now := s.db.Now()
		if verifies && *in.verifiedAt > now {
			return preparedChange{}, apierr.Invalid("verified_at", "invalid.date_future")
		}
		c := before
		opens := c.KYCStatus == NotStarted || c.KYCStatus == Rejected || c.KYCStatus == Expired
		if opens && (verifies || in.hasValid(types.DateOf(now.Std()))) {
			c.KYCStatus, c.VerificationLevel = Pending, LevelNone
		}
		if verifies {
			if err := endpoint.RequireAssurance(ctx, endpoint.Decision); err != nil {
				return preparedChange{}, err
			}
			if err := s.verify(ctx, q, &c, sealed, *in.verifiedAt); err != nil {
				return preparedChange{}, err
			}
			if _, waits, err := selectPending(ctx, q, before.ID); err != nil || waits {
				return preparedChange{}, cmp.Or(err, error(apierr.DecisionWaits))
			}
		}
		change := s.prepareVerification(before, c, submitAction, reasons{})
		if s.needsSecondPerson(before, c) {
			if change, err = s.propose(ctx, q, before, c, reasons{reason: in.Reason, forCustomer: in.CustomerReason}, sealed); err != nil {
				return preparedChange{}, err
			}
		}
		change.documents, change.screened = sealed, screened
		if change.newDocuments, err = newDocuments(ctx, q, before.ID, sealed); err != nil {
			return preparedChange{}, err
		}
		return change, nil
	}
	change, err := records.UpdatePrepared(ctx, s.db, table, in.ID, access.Update, prepare, s.write)
	return Decision{change.after, change.proposal}.answer(), err
}

// verify sets a customer to verified, at the highest level that its documents support, including those just submitted.
func (s *Service) verify(ctx context.Context, q store.Querier, c *Customer, submitted []sealedDocument, at store.Time) error {
	if err := s.rejectSelfReview(ctx, q, *c); err != nil {
		return err
	}
	today := types.DateOf(s.db.Now().Std())
	documents, err := documentValidity(ctx, q, c.ID, submitted, today)
	if err != nil {
		return err
	}
	level := supportedLevel(documents, today)
	if level == LevelNone {
		return apierr.InvalidKYCTransition.Detail("allowed", nextStatuses(c.KYCStatus)).
			Detail("requirements", requirements(*c, documents, today))
	}
	if c.VerificationLevel == LevelEnhanced {
		level = LevelEnhanced
	}
	c.KYCStatus, c.VerificationLevel, c.verifiedAt = Verified, c.knownLevel(level), &at
	return c.checkMembers()
}

// nextStatuses returns the states that a reviewer may choose. It never returns nil.
func nextStatuses(status Status) []Status { return append([]Status{}, transitions[status]...) }

// findReviewed finds a customer about whom the caller may decide.
func (s *Service) findReviewed(ctx context.Context, ids []string, _ any) error {
	_, err := table.Get(ctx, s.db, ids[0], access.Update)
	if err == nil && !mayReview(access.From(ctx)) {
		err = apierr.NoAccess
	}
	return err
}

// Decide changes the state or the level of a customer, or stores a decision that waits for a second person. It returns
// apierr.NoAccess for callers who are no reviewers, apierr.SelfVerification for a reviewer who is the customer,
// apierr.InvalidKYCTransition with the possible next states, apierr.DecisionWaits while a decision waits, and apierr.ScreeningOpen for a
// verification with hits.
func (s *Service) Decide(ctx context.Context, in DecideInput) (endpoint.Result, error) {
	screened := ""
	if in.KYCStatus == "" || in.KYCStatus == Verified {
		var err error
		if screened, err = s.screen(ctx, in.ID); err != nil {
			return endpoint.Result{}, err
		}
	}
	prepare := func(ctx context.Context, q store.Querier, before Customer) (preparedChange, error) {
		if !mayReview(access.From(ctx)) {
			return preparedChange{}, apierr.NoAccess
		}
		if err := s.rejectSelfReview(ctx, q, before); err != nil {
			return preparedChange{}, err
		}
		if _, waits, err := selectPending(ctx, q, before.ID); err != nil || waits {
			return preparedChange{}, cmp.Or(err, error(apierr.DecisionWaits))
		}
		c, err := s.applyDecision(ctx, q, before, in)
		if err == nil {
			err = c.checkMembers()
		}
		if err != nil {
			return preparedChange{}, err
		}
		if s.needsSecondPerson(before, c) {
			change, err := s.propose(ctx, q, before, c, reasons{reason: in.Reason, forCustomer: in.CustomerReason}, nil)
			change.screened = screened
			return change, err
		}
		if in.CustomerReason != "" { // the customer reads the reason
			return preparedChange{}, apierr.Invalid("customer_reason", "customers.reason_is_read")
		}
		change := s.prepareVerification(before, c, "customers.kyc_decide", reasons{reason: in.Reason})
		change.screened = screened
		return change, nil
	}
	change, err := records.UpdatePrepared(ctx, s.db, table, in.ID, access.Update, prepare, s.write)
	return Decision{change.after, change.proposal}.answer(), err
}

// applyDecision returns the customer after a decision. Only verified customers have a level. Without a level in the decision,
// the customer gets the level that its documents support, and at least basic: reviewers may have seen other documents.
func (s *Service) applyDecision(ctx context.Context, q store.Querier, c Customer, in DecideInput) (Customer, error) {
	if in.KYCStatus != "" {
		if !c.KYCStatus.allows(in.KYCStatus) {
			return c, apierr.InvalidKYCTransition.Detail("allowed", nextStatuses(c.KYCStatus))
		}
		c.KYCStatus, c.VerificationLevel = in.KYCStatus, LevelNone
	}
	if c.KYCStatus != Verified {
		if in.VerificationLevel != "" && in.VerificationLevel != LevelNone {
			return c, apierr.InvalidKYCTransition.Detail("allowed", nextStatuses(c.KYCStatus))
		}
		return c, nil
	}
	now := s.db.Now()
	if in.KYCStatus == Verified {
		c.verifiedAt = &now
	}
	switch {
	case in.VerificationLevel == LevelNone:
		return c, apierr.Invalid("verification_level", "invalid.one_of",
			apierr.Args{"Values": string(LevelBasic + ", " + LevelStandard + ", " + LevelEnhanced)})
	case in.VerificationLevel != "":
		c.VerificationLevel = in.VerificationLevel
		return c, nil
	}
	today := types.DateOf(now.Std())
	documents, err := documentValidity(ctx, q, c.ID, nil, today)
	if err != nil {
		return c, err
	}
	if c.VerificationLevel = c.knownLevel(supportedLevel(documents, today)); c.VerificationLevel == LevelNone {
		c.VerificationLevel = LevelBasic
	}
	return c, nil
}

// ReasonTemplate is a text that reviewers can start from. It is addressed to the customer.
type ReasonTemplate struct {
	ID        string            `json:"id" format:"-" example:"unreadable"`
	KYCStatus Status            `json:"kyc_status" doc:"The decision that the reason is for."`
	Texts     map[string]string `json:"texts" doc:"By language: en, de, fr, it."`
}

// ReasonTemplates are the templates of all decisions.
type ReasonTemplates struct {
	Reasons []ReasonTemplate `json:"reasons"`
}

// reasonIDs are the templates by the decision that they are for. Their texts have the keys kyc.reason.<id>.
var reasonIDs = []struct {
	status Status
	ids    []string
}{
	{Verified, []string{"documents_checked", "seen_in_person", "enhanced_checked"}},
	{ActionRequired, []string{"unreadable", "both_sides", "address_missing", "address_old", "document_expired", "name_differs", "funds_unclear"}},
	{Rejected, []string{"not_the_person", "altered", "no_answer", "not_accepted"}},
}

// Reasons returns the templates for the reasons of decisions, in all languages: a reason is written in the language of the customer.
func (s *Service) Reasons(context.Context, endpoint.None) (ReasonTemplates, error) {
	out := ReasonTemplates{Reasons: []ReasonTemplate{}}
	for _, group := range reasonIDs {
		for _, id := range group.ids {
			texts := map[string]string{}
			for _, language := range []types.Language{types.English, types.German, types.French, types.Italian} {
				texts[language.String()] = s.texts.Text(language.String(), "kyc.reason."+id, nil)
			}
			out.Reasons = append(out.Reasons, ReasonTemplate{ID: id, KYCStatus: group.status, Texts: texts})
		}
	}
	return out, nil
}
