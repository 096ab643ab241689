package authzen

import (
	"context"
	"encoding/base64"
	"math"
	"strconv"
	"strings"

	"kontor/server/access"
	"kontor/server/apierr"
)

// pageOutput describes a page of results.
type pageOutput struct {
	NextToken string `json:"next_token" example:"" doc:"The token of the next page; empty at the end."`
	Count     int    `json:"count" doc:"The results of this page."`
}

// foundSubject is a subject that a search found.
type foundSubject struct {
	Type       string            `json:"type" example:"user"`
	ID         string            `json:"id" format:"-" example:"anna.keller" doc:"The oldest user name of the user, or their id if they have none."`
	Properties subjectProperties `json:"properties"`

	userID string
}

// subjectProperties name the record of a subject.
type subjectProperties struct {
	UserID string `json:"user_id" format:"uuid"`
}

// foundResource is a resource that a search found.
type foundResource struct {
	Type string `json:"type" example:"customers"`
	ID   string `json:"id" format:"-"`
}

// foundAction is an action that a search found.
type foundAction struct {
	Name string `json:"name" example:"read"`
}

type subjectResults struct {
	Results []foundSubject `json:"results"`
	Page    pageOutput     `json:"page"`
}

type resourceResults struct {
	Results []foundResource `json:"results"`
	Page    pageOutput      `json:"page"`
}

type actionResults struct {
	Results []foundAction `json:"results"`
	Page    pageOutput    `json:"page"`
}

// searchSubjects returns the users who may do something with a record, as far as the caller may list them.
func (s *Service) searchSubjects(ctx context.Context, in subjectSearch) (subjectResults, error) {
	out := subjectResults{Results: []foundSubject{}}
	kind, known := kinds[in.Subject.Type]
	if !known {
		return out, nil
	}
	ids, err := s.decider.Subjects(ctx, access.From(ctx), kind, in.question(), in.page.after, in.page.limit+1)
	if err != nil {
		return out, err
	}
	names, err := s.directory.UserNames(ctx, ids)
	if err != nil {
		return out, err
	}
	found := make([]foundSubject, len(ids))
	for i, id := range ids {
		found[i] = foundSubject{Type: in.Subject.Type, ID: id, Properties: subjectProperties{id}, userID: id}
		if name := names[id]; name != "" {
			found[i].ID = name
		}
	}
	out.Results, out.Page = cut(in.page, found, func(f foundSubject) string { return f.userID })
	return out, nil
}

// searchResources returns the records with which a subject may do something.
func (s *Service) searchResources(ctx context.Context, in resourceSearch) (resourceResults, error) {
	out := resourceResults{Results: []foundResource{}}
	subject, known, err := s.subject(ctx, in.Subject)
	if err != nil || !known {
		return out, err
	}
	ids, err := s.decider.Resources(ctx, access.From(ctx), subject, in.Resource.Type, in.Action.Name, in.page.after, in.page.limit+1)
	if err != nil {
		return out, err
	}
	found := make([]foundResource, len(ids))
	for i, id := range ids {
		found[i] = foundResource{in.Resource.Type, id}
	}
	out.Results, out.Page = cut(in.page, found, func(f foundResource) string { return f.ID })
	return out, nil
}

// searchActions returns what a subject may do with a record.
func (s *Service) searchActions(ctx context.Context, in actionSearch) (actionResults, error) {
	out := actionResults{Results: []foundAction{}}
	subject, known, err := s.subject(ctx, in.Subject)
	if err != nil || !known {
		return out, err
	}
	names, err := s.decider.Actions(ctx, in.Resource.Type)
	if err != nil || len(names) == 0 {
		return out, err
	}
	questions := make([]access.Check, len(names))
	for i, name := range names {
		questions[i] = access.Check{RecType: in.Resource.Type, Permission: name, RecID: in.Resource.ID}
	}
	answers, err := s.decider.Ask(ctx, access.From(ctx), subject, questions)
	if err != nil {
		return out, err
	}
	found := []foundAction{}
	passed := in.page.after == ""
	for i, name := range names {
		if passed && answers[i].Allowed {
			found = append(found, foundAction{name})
		}
		passed = passed || name == in.page.after
	}
	out.Results, out.Page = cut(in.page, found, func(f foundAction) string { return f.Name })
	return out, nil
}

const (
	defaultLimit = 100
	maxLimit     = 1000
)

// page is a part of the results of a search: those after a key, which is the id or the name of a result.
type page struct {
	after string
	limit int
}

// tokenVersion begins the text of a token before it is encoded.
const tokenVersion = "1"

// parse reads which page is wanted.
func (in *pageInput) parse(v *apierr.Fields) page {
	p := page{limit: defaultLimit}
	if in.Token != "" {
		var ok bool
		if p, ok = parseToken(in.Token); !ok {
			v.Add("page.token", "invalid.page_token")
			return p
		}
	}
	if in.Limit == nil {
		return p
	}
	if *in.Limit < 0 || *in.Limit != math.Trunc(*in.Limit) {
		v.Add("page.limit", "invalid.range", apierr.Args{"Min": 0, "Max": maxLimit})
		return p
	}
	p.limit = int(min(*in.Limit, maxLimit))
	return p
}

// token returns the token of the page. It is no secret and gives no right: the search decides again what the caller may see.
func (p page) token() string {
	return base64.RawURLEncoding.EncodeToString([]byte(tokenVersion + " " + strconv.Itoa(p.limit) + " " + p.after))
}

func parseToken(token string) (page, bool) {
	const maxToken = 2000
	if len(token) > maxToken {
		return page{}, false
	}
	text, err := base64.RawURLEncoding.Strict().DecodeString(token)
	version, rest, _ := strings.Cut(string(text), " ")
	number, after, ok := strings.Cut(rest, " ")
	limit, wrong := strconv.Atoi(number)
	if err != nil || wrong != nil || !ok || version != tokenVersion || limit < 0 || limit > maxLimit {
		return page{}, false
	}
	return page{after: after, limit: limit}, true
}

// cut returns the results of a page, of which one more than its limit were read, and the page's description.
func cut[T any](p page, found []T, key func(T) string) ([]T, pageOutput) {
	if len(found) <= p.limit {
		return found, pageOutput{Count: len(found)}
	}
	found = found[:p.limit]
	next := p
	if p.limit > 0 {
		next.after = key(found[p.limit-1])
	}
	return found, pageOutput{NextToken: next.token(), Count: len(found)}
}
