package search

import (
	"context"
	"net/http"
	"slices"
	"sort"
	"strings"

	"kontor/modules/kit/find"
	"kontor/modules/kit/list"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
)

const path = "/v1/search"

// Endpoints returns the row of the module. A search is no security event: it shows no more than the lists of the types. Reading a
// message of a chat of others is reported by the module chats.
func (s *Service) Endpoints() []endpoint.Endpoint {
	return []endpoint.Endpoint{{
		Name: "search.find", Method: http.MethodGet, Path: path, Access: access.SignedIn, Roles: []string{access.Advisor, access.Customer},
		Tag: "Search", Limit: ratelimit.Private, Summary: "Search records of all types.",
		Doc: endpoint.Doc{Description: "Customers, personas, payers, users, tasks and chats by the words of their names and titles, e-mail addresses, telephone " +
			"numbers, ids and messages. Only records that the caller may read are found; types that the caller may not read at all are missing. The " +
			"groups and their rows are in the order of relevance, and there is no total: the lists with the parameter `q` have one.\n\n" +
			"Everything that was acknowledged before the request is found. `complete` is false while the records of an earlier version " +
			"are being indexed in the background."},
		Handle: endpoint.JSON(http.StatusOK, s.Search),
	}}
}

const (
	defaultLimit = 5
	maxLimit     = 20
	// maxLine bounds the line of a message in characters, around the first of the words that were found.
	maxLine = 160
)

// Input contains the parameters of a search.
type Input struct {
	Text  list.Words `query:"q" required:"true" example:"beat kung"`
	Types string     `query:"types" example:"customers,tasks" doc:"Types of records, separated by commas. Without it: all."`
	Limit *int       `query:"limit" minimum:"1" maximum:"20" default:"5" doc:"The largest number of rows of each type."`

	types []string
}

// typeNames are the values of the parameter types.
var typeNames = []string{access.Customers.Name, access.Personas.Name, access.Payers.Name, access.Users.Name, access.Tasks.Name, access.Chats.Name}

// Validate checks the parameters.
func (in *Input) Validate(v *apierr.Fields) {
	if strings.TrimSpace(string(in.Text)) == "" {
		v.Add("q", "invalid.required")
	}
	in.Text.Validate(v)
	for name := range strings.SplitSeq(in.Types, ",") {
		switch name = strings.TrimSpace(name); {
		case name == "":
		case slices.Contains(typeNames, name):
			in.types = append(in.types, name)
		default:
			v.Add("types", "invalid.one_of", apierr.Args{"Values": strings.Join(typeNames, ", ")})
			return
		}
	}
	if in.Limit == nil {
		in.Limit = new(int)
		*in.Limit = defaultLimit
	} else if *in.Limit < 1 || *in.Limit > maxLimit {
		v.Add("limit", "invalid.range", apierr.Args{"Min": 1, "Max": maxLimit})
	}
}

// Results are the answer of a search.
type Results struct {
	Groups   []Group `json:"groups" doc:"The types with at least one row, the most relevant first."`
	Complete bool    `json:"complete" doc:"Whether all records are indexed."`
}

// Group holds the rows of one type.
type Group struct {
	Type    string `json:"type" enum:"customers,personas,payers,users,tasks,chats"`
	Rows    []Row  `json:"rows"`
	HasMore bool   `json:"has_more" doc:"Whether the list of the type with the same q shows further rows."`
}

// Row is a record that was found.
type Row struct {
	Type       string  `json:"type" enum:"customers,personas,payers,users,tasks,chats"`
	ID         string  `json:"id"`
	Title      string  `json:"title" doc:"The name or title of the record; empty for a chat without one."`
	Subtitle   string  `json:"subtitle" doc:"What tells records of the same name apart, such as an e-mail address or a status; may be empty."`
	CustomerID *string `json:"customer_id" doc:"The customer of a task or payer."`
	MessageID  *string `json:"message_id" doc:"The message of a chat that was found."`
	Line       *string `json:"line" doc:"The part of the message around the words."`
	Path       string  `json:"path" example:"/v1/customers/0193a000-0000-7000-8000-000000000001" doc:"The address of the record in the API."`
}

// Search returns the records that match a text best, by type.
func (s *Service) Search(ctx context.Context, in Input) (Results, error) {
	results := Results{Groups: []Group{}}
	complete, err := s.catchUp(ctx)
	if err != nil {
		return results, err
	}
	results.Complete = complete
	ctx = context.WithValue(ctx, upToDate{}, true)
	scores := map[string]int{}
	for _, t := range s.types {
		if len(in.types) > 0 && !slices.Contains(in.types, t.Of.Name) || !s.mayRead(access.From(ctx), t) {
			continue
		}
		hits, err := t.Module.FindText(ctx, in.Text, *in.Limit+1)
		if err != nil {
			return results, err
		}
		if len(hits) == 0 {
			continue
		}
		scores[t.Of.Name] = hits[0].Score
		results.Groups = append(results.Groups, group(t, in, hits))
	}
	sort.SliceStable(results.Groups, func(i, j int) bool { return scores[results.Groups[i].Type] > scores[results.Groups[j].Type] })
	return results, nil
}

// mayRead reports whether the caller has the grant on the endpoint that shows records of a type, and their token its scope.
func (s *Service) mayRead(caller *access.Caller, t Type) bool {
	return caller.MayCall(t.Get) && caller.InScope(s.names[t.Get])
}

func group(t Type, in Input, hits []find.Hit) Group {
	g := Group{Type: t.Of.Name, HasMore: len(hits) > *in.Limit, Rows: []Row{}}
	for _, hit := range hits[:min(len(hits), *in.Limit)] {
		row := Row{Type: t.Of.Name, ID: hit.ID, Title: hit.Title, Subtitle: hit.Subtitle, Path: t.path(hit)}
		if hit.Parent != "" {
			row.CustomerID = &hit.Parent
		}
		if hit.Message != "" {
			line := excerpt(hit.Line, string(in.Text))
			row.MessageID, row.Line = &hit.Message, &line
		}
		g.Rows = append(g.Rows, row)
	}
	return g
}

// path returns the address of a record in the API.
func (t Type) path(hit find.Hit) string {
	_, pattern, _ := strings.Cut(t.Get, " ")
	parts := strings.Split(pattern, "/")
	for i, part := range parts {
		switch {
		case part == "{customer_id}":
			parts[i] = hit.Parent
		case strings.HasPrefix(part, "{"):
			parts[i] = hit.ID
		}
	}
	return strings.Join(parts, "/")
}
