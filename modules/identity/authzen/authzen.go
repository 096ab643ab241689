// Package authzen answers the OpenID AuthZEN Authorization API 1.0: other programs of the bank ask what a user may do, one by one, in
// batches and by search.
//
// The module only translates. [Decider] decides, which is the module rbac: subjects are users and service accounts, resources are
// records by type and id, actions are permissions. Unknown ones are denied. Of the standard it serves Basic Core, Batch Core, Search
// Core and Discovery: properties and context are read and have no influence, which the metadata say.
//
// All callers may ask about themselves. To ask about others takes the permission read_all on grants. The package owns no table and
// writes nothing.
package authzen

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
)

// The types of subjects.
const (
	user           = "user"
	serviceAccount = "service_account"
)

// kinds are the kinds of users of the directory, by type of subject.
var kinds = map[string]string{user: "person", serviceAccount: "service"}

// Decider decides about records, of Kontor and of other applications.
type Decider interface {
	// Ask decides questions about one subject, in their order.
	Ask(ctx context.Context, asking, subject *access.Caller, questions []access.Check) ([]access.Decision, error)
	// MayAskAboutOthers reports whether the caller may ask about other subjects.
	MayAskAboutOthers(asking *access.Caller) bool
	// Subjects returns the ids of the active users of a kind for whom a question is allowed and whom the caller may list, in their order.
	Subjects(ctx context.Context, asking *access.Caller, kind string, q access.Check, after string, limit int) ([]string, error)
	// Resources returns the ids of records of a type on which the subject has a permission, in their order.
	Resources(ctx context.Context, asking, subject *access.Caller, recType, permission, after string, limit int) ([]string, error)
	// Actions returns the permissions of a record type; none for an unknown type.
	Actions(ctx context.Context, recType string) ([]string, error)
}

// Directory finds users.
type Directory interface {
	// FindSubject returns the active user of a kind by id or, for people, by a user name. ok is false for any other text.
	FindSubject(ctx context.Context, kind, ref string) (caller *access.Caller, ok bool, err error)
	// IsCalled reports whether a text is the id or a user name of a user. It reads nothing about others.
	IsCalled(ctx context.Context, userID, ref string) (bool, error)
	// UserNames returns the oldest user name of each user who has one, by id.
	UserNames(ctx context.Context, ids []string) (map[string]string, error)
}

// Options are the settings of the module.
type Options struct {
	// BaseURL is the address of this installation, under which other programs reach it.
	BaseURL string
	// Policy decides for subjects.
	Policy *access.Current
}

// Service is the module.
type Service struct {
	decider   Decider
	directory Directory
	base      string
	policy    *access.Current
}

// New returns the module.
func New(decider Decider, directory Directory, o Options) *Service {
	return &Service{decider: decider, directory: directory, base: strings.TrimRight(o.BaseURL, "/"), policy: o.Policy}
}

// The paths of the standard.
const (
	pathEvaluation     = "/access/v1/evaluation"
	pathEvaluations    = "/access/v1/evaluations"
	pathSearchSubject  = "/access/v1/search/subject"
	pathSearchResource = "/access/v1/search/resource"
	pathSearchAction   = "/access/v1/search/action"
	pathMetadata       = "/.well-known/authzen-configuration"
)

// Endpoints returns the rows of the module.
func (s *Service) Endpoints() []endpoint.Endpoint {
	rows := []endpoint.Endpoint{
		{Name: "authzen.evaluation", Path: pathEvaluation, Summary: "Decide whether a subject may do something with a resource.",
			Handle: endpoint.JSON(http.StatusOK, s.evaluate)},
		{Name: "authzen.evaluations", Path: pathEvaluations, Summary: "Decide several questions.",
			Doc:    endpoint.Doc{Answers: []endpoint.Answer{{Status: http.StatusOK, Body: evaluationsAnswer{}, Says: "The decisions, or one decision for a request without evaluations."}}},
			Handle: endpoint.JSON(http.StatusOK, s.evaluateAll)},
		{Name: "authzen.search.subject", Path: pathSearchSubject, Summary: "List the subjects that may do something with a resource.",
			Handle: endpoint.JSON(http.StatusOK, s.searchSubjects)},
		{Name: "authzen.search.resource", Path: pathSearchResource, Summary: "List the resources with which a subject may do something.",
			Handle: endpoint.JSON(http.StatusOK, s.searchResources)},
		{Name: "authzen.search.action", Path: pathSearchAction, Summary: "List what a subject may do with a resource.",
			Handle: endpoint.JSON(http.StatusOK, s.searchActions)},
	}
	for i := range rows {
		r := &rows[i]
		r.Method, r.AuthZEN = http.MethodPost, true
		r.Access, r.Roles = access.SignedIn, []string{access.Advisor, access.Customer}
		r.Subject = access.NoSubject("it changes nothing, and readers of all grants alone ask about others")
		r.Faults = []apierr.Kind{apierr.InvalidInput}
		r.Doc.Description = "An operation of the OpenID AuthZEN Authorization API 1.0. Everybody may ask about themselves; to ask about others takes the " +
			"permission `read_all` on `grants`. A denial is a decision, with status 200. Unknown subjects, resources and actions are denied."
	}
	rows = append(rows, endpoint.Endpoint{
		Name: "authzen.metadata", Method: http.MethodGet, Path: pathMetadata, Access: access.Public, Limit: ratelimit.Public, // clients read it before they have a token
		AuthZEN: true, Summary: "Get the metadata of the decision point.", Handle: endpoint.JSON(http.StatusOK, s.metadata),
	})
	return endpoint.Group("AuthZEN", ratelimit.Private, rows)
}

