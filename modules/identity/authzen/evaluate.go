package authzen

import (
	"context"
	"errors"
	"net/http"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// Decision is the answer to a question.
type Decision struct {
	Decision bool            `json:"decision"`
	Context  DecisionContext `json:"context"`
}

// DecisionContext says why. Source and id are those of POST /v1/rbac/check.
type DecisionContext struct {
	Source   string         `json:"source" enum:"role,user,owner," doc:"The source of the permission; empty if it is denied."`
	SourceID string         `json:"source_id" format:"uuid" doc:"Id of the role or the user, or the nil id."`
	Reason   string         `json:"reason" enum:"granted,related,not_granted,unknown_subject,unknown_resource,error" doc:"granted: by a grant. related: by a relation to the record, such as its creator. unknown_subject: there is no such active user. unknown_resource: there is no such record."`
	Error    *DecisionError `json:"error,omitzero" doc:"Why a question of a batch could not be answered; missing from other decisions."`
}

// DecisionError is an error about one question of a batch.
type DecisionError struct {
	Status  int    `json:"status" example:"400"`
	Message string `json:"message" example:"resource.id"`
}

// The reasons of decisions.
const (
	reasonGranted         = "granted"
	reasonRelated         = "related"
	reasonNotGranted      = "not_granted"
	reasonUnknownSubject  = "unknown_subject"
	reasonUnknownResource = "unknown_resource"
	reasonError           = "error"
)

func deny(reason string) Decision {
	return Decision{Context: DecisionContext{SourceID: store.NilID, Reason: reason}}
}

// failed denies a question that could not be answered.
func failed(status int, message string) Decision {
	d := deny(reasonError)
	d.Context.Error = &DecisionError{status, message}
	return d
}

func decisionOf(a access.Decision) Decision {
	switch {
	case !a.Allowed && a.Missing:
		return deny(reasonUnknownResource)
	case !a.Allowed:
		return deny(reasonNotGranted)
	}
	d := Decision{Decision: true, Context: DecisionContext{Source: a.Source, SourceID: a.SourceID, Reason: reasonGranted}}
	if a.Source == "owner" {
		d.Context.Reason, d.Context.SourceID = reasonRelated, a.SourceID
	}
	return d
}

// evaluate answers one question.
func (s *Service) evaluate(ctx context.Context, in questionInput) (Decision, error) {
	return s.decideOne(ctx, in.Evaluation)
}

func (s *Service) decideOne(ctx context.Context, e Evaluation) (Decision, error) {
	subject, known, err := s.subject(ctx, e.Subject)
	switch {
	case err != nil:
		return Decision{}, err
	case !known:
		return deny(reasonUnknownSubject), nil
	}
	answers, err := s.decider.Ask(ctx, access.From(ctx), subject, []access.Check{e.question()})
	if err != nil {
		return Decision{}, err
	}
	return decisionOf(answers[0]), nil
}

func (e *Evaluation) question() access.Check {
	return access.Check{RecType: e.Resource.Type, Permission: e.Action.Name, RecID: e.Resource.ID}
}

// maxRef is the length of the longest id or user name that is looked up, in bytes.
const maxRef = 400

// subject returns an active user as a caller with the policy in force; known is false for an unknown one. It returns apierr.NoAccess if
// the caller may not ask about them, whether they exist or not. For such a caller it looks no other user up, so that the time of the answer
// does not show whether they exist either.
func (s *Service) subject(ctx context.Context, of Subject) (subject *access.Caller, known bool, err error) {
	asking := access.From(ctx)
	kind, typeKnown := kinds[of.Type]
	lookUp := typeKnown && len(of.ID) <= maxRef
	if !s.decider.MayAskAboutOthers(asking) {
		return s.self(ctx, asking, kind, of.ID, lookUp)
	}
	if lookUp {
		subject, known, err = s.directory.FindSubject(ctx, kind, of.ID)
	}
	if err != nil || !known {
		return nil, false, err
	}
	return subject.WithPolicy(s.policy.Load()), true, nil
}

// self is subject for a caller who may only ask about themselves.
func (s *Service) self(ctx context.Context, asking *access.Caller, kind, ref string, lookUp bool) (subject *access.Caller, known bool, err error) {
	if lookUp {
		known, err = s.directory.IsCalled(ctx, asking.UserID, ref)
	}
	if err == nil && known {
		subject, known, err = s.directory.FindSubject(ctx, kind, asking.UserID)
	}
	if err != nil {
		return nil, false, err
	}
	if !known {
		return nil, false, apierr.NoAccess
	}
	return subject.WithPolicy(s.policy.Load()), true, nil
}

// evaluationsOutput is the answer to a batch, or to a single question.
type evaluationsOutput struct {
	Evaluations []Decision `json:"evaluations" doc:"In the order of the questions. With another semantic than execute_all, questions after the decisive one are missing."`
}

// JSONSchemaOneOf describes the forms of the answer.
func (evaluationsAnswer) JSONSchemaOneOf() []any { return []any{evaluationsOutput{}, Decision{}} }

// evaluationsAnswer describes the answer, which is one of two forms.
type evaluationsAnswer struct{}

// evaluateAll answers a batch. Without questions it is a single evaluation.
func (s *Service) evaluateAll(ctx context.Context, in evaluationsInput) (endpoint.Result, error) {
	defaults := in.defaults()
	if len(in.Evaluations) == 0 {
		d, err := s.decideOne(ctx, defaults)
		return endpoint.Result{Body: d}, err
	}
	b := batch{Service: s, decisions: make([]Decision, len(in.Evaluations)), subjects: map[subjectKey]*asked{}}
	for i := range in.Evaluations {
		if err := b.add(ctx, i, &in.Evaluations[i], &defaults); err != nil {
			return endpoint.Result{}, err
		}
	}
	if err := b.decide(ctx); err != nil {
		return endpoint.Result{}, err
	}
	return endpoint.Result{Body: evaluationsOutput{ended(b.decisions, in.Options.Semantic)}}, nil
}

// ended returns the decisions up to the one with which a semantic ends.
func ended(decisions []Decision, semantic string) []Decision {
	for i, d := range decisions {
		if semantic == denyOnFirstDeny && !d.Decision || semantic == permitOnFirstPermit && d.Decision {
			return decisions[:i+1]
		}
	}
	return decisions
}

// batch groups questions by subject: each subject is looked up and decided once.
type batch struct {
	*Service
	decisions []Decision
	subjects  map[subjectKey]*asked
	order     []*asked
}

type subjectKey struct{ kind, id string }

// asked are the questions about one subject.
type asked struct {
	subject   *access.Caller // nil: the decision is final
	final     Decision
	questions []access.Check
	places    []int
}

// add adds a question to those about its subject, or denies it.
func (b *batch) add(ctx context.Context, i int, in *item, defaults *Evaluation) error {
	if in.wrong != nil {
		b.decisions[i] = failed(http.StatusBadRequest, place(i)+" "+in.wrong.Error())
		return nil //nolint:nilerr // it is the answer to this question
	}
	e := in.completed(defaults)
	var problems apierr.Fields
	if e.check(&problems); !problems.Empty() {
		for field := range problems.All {
			b.decisions[i] = failed(http.StatusBadRequest, "missing: "+field)
			break
		}
		return nil
	}
	key := subjectKey{e.Subject.Type, e.Subject.ID}
	of := b.subjects[key]
	if of == nil {
		of = &asked{}
		var known bool
		var err error
		switch of.subject, known, err = b.subject(ctx, e.Subject); {
		case errors.Is(err, apierr.NoAccess):
			of.subject, of.final = nil, failed(http.StatusForbidden, "not allowed to ask about others")
		case err != nil:
			return err
		case !known:
			of.subject, of.final = nil, deny(reasonUnknownSubject)
		}
		b.subjects[key] = of
		b.order = append(b.order, of)
	}
	if of.subject == nil {
		b.decisions[i] = of.final
		return nil
	}
	of.questions, of.places = append(of.questions, e.question()), append(of.places, i)
	return nil
}

// decide answers the questions about each subject.
func (b *batch) decide(ctx context.Context) error {
	asking := access.From(ctx)
	for _, of := range b.order {
		if of.subject == nil {
			continue
		}
		answers, err := b.decider.Ask(ctx, asking, of.subject, of.questions)
		if err != nil {
			return err
		}
		for i, at := range of.places {
			b.decisions[at] = decisionOf(answers[i])
		}
	}
	return nil
}
