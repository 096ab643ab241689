package privacy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"kontor/modules/kit/evidence"
	"kontor/modules/kit/personal"
	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
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

// begin runs an erasure in the background, unless it runs already. The channel is closed at its end. An erasure that fails is
// repeated by the regular job.
func (s *Service) begin(e Erasure) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if end, runs := s.running[e.ID]; runs {
		return end
	}
	end := make(chan struct{})
	s.running[e.ID] = end
	s.wait.Go(func() {
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.running, e.ID)
			close(end)
		}()
		s.turn.Lock()
		defer s.turn.Unlock()
		if err := s.finish(s.ctx, e.ID); err != nil && s.ctx.Err() == nil {
			s.Log.Error("an erasure failed; it will be repeated", "erasure", e.ID, "cause", err)
		}
	})
	return end
}

// finish completes an erasure from the state in which it is.
func (s *Service) finish(ctx context.Context, id string) error {
	e, err := scanErasure(s.db.QueryRow(ctx, selectErasureByID, id))
	if err != nil || e.Status == Erased {
		return err
	}
	if err := s.db.RecordErasures(ledgerEntries([]Erasure{e})...); err != nil {
		return err
	}
	if e.Status == Running {
		if err := s.eraseData(ctx, e); err != nil {
			return err
		}
	}
	if err := s.db.Clean(ctx); err != nil {
		return fmt.Errorf("clean the files: %w", err)
	}
	return s.setStatus(ctx, e, Erased)
}

// eraseData overwrites the data of a person in all modules. It starts again after an interruption.
func (s *Service) eraseData(ctx context.Context, e Erasure) error {
	ctx = access.With(ctx, &access.Caller{UserID: e.RequestedBy})
	for _, m := range s.Modules {
		if err := s.eraseIn(ctx, m, e.subject()); err != nil {
			return fmt.Errorf("erase in %T: %w", m, err)
		}
	}
	if err := s.db.ForgetAnswers(ctx, e.SubjectID); err != nil {
		return fmt.Errorf("forget answers: %w", err)
	}
	return s.setStatus(ctx, e, Cleaning)
}

func (s *Service) eraseIn(ctx context.Context, m personal.Module, subject personal.Subject) error {
	for cursor := ""; ; {
		err := s.db.InTx(ctx, func(tx *store.Tx) error {
			next, err := m.ErasePerson(ctx, tx, subject, cursor)
			if err == nil {
				tx.AfterCommit(func() { cursor = next })
			}
			return err
		})
		if err != nil || cursor == "" {
			return err
		}
	}
}

func (s *Service) setStatus(ctx context.Context, e Erasure, status Status) error {
	ctx = access.With(ctx, &access.Caller{UserID: e.RequestedBy})
	return s.db.InTx(ctx, func(tx *store.Tx) error {
		var erased *store.Time
		if now := tx.Now(); status == Erased {
			erased = &now
		}
		tx.AnnounceSoon(s.topic, e.ID)
		return erasureProof.ChangeRow(ctx, tx, "privacy.erasure_"+string(status), e.ID, updateErasure, e.ID, string(status), erased)
	})
}

// The records of one person are found by proven evidence: owners, addresses, identities and links, also former ones. Claims
// count for nothing: their author could keep the data of others by them. Some evidence leads in one
// direction only, because of what is former there are digests. The search therefore begins at both ends, the subject and the customers
// under a hold, and the records are of one person if the two searches meet.

// maxExpanded bounds the records of one person that a search expands. Those that it has found, but not expanded, count.
const maxExpanded = 1000

// held maps the records of persons with a customer under a hold to that customer.
type held map[personal.Subject]string

// heldPersons returns the records of all persons with a customer under a hold. The owner of such a customer is one of them.
func (s *Service) heldPersons(ctx context.Context, q store.Querier) (held, error) {
	customers, err := store.All(ctx, q, store.Text, selectHeld, s.today(q).String())
	if err != nil {
		return nil, fmt.Errorf("read legal holds: %w", err)
	}
	found := held{}
	for _, id := range customers {
		start := []personal.Subject{{Kind: personal.Customer, ID: id}}
		creator, err := s.Customers.CreatorOf(ctx, q, id)
		if err != nil {
			return nil, err
		}
		if creator != "" {
			start = append(start, personal.Subject{Kind: personal.User, ID: creator})
		}
		if err := s.expand(ctx, q, start, func(one personal.Subject) bool {
			_, known := found[one]
			if !known || one.ID == id { // a hold of their own comes first
				found[one] = id
			}
			return !known // what is known was expanded before
		}); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// linkedHold returns a customer under a hold who is the person of the subject, by all evidence; empty for none.
func (s *Service) linkedHold(ctx context.Context, q store.Querier, of personal.Subject, persons held) (customer string, err error) {
	if len(persons) == 0 {
		return "", nil
	}
	seen := map[personal.Subject]bool{}
	err = s.expand(ctx, q, []personal.Subject{of}, func(one personal.Subject) bool {
		known := seen[one]
		seen[one] = true
		if customer == "" {
			customer = persons[one]
		}
		return !known && customer == ""
	})
	return customer, err
}

// expand finds the records of a person, beginning with some of them. It calls add for each; add reports whether to expand it.
func (s *Service) expand(ctx context.Context, q store.Querier, start []personal.Subject, add func(personal.Subject) bool) error {
	var next []personal.Subject
	take := func(found []personal.Subject) {
		for _, one := range found {
			if add(one) {
				next = append(next, one)
			}
		}
	}
	take(start)
	for n := 0; n < len(next) && n < maxExpanded; n++ {
		found, err := s.sameAs(ctx, q, next[n])
		if err != nil {
			return fmt.Errorf("find the records of a person: %w", err)
		}
		take(found)
	}
	return nil
}

// sameAs returns further records of the person that a record is about.
func (s *Service) sameAs(ctx context.Context, q store.Querier, of personal.Subject) (all []personal.Subject, err error) {
	add := func(kind personal.Kind, ids []string) {
		for _, id := range ids {
			all = append(all, personal.Subject{Kind: kind, ID: id})
		}
	}
	var customers, users, personas []string
	switch of.Kind {
	case personal.Customer:
		var identity *evidence.Proven[types.Identity]
		if customers, users, identity, err = s.Customers.SamePerson(ctx, q, of.ID); err == nil && identity != nil {
			personas, err = s.Personas.WithIdentity(ctx, q, *identity)
		}
	case personal.User:
		if customers, err = s.Customers.OfUser(ctx, q, of.ID); err == nil {
			personas, err = s.Personas.OfUser(ctx, q, of.ID)
		}
	case personal.Persona:
		var identities []evidence.Proven[types.Identity]
		if users, err = s.Personas.UsersOf(ctx, q, of.ID); err == nil {
			identities, err = s.Personas.IdentitiesOf(ctx, q, of.ID)
		}
		if err == nil {
			customers, err = s.Customers.OfIdentities(ctx, q, identities)
		}
	}
	add(personal.Customer, customers)
	add(personal.User, users)
	add(personal.Persona, personas)
	return all, err
}
