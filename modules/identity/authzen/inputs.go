package authzen

import (
	"errors"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"kontor/server/apierr"
)

// Subject is a user or a service account (section "Subject" of the standard).
type Subject struct {
	Type       string         `json:"type" required:"true" example:"user" doc:"user or service_account; nobody of another type has a permission."`
	ID         string         `json:"id" example:"anna.keller" format:"-" doc:"The id of a user, or one of their user names. Searches for subjects ignore it."`
	Properties map[string]any `json:"properties,omitzero" required:"false" example:"-" doc:"Accepted, without influence."`
}

// Action is a permission.
type Action struct {
	Name       string         `json:"name" required:"true" example:"read" doc:"A permission of the record type."`
	Properties map[string]any `json:"properties,omitzero" required:"false" example:"-" doc:"Accepted, without influence."`
}

// Resource is a record.
type Resource struct {
	Type       string         `json:"type" required:"true" example:"customers" doc:"A record type, as GET /v1/rbac/record-types lists them."`
	ID         string         `json:"id" format:"-" example:"0198f5c0-52a1-7cc2-9f00-2a3b4c5d6e7f" doc:"The record; the nil id stands for the type as a whole. Searches for resources ignore it."`
	Properties map[string]any `json:"properties,omitzero" required:"false" example:"-" doc:"Accepted, without influence."`
}

// Evaluation is one question.
type Evaluation struct {
	Subject  Subject        `json:"subject" required:"true"`
	Action   Action         `json:"action" required:"true"`
	Resource Resource       `json:"resource" required:"true"`
	Context  map[string]any `json:"context" required:"false" example:"-" doc:"Accepted, without influence."`
}

// questionInput is the body of an evaluation.
type questionInput struct{ Evaluation }

// Validate reports missing members.
func (in *questionInput) Validate(v *apierr.Fields) { in.check(v) }

// check reports the members of a question that are missing. An empty text is no id and no name.
func (e *Evaluation) check(v *apierr.Fields) {
	required(v, "subject.type", e.Subject.Type)
	required(v, "subject.id", e.Subject.ID)
	required(v, "action.name", e.Action.Name)
	required(v, "resource.type", e.Resource.Type)
	required(v, "resource.id", e.Resource.ID)
}

// required reports an empty member, unless the member or its object is reported already.
func required(v *apierr.Fields, field, value string) {
	object, _, _ := strings.Cut(field, ".")
	if value == "" && !v.Has(object) && !v.Has(field) {
		v.Add(field, "invalid.required")
	}
}

// maxEvaluations limits the questions of one request.
const maxEvaluations = 1000

// The semantics of a batch (section "Evaluations semantics").
const (
	executeAll          = "execute_all"
	denyOnFirstDeny     = "deny_on_first_deny"
	permitOnFirstPermit = "permit_on_first_permit"
)

// batchOptions are the options of a batch. Others are ignored.
type batchOptions struct {
	Semantic string `json:"evaluations_semantic" required:"false" enum:"execute_all,deny_on_first_deny,permit_on_first_permit" default:"execute_all" doc:"Whether the answer ends with the first denial or the first permission."`
}

// evaluationsInput is the body of a batch. Subject, action and resource are defaults for the questions; without questions they are one.
type evaluationsInput struct {
	Subject     Subject        `json:"subject" required:"false"`
	Action      Action         `json:"action" required:"false"`
	Resource    Resource       `json:"resource" required:"false"`
	Context     map[string]any `json:"context" required:"false" example:"-" doc:"Accepted, without influence."`
	Evaluations []item         `json:"evaluations" required:"false" maxItems:"1000" doc:"Questions. A member that one of them lacks is that of the request."`
	Options     batchOptions   `json:"options" required:"false"`
}

// defaults returns the question of the request itself.
func (in *evaluationsInput) defaults() Evaluation {
	return Evaluation{Subject: in.Subject, Action: in.Action, Resource: in.Resource}
}