// metadata describes the decision point (section "Policy Decision Point Metadata").
type metadata struct {
	PDP         string   `json:"policy_decision_point" example:"https://kontor.example.com"`
	Evaluation  string   `json:"access_evaluation_endpoint" example:"https://kontor.example.com/access/v1/evaluation"`
	Evaluations string   `json:"access_evaluations_endpoint" example:"https://kontor.example.com/access/v1/evaluations"`
	Subjects    string   `json:"search_subject_endpoint" example:"https://kontor.example.com/access/v1/search/subject"`
	Resources   string   `json:"search_resource_endpoint" example:"https://kontor.example.com/access/v1/search/resource"`
	Actions     string   `json:"search_action_endpoint" example:"https://kontor.example.com/access/v1/search/action"`
	Capable     []string `json:"capabilities" example:"urn:kontor:authzen:properties-ignored" doc:"urn:kontor:authzen:properties-ignored: the members properties and context of requests have no influence on decisions."`
}

// propertiesIgnored is the capability of a decision point that serves the Core levels of the certification only.
const propertiesIgnored = "urn:kontor:authzen:properties-ignored"

func (s *Service) metadata(context.Context, endpoint.None) (metadata, error) {
	return metadata{
		PDP: s.base, Evaluation: s.base + pathEvaluation, Evaluations: s.base + pathEvaluations,
		Subjects: s.base + pathSearchSubject, Resources: s.base + pathSearchResource, Actions: s.base + pathSearchAction,
		Capable: []string{propertiesIgnored},
	}, nil
}

// ignored is an object of any form, which is read and not kept.
type ignored struct{}

// JSONSchemaOneOf describes the JSON form.
func (ignored) JSONSchemaOneOf() []any { return []any{jsontext.Value{}} }

// Subject is a user or a service account (section "Subject" of the standard).
type Subject struct {
	Type       string  `json:"type" required:"true" example:"user" doc:"user or service_account; nobody of another type has a permission."`
	ID         string  `json:"id" example:"anna.keller" format:"-" doc:"The id of a user, or one of their user names. Searches for subjects ignore it."`
	Properties ignored `json:"properties,omitzero" required:"false" example:"-" doc:"Accepted, without influence."`
}

// Action is a permission.
type Action struct {
	Name       string  `json:"name" required:"true" example:"read" doc:"A permission of the record type."`
	Properties ignored `json:"properties,omitzero" required:"false" example:"-" doc:"Accepted, without influence."`
}

// Resource is a record.
type Resource struct {
	Type       string  `json:"type" required:"true" example:"customers" doc:"A record type, as GET /v1/rbac/record-types lists them."`
	ID         string  `json:"id" format:"-" example:"0198f5c0-52a1-7cc2-9f00-2a3b4c5d6e7f" doc:"The record; the nil id stands for the type as a whole. Searches for resources ignore it."`
	Properties ignored `json:"properties,omitzero" required:"false" example:"-" doc:"Accepted, without influence."`
}

// Evaluation is one question.
type Evaluation struct {
	Subject  Subject  `json:"subject" required:"true"`
	Action   Action   `json:"action" required:"true"`
	Resource Resource `json:"resource" required:"true"`
	Context  ignored  `json:"context" required:"false" example:"-" doc:"Accepted, without influence."`
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
	Subject     Subject      `json:"subject" required:"false"`
	Action      Action       `json:"action" required:"false"`
	Resource    Resource     `json:"resource" required:"false"`
	Context     ignored      `json:"context" required:"false" example:"-" doc:"Accepted, without influence."`
	Evaluations []item       `json:"evaluations" required:"false" maxItems:"1000" doc:"Questions. A member that one of them lacks is that of the request."`
	Options     batchOptions `json:"options" required:"false"`
}

// defaults returns the question of the request itself.
func (in *evaluationsInput) defaults() Evaluation {
	return Evaluation{Subject: in.Subject, Action: in.Action, Resource: in.Resource}
}

// Validate checks what belongs to the request as a whole. A question that cannot be answered is denied by itself.
func (in *evaluationsInput) Validate(v *apierr.Fields) {
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
	Subject  Subject  `json:"subject" required:"false"`
	Action   Action   `json:"action" required:"false"`
	Resource Resource `json:"resource" required:"false"`
	Context  ignored  `json:"context" required:"false" example:"-" doc:"Accepted, without influence."`
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
	Subject  Subject   `json:"subject" required:"true"`
	Resource Resource  `json:"resource" required:"true"`
	Context  ignored   `json:"context" required:"false" example:"-" doc:"Accepted, without influence."`
	Page     pageInput `json:"page" required:"false"`

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
