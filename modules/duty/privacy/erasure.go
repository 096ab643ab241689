package privacy

import (
	"context"
	"errors"
	"net/http"
	"time"

	"kontor/modules/kit/personal"
	"kontor/modules/kit/records"
	"kontor/modules/kit/validate"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// EraseInput asks for an erasure.
type EraseInput struct {
	ID     string `path:"id"`
	Reason string `json:"reason" enum:"request,retention,order,error" doc:"request: the person asked for it. retention: the period has ended. order: a court or an authority. error: the data should not have been recorded."`
}

// ErasePersonaInput asks for the erasure of a persona.
type ErasePersonaInput struct {
	ID     string `path:"persona_id"`
	Reason string `json:"reason" enum:"request,retention,order,error" doc:"As for a customer."`
}

// Validate checks the reason.
func (in *ErasePersonaInput) Validate(v *apierr.Fields) { (*EraseInput)(in).Validate(v) }

// erasePersona erases a persona.
func (s *Service) erasePersona(ctx context.Context, in ErasePersonaInput) (endpoint.Result, error) {
	return s.erase(personal.Persona)(ctx, EraseInput(in))
}

// Validate checks the reason. It is a code, because a text would be personal data again.
func (in *EraseInput) Validate(v *apierr.Fields) {
	validate.OneOf(v, "reason", in.Reason, "request", "retention", "order", "error")
}

// erase returns the function that erases persons of a kind.
func (s *Service) erase(kind personal.Kind) func(ctx context.Context, in EraseInput) (endpoint.Result, error) {
	return func(ctx context.Context, in EraseInput) (endpoint.Result, error) {
		subject := personal.Subject{Kind: kind, ID: in.ID}
		begun, err := s.record(ctx, subject, in.Reason)
		if err != nil {
			return endpoint.Result{}, err
		}
		e := begun[0]
		if e.Status != Erased {
			if err := s.db.RecordErasures(ledgerEntries(begun)...); err != nil {
				return endpoint.Result{}, err // the regular job repeats it
			}
			s.await(ctx, begun)
			if e, err = scanErasure(s.db.QueryRow(ctx, selectErasureByID, e.ID)); err != nil {
				return endpoint.Result{}, err
			}
		}
		result := endpoint.Result{Status: http.StatusOK, Body: s.withLeft(ctx, e)}
		if e.Status != Erased {
			result.Status = http.StatusAccepted
		}
		return result, nil
	}
}

// record records an erasure and marks the records of the person, in one transaction. It returns the erasure, and those of the
// personas of a user. If the person was erased before, it returns that erasure.
func (s *Service) record(ctx context.Context, subject personal.Subject, reason string) (begun []Erasure, err error) {
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		begun = begun[:0]
		if err := s.allow(ctx, tx, subject, access.Delete); err != nil {
			return err
		}
		known, err := scanErasure(tx.QueryRow(ctx, selectErasureOf, string(subject.Kind), subject.ID))
		if err == nil {
			begun = append(begun, known)
			return nil
		}
		if !errors.Is(err, store.ErrNotFound) {
			return err
		}
		subjects, err := s.check(ctx, tx, subject)
		if err != nil {
			return err
		}
		for _, one := range subjects {
			e := Erasure{ID: store.NewID(), Kind: one.Kind, SubjectID: one.ID, Reason: reason, Status: Running, RequestedAt: tx.Now(),
				RequestedBy: records.Actor(ctx)}
			if err := s.insert(ctx, tx, e); err != nil {
				return err
			}
			begun = append(begun, e)
		}
		return nil
	})
	return begun, err
}

// insert records one erasure and marks the record of the person.
func (s *Service) insert(ctx context.Context, tx *store.Tx, e Erasure) error {
	_, err := tx.Exec(ctx, insertErasure, e.ID, string(e.Kind), e.SubjectID, e.Reason, e.RequestedAt, e.RequestedBy)
	if err != nil {
		return err
	}
	if err := erasureProof.Audit(ctx, tx, "privacy.erasure_begun", e.ID, nil); err != nil {
		return err
	}
	tx.AnnounceSoon(s.topic, e.ID)
	_, err = s.Owners[e.Kind].ErasePerson(ctx, tx, e.subject(), "")
	return err
}

func (e Erasure) subject() personal.Subject { return personal.Subject{Kind: e.Kind, ID: e.SubjectID} }

// allow checks that the caller has a permission on the record of a person, who may be erased.
func (s *Service) allow(ctx context.Context, q store.Querier, subject personal.Subject, wanted access.Permission) error {
	var err error
	switch subject.Kind {
	case personal.Customer:
		err = s.Customers.Allow(ctx, q, subject.ID, wanted)
	case personal.User:
		err = s.Users.AllowUser(ctx, q, subject.ID, wanted)
	default:
		err = s.Personas.AllowPersona(ctx, q, subject.ID, wanted)
	}
	if errors.Is(err, apierr.RecordErased) {
		return nil
	}
	return err
}

// check returns why a person must not be erased, or the subjects of the erasure.
func (s *Service) check(ctx context.Context, tx *store.Tx, subject personal.Subject) ([]personal.Subject, error) {
	subjects := []personal.Subject{subject}
	switch subject.Kind {
	case personal.Customer:
		return subjects, s.checkCustomer(ctx, tx, subject.ID)
	case personal.User:
		if err := s.checkUser(ctx, tx, subject.ID); err != nil {
			return nil, err
		}
		personas, err := s.Personas.OfUser(ctx, tx, subject.ID)
		if err != nil {
			return nil, err
		}
		for _, id := range personas {
			subjects = append(subjects, personal.Subject{Kind: personal.Persona, ID: id})
		}
	case personal.Persona:
		if err := s.Personas.RejectOwn(ctx, tx, subject.ID); err != nil {
			return nil, err
		}
	}
	return subjects, s.checkHolds(ctx, tx, subjects)
}

// checkUser returns why the data of a user must not be erased. A user who is a customer is erased after the customer.
func (s *Service) checkUser(ctx context.Context, tx *store.Tx, id string) error {
	if access.From(ctx).UserID == id {
		return apierr.SelfErasure
	}
	if err := s.Users.CheckErasable(ctx, tx, id); err != nil {
		return err
	}
	same, err := s.Customers.OfUser(ctx, tx, id)
	if err != nil {
		return err
	}
	var kept []string
	for _, customer := range same {
		r, err := s.relationship(ctx, tx, customer)
		if err != nil {
			return err
		}
		if r.Customer || r.heldBy == customer {
			kept = append(kept, customer)
		}
	}
	if len(kept) > 0 {
		return apierr.HasCustomers.Detail("customers", kept)
	}
	return nil
}

// await begins erasures, or leaves them to the leader, and waits for their ends, for a limited time.
func (s *Service) await(ctx context.Context, begun []Erasure) {
	if !s.db.Leads() {
		ctx, cancel := context.WithTimeout(ctx, answerWithin)
		defer cancel()
		for _, e := range begun {
			s.awaitLeader(ctx, e.ID)
		}
		return
	}
	timer := time.NewTimer(answerWithin)
	defer timer.Stop()
	var ends []<-chan struct{}
	for _, e := range begun {
		ends = append(ends, s.begin(e))
	}
	for _, end := range ends {
		select {
		case <-end:
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// withLeft adds what the erasure leaves.
func (s *Service) withLeft(ctx context.Context, e Erasure) Erasure {
	for _, what := range left[e.Kind] {
		e.Left = append(e.Left, Left{what, s.Texts.Text(endpoint.Language(ctx), "privacy.left."+what, nil)})
	}
	return e
}