// Validate checks what belongs to the request as a whole. A question that cannot be answered is denied by itself.
func (in *evaluationsInput) Validate(v *apierr.Fields) {
	if len(in.Evaluations) > maxEvaluations {
		v.Add("evaluations", "invalid.max_items", apierr.Args{"Max": maxEvaluations})
		return
	}
	switch in.Options.Semantic {
	case "", executeAll, denyOnFirstDeny, permitOnFirstPermit:
	default:
		v.Add("options.evaluations_semantic", "invalid.one_of", apierr.Args{"Values": strings.Join([]string{executeAll, denyOnFirstDeny, permitOnFirstPermit}, ", ")})
	}
	if len(in.Evaluations) == 0 {
		e := in.defaults()
		e.check(v)
	}
}

// item is a question of a batch. One of the wrong form is denied and does not reject the others.
type item struct {
	Evaluation
	wrong error // why it could not be read
}

// batchedQuestion describes a question of a batch. A member that it lacks is that of the request.
type batchedQuestion struct {
	Subject  Subject        `json:"subject" required:"false"`
	Action   Action         `json:"action" required:"false"`
	Resource Resource       `json:"resource" required:"false"`
	Context  map[string]any `json:"context" required:"false" example:"-" doc:"Accepted, without influence."`
}

// JSONSchemaOneOf describes the JSON form.
func (item) JSONSchemaOneOf() []any { return []any{batchedQuestion{}} }

// UnmarshalJSON reads a question. It keeps errors about its members.
func (i *item) UnmarshalJSON(data []byte) error {
	err := json.Unmarshal(data, &i.Evaluation)
	if semantic, ok := errors.AsType[*json.SemanticError](err); ok {
		i.wrong, err = semantic, nil
	}
	return err
}

// completed returns the question with the defaults of its batch. An object of the question replaces that of the request; type, id
// and name that it lacks are still those of the request.
func (i *item) completed(defaults *Evaluation) Evaluation {
	e := i.Evaluation
	fill(&e.Subject.Type, defaults.Subject.Type)
	fill(&e.Subject.ID, defaults.Subject.ID)
	fill(&e.Action.Name, defaults.Action.Name)
	fill(&e.Resource.Type, defaults.Resource.Type)
	fill(&e.Resource.ID, defaults.Resource.ID)
	return e
}

func fill(member *string, value string) {
	if *member == "" {
		*member = value
	}
}

// pageInput is the part of the results that a search wants.
type pageInput struct {
	Token string   `json:"token" required:"false" example:"-" doc:"next_token of the page before, for the same search."`
	Limit *float64 `json:"limit" required:"false" minimum:"0" example:"100" doc:"The most results of the page, up to 1000. Without it, as many as on the page before, or 100."`
}

// subjectSearch is the body of a search for subjects.
type subjectSearch struct {
	Evaluation
	Page pageInput `json:"page" required:"false"`

	page page
}

// Validate reports missing members and a wrong page.
func (in *subjectSearch) Validate(v *apierr.Fields) {
	in.Subject.ID = "ignored"
	in.check(v)
	in.page = in.Page.parse(v)
}

// resourceSearch is the body of a search for resources.
type resourceSearch struct {
	Evaluation
	Page pageInput `json:"page" required:"false"`

	page page
}

// Validate reports missing members and a wrong page.
func (in *resourceSearch) Validate(v *apierr.Fields) {
	in.Resource.ID = "ignored"
	in.check(v)
	in.page = in.Page.parse(v)
}

// actionSearch is the body of a search for actions.
type actionSearch struct {
	Subject  Subject        `json:"subject" required:"true"`
	Resource Resource       `json:"resource" required:"true"`
	Context  map[string]any `json:"context" required:"false" example:"-" doc:"Accepted, without influence."`
	Page     pageInput      `json:"page" required:"false"`

	page page
}

// Validate reports missing members and a wrong page.
func (in *actionSearch) Validate(v *apierr.Fields) {
	required(v, "subject.type", in.Subject.Type)
	required(v, "subject.id", in.Subject.ID)
	required(v, "resource.type", in.Resource.Type)
	required(v, "resource.id", in.Resource.ID)
	in.page = in.Page.parse(v)
}

// place returns the name of a question in errors.
func place(i int) string { return "evaluations." + strconv.Itoa(i) + "." }
