package authzen

import (
	"context"
	"net/http"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
)

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
		r.Method, r.Limit, r.AuthZEN = http.MethodPost, ratelimit.Private, true
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
	for i := range rows {
		rows[i].Tag = "AuthZEN"
	}
	return rows
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
