package customers

import (
	"context"
	"errors"

	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// KYC is what is known about the verification of a customer.
type KYC struct {
	CustomerID        string              `json:"customer_id"`
	KYCStatus         Status              `json:"kyc_status"`
	VerificationLevel Level               `json:"verification_level"`
	VerifiedAt        *store.Time         `json:"verified_at"`
	Documents         []Document          `json:"documents"`
	Requirements      Requirements        `json:"requirements"`
	Transitions       map[Status][]string `json:"transitions" doc:"Next state to who may bring it about: reviewer, owner, system."` // next state → who may: reviewer, owner, system
	History           []Change            `json:"history" doc:"Newest first."`                                                      // newest first

	version int64
}

// ETag is the version of the customer.
func (k KYC) ETag() string { return endpoint.VersionTag(k.version) }

// Change is one change of a customer's state or identity.
type Change struct {
	From              Status        `json:"from"`
	To                Status        `json:"to"`
	VerificationLevel Level         `json:"verification_level"`
	Reason            string        `json:"reason"`
	ChangedAt         store.Time    `json:"changed_at"`
	ChangedBy         string        `json:"changed_by"`
	Changes           []FieldChange `json:"changes" doc:"What changed of the customer's identity; empty for callers who may not review."`

	id, sealed string
}

// mayReview reports whether the caller decides about customers: they hold the permission to update all of them. The
// owner of a single customer does not.
func mayReview(caller *access.Caller) bool { return caller.May(access.Customers, access.Update) }

// GetKYC returns how far the verification of a customer has come. Numbers of documents are masked for a caller who may
// not update the customer; what changed of an identity is for reviewers.
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
		Transitions: whoMay(c.KYCStatus), version: c.version}
	today := types.DateOf(s.db.Now().Std())
	if k.Documents, err = s.documents(ctx, s.db, c.ID, today); err != nil {
		return KYC{}, err
	}
	if k.History, err = s.history(ctx, c.ID); err != nil {
		return KYC{}, err
	}
	k.Requirements = requirements(c, k.Documents, today)
	looked := endpoint.Event{Kind: endpoint.Reading, Action: "customers.kyc_read", RecType: access.Customers.Name, RecID: c.ID}
	if !masked && len(k.Documents) > 0 {
		looked.Note = "document_numbers"
	}
	endpoint.Report(ctx, looked)
	if masked {
		for i := range k.Documents {
			k.Documents[i].Number = mask(k.Documents[i].Number)
		}
	}
	return k, nil
}

// history reads the newest changes of a customer's state and identity.
func (s *Service) history(ctx context.Context, customerID string) ([]Change, error) {
	changes, err := selectChanges(ctx, s.db, customerID)
	if err != nil {
		return nil, err
	}
	reviews := mayReview(access.From(ctx))
	for i := range changes {
		c := &changes[i]
		c.Changes = []FieldChange{}
		if !reviews {
			continue
		}
		if c.Changes, err = s.unseal(customerID, c.id, c.sealed); err != nil {
			return nil, err
		}
	}
	return changes, nil
}

// SubmitKYC adds documents to a customer. It moves the customer to pending where that is the way on and, with verified_at
// from a caller who may review, to verified: that is a decision like any other. It returns apierr.InvalidKYCTransition when
// the documents do not support that and apierr.SelfVerification for a reviewer who is the customer.
func (s *Service) SubmitKYC(ctx context.Context, in SubmitInput) (Customer, error) {
	sealed, err := s.sealDocuments(in.ID, in.documents)
	if err != nil {
		return Customer{}, err
	}
	prepare := func(ctx context.Context, q store.Querier, before Customer) (step, error) {
		now := s.db.Now()
		if err := in.checkDates(types.DateOf(now.Std()), now); err != nil {
			return step{}, err
		}
		c := before
		if c.KYCStatus == NotStarted || c.KYCStatus == Rejected || c.KYCStatus == Expired {
			c.KYCStatus, c.VerificationLevel = Pending, LevelNone
		}
		if in.verifiedAt != nil && mayReview(access.From(ctx)) {
			if err := s.verify(ctx, q, &c, sealed, *in.verifiedAt); err != nil {
				return step{}, err
			}
		}
		st := s.verification(before, c, "customers.kyc_submit", "")
		st.documents = sealed
		if st.added, err = newDocuments(ctx, q, before.ID, sealed); err != nil {
			return step{}, err
		}
		return st, nil
	}
	st, err := records.Revise(ctx, s.db, table, in.ID, access.Update, prepare, s.write)
	return st.after, err
}

// verify makes a customer verified at the best level that the documents support, those just handed in among them.
func (s *Service) verify(ctx context.Context, q store.Querier, c *Customer, submitted []sealedDocument, at store.Time) error {
	if err := s.refuseSelf(ctx, q, *c); err != nil {
		return err
	}
	today := types.DateOf(s.db.Now().Std())
	documents, err := validity(ctx, q, c.ID, submitted, today)
	if err != nil {
		return err
	}
	level := reachable(documents, today)
	if level == LevelNone {
		return apierr.InvalidKYCTransition.Detail("allowed", next(c.KYCStatus)).
			Detail("requirements", requirements(*c, documents, today))
	}
	if c.VerificationLevel == LevelEnhanced {
		level = LevelEnhanced
	}
	c.KYCStatus, c.VerificationLevel, c.verifiedAt = Verified, level, &at
	return nil
}

// next lists the states that a reviewer may choose, never nil.
func next(status Status) []Status { return append([]Status{}, transitions[status]...) }

// Decide changes the state or the level of a customer by decision of a reviewer. It returns apierr.NoAccess for anybody
// else, apierr.SelfVerification for a reviewer who is the customer, and apierr.InvalidKYCTransition with the states that
// may follow.
func (s *Service) Decide(ctx context.Context, in DecideInput) (Customer, error) {
	prepare := func(ctx context.Context, q store.Querier, before Customer) (step, error) {
		if !mayReview(access.From(ctx)) {
			return step{}, apierr.NoAccess
		}
		if err := s.refuseSelf(ctx, q, before); err != nil {
			return step{}, err
		}
		c, err := s.decided(ctx, q, before, in)
		if err != nil {
			return step{}, err
		}
		return s.verification(before, c, "customers.kyc_decide", in.Reason), nil
	}
	st, err := records.Revise(ctx, s.db, table, in.ID, access.Update, prepare, s.write)
	return st.after, err
}

// decided is the customer after a decision. Only a verified customer has a level. Without a level in the decision, use the
// level that the documents support, and at least basic: reviewers may have seen more than was handed in.
func (s *Service) decided(ctx context.Context, q store.Querier, c Customer, in DecideInput) (Customer, error) {
	if in.KYCStatus != "" {
		if !c.KYCStatus.allows(in.KYCStatus) {
			return c, apierr.InvalidKYCTransition.Detail("allowed", next(c.KYCStatus))
		}
		c.KYCStatus, c.VerificationLevel = in.KYCStatus, LevelNone
	}
	if c.KYCStatus != Verified {
		if in.VerificationLevel != "" && in.VerificationLevel != LevelNone {
			return c, apierr.InvalidKYCTransition.Detail("allowed", next(c.KYCStatus))
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
	documents, err := validity(ctx, q, c.ID, nil, today)
	if err != nil {
		return c, err
	}
	if c.VerificationLevel = reachable(documents, today); c.VerificationLevel == LevelNone {
		c.VerificationLevel = LevelBasic
	}
	return c, nil
}
