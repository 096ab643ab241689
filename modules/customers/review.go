package customers

import (
	"context"
	"errors"

	"kontor/modules/notice"
	"kontor/modules/records"
	"kontor/modules/value"
	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/server/fault"
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

// Change is one change of a customer's state.
type Change struct {
	From              Status     `json:"from"`
	To                Status     `json:"to"`
	VerificationLevel Level      `json:"verification_level"`
	Reason            string     `json:"reason"`
	ChangedAt         store.Time `json:"changed_at"`
	ChangedBy         string     `json:"changed_by"`
}

// mayReview reports whether the caller decides about customers: he holds the permission to update all of them. The
// owner of a single customer does not.
func mayReview(caller *access.Caller) bool { return caller.May(access.Customers, access.Update) }

// GetKYC tells how far the verification of a customer has come. Numbers of documents are masked for a caller who may
// not update the customer.
func (s *Service) GetKYC(ctx context.Context, in OneInput) (KYC, error) {
	c, err := table.Get(ctx, s.db, in.ID, access.Read)
	if err != nil {
		return KYC{}, err
	}
	_, err = table.Get(ctx, s.db, in.ID, access.Update)
	masked := errors.Is(err, fault.NoAccess)
	if err != nil && !masked {
		return KYC{}, err
	}
	k := KYC{CustomerID: c.ID, KYCStatus: c.KYCStatus, VerificationLevel: c.VerificationLevel, VerifiedAt: c.verifiedAt,
		Transitions: whoMay(c.KYCStatus), version: c.version}
	today := value.DateOf(s.db.Now().Std())
	if k.Documents, err = s.documents(ctx, s.db, c.ID, today); err != nil {
		return KYC{}, err
	}
	if k.History, err = selectChanges(ctx, s.db, c.ID); err != nil {
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

// SubmitKYC adds documents to a customer. It moves him to pending where that is the way on and, with verified_at from a
// caller who may review, to verified. It returns fault.InvalidKYCTransition when the documents do not carry that.
func (s *Service) SubmitKYC(ctx context.Context, in SubmitInput) (Customer, error) {
	sealed, err := s.sealDocuments(in.ID, in.documents)
	if err != nil {
		return Customer{}, err
	}
	var c Customer
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		before, err := records.ForChange(ctx, tx, table, in.ID, access.Update)
		if err != nil {
			return err
		}
		if err := in.checkDates(value.DateOf(tx.Now().Std()), tx.Now()); err != nil {
			return err
		}
		for _, d := range sealed {
			if err := upsertDocument(ctx, tx, d, access.From(ctx).UserID); err != nil {
				return err
			}
		}
		c = before
		if c.KYCStatus == NotStarted || c.KYCStatus == Rejected || c.KYCStatus == Expired {
			c.KYCStatus, c.VerificationLevel = Pending, LevelNone
		}
		if in.verifiedAt != nil && mayReview(access.From(ctx)) {
			if err := s.verify(ctx, tx, &c, *in.verifiedAt); err != nil {
				return err
			}
		}
		return s.change(ctx, tx, before, &c, "customers.kyc_submit", "")
	})
	return c, err
}

// verify makes a customer verified at the best level that his documents carry.
func (s *Service) verify(ctx context.Context, tx *store.Tx, c *Customer, at store.Time) error {
	if err := s.refuseSelf(ctx, tx, *c); err != nil {
		return err
	}
	today := value.DateOf(tx.Now().Std())
	documents, err := s.documents(ctx, tx, c.ID, today)
	if err != nil {
		return err
	}
	level := reachable(documents, today)
	if level == LevelNone {
		return fault.InvalidKYCTransition.Detail("allowed", next(c.KYCStatus)).
			Detail("requirements", requirements(*c, documents, today))
	}
	if c.VerificationLevel == LevelEnhanced {
		level = LevelEnhanced
	}
	c.KYCStatus, c.VerificationLevel, c.verifiedAt = Verified, level, &at
	return nil
}

// next lists the states that may follow, never nil.
func next(status Status) []Status { return append([]Status{}, transitions[status]...) }

// Decide changes the state or the level of a customer by decision of a reviewer. It returns fault.NoAccess for anybody
// else, fault.SelfVerification for a reviewer who is the customer, and fault.InvalidKYCTransition with the states that
// may follow.
func (s *Service) Decide(ctx context.Context, in DecideInput) (Customer, error) {
	var c Customer
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		before, err := records.ForChange(ctx, tx, table, in.ID, access.Update)
		if err != nil {
			return err
		}
		if !mayReview(access.From(ctx)) {
			return fault.NoAccess
		}
		if err := s.refuseSelf(ctx, tx, before); err != nil {
			return err
		}
		if c, err = s.decided(ctx, tx, before, in); err != nil {
			return err
		}
		return s.change(ctx, tx, before, &c, "customers.kyc_decide", in.Reason)
	})
	return c, err
}

// decided is the customer after a decision. A level belongs to a verified customer only; without one in the decision it
// is what his documents carry, and at least basic: the reviewer has seen what he has seen.
func (s *Service) decided(ctx context.Context, tx *store.Tx, c Customer, in DecideInput) (Customer, error) {
	if in.KYCStatus != "" {
		if !c.KYCStatus.allows(in.KYCStatus) {
			return c, fault.InvalidKYCTransition.Detail("allowed", next(c.KYCStatus))
		}
		c.KYCStatus, c.VerificationLevel = in.KYCStatus, LevelNone
	}
	if c.KYCStatus != Verified {
		if in.VerificationLevel != "" && in.VerificationLevel != LevelNone {
			return c, fault.InvalidKYCTransition.Detail("allowed", next(c.KYCStatus))
		}
		return c, nil
	}
	if in.KYCStatus == Verified {
		now := tx.Now()
		c.verifiedAt = &now
	}
	switch {
	case in.VerificationLevel == LevelNone:
		return c, fault.Invalid("verification_level", "invalid.one_of",
			fault.Args{"Values": string(LevelBasic + ", " + LevelStandard + ", " + LevelEnhanced)})
	case in.VerificationLevel != "":
		c.VerificationLevel = in.VerificationLevel
		return c, nil
	}
	today := value.DateOf(tx.Now().Std())
	documents, err := s.documents(ctx, tx, c.ID, today)
	if err != nil {
		return c, err
	}
	if c.VerificationLevel = reachable(documents, today); c.VerificationLevel == LevelNone {
		c.VerificationLevel = LevelBasic
	}
	return c, nil
}

// refuseSelf keeps a reviewer from deciding about himself: about a customer with an e-mail address of his own, or with
// the name and, as far as it is known, the day of birth of a persona that is linked to him.
func (s *Service) refuseSelf(ctx context.Context, tx *store.Tx, c Customer) error {
	reviewer := access.From(ctx).UserID
	same, err := ownsEmail(ctx, tx, reviewer, c.Email)
	if err != nil {
		return err
	}
	if !same {
		born := "" // a customer without a date of birth must not be the way round the rule
		if !c.DateOfBirth.IsZero() {
			born = c.DateOfBirth.String()
		}
		if same, err = s.identities.IsPerson(ctx, tx, reviewer, c.FirstName, c.LastName, born); err != nil {
			return err
		}
	}
	if same {
		return fault.SelfVerification
	}
	return nil
}

// change writes a customer whose verification has moved on, its history and its audit entry, and tells his creator when
// the state is another one.
func (s *Service) change(ctx context.Context, tx *store.Tx, before Customer, c *Customer, action, reason string) error {
	actor := records.Actor(ctx)
	c.UpdatedAt, c.version = tx.Now(), before.version+1
	if err := updateVerification(ctx, tx, *c, actor); err != nil {
		return err
	}
	table.Audit(ctx, tx, action, c.ID, audited(before), audited(*c))
	if c.KYCStatus == before.KYCStatus && c.VerificationLevel == before.VerificationLevel {
		return nil
	}
	if err := insertChange(ctx, tx, before, *c, reason, actor); err != nil {
		return err
	}
	if c.KYCStatus == before.KYCStatus {
		return nil
	}
	return s.notify.Notify(ctx, tx, notice.Notice{
		Event: notice.CustomerStatusChanged, CustomerID: c.ID, Type: access.Customers, RecordID: c.ID, Recipients: []string{c.createdBy},
		Args: map[string]any{"Name": c.name(), "From": string(before.KYCStatus), "To": string(c.KYCStatus)},
	})
}
