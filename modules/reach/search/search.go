// Package search finds records of all types by their words, with the rights of the caller.
//
// The modules say which words find their records (kit/find), and read what was found. This module keeps the documents of the index
// current, and joins the answers. The audit trail is the outbox: every change of a record has an entry, and a follower
// reads the entries behind the commits. So a change itself pays nothing for the search. A search first lets the follower catch
// up, and so sees everything that was committed before it came. Deleted and erased records leave the index with their own
// transaction (store.TextFollower).
//
// The index is derived. Records of a database without it are read in the background, which a later start continues.
//
// The module owns no table: the documents belong to store/fulltext. It reads the view audit_trail, which the store publishes.
package search

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"sort"
	"strings"
	"time"
	"unicode"

	"kontor/modules/kit/find"
	"kontor/modules/kit/list"
	"kontor/modules/kit/personal"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
	"kontor/store"
)

// Type is a type of records that a search finds.
type Type struct {
	Of     access.RecordType // callers need the grant on the endpoint that shows a record
	Module find.Module
}

// Service answers searches. Create one with [New].
type Service struct {
	personal.Nothing
	// Patience is how long a search waits for the documents to catch up: longer only while records are read for the first time, or while
	// more is written than the index takes.
	Patience time.Duration

	db       *store.DB
	log      *slog.Logger
	types    []Type
	sources  []find.Source
	names    map[string]string // of endpoints, by key
	catching chan struct{}     // holds a value while the documents catch up
	seen     int64             // entries up to this one need no document; read and written while catching
	lastEnd  int64             // the end of the trail at the last run of Follow
}

// New returns the module for records of some types, in the order of the answers with the same relevance. It panics for a type that is not
// declared in typeNames: the API document would lack it.
func New(db *store.DB, log *slog.Logger, types []Type) *Service {
	s := &Service{Patience: defaultPatience, db: db, log: log, types: types, names: map[string]string{}, catching: make(chan struct{}, 1)}
	for _, t := range types {
		if !slices.Contains(typeNames, t.Of.Name) {
			panic("search: typeNames lacks " + t.Of.Name)
		}
		s.sources = append(s.sources, t.Module.TextSources()...)
	}
	db.SetTextFollower(store.TextFollower{Current: s.current, Erases: func(action string) bool { return action == personal.Action }})
	return s
}

// SetTable registers the endpoints. Call it before the first request.
func (s *Service) SetTable(table []endpoint.Endpoint) {
	for _, e := range table {
		s.names[e.Key()] = e.Name
	}
}

const (
	defaultPatience = 2 * time.Second
	// retryAfter is when a list that could not wait should be read again.
	retryAfter = 2 * time.Second
)

// upToDate is the key under which a context says that the documents need not catch up again.
type upToDate struct{}

// current waits until the documents contain everything that was committed before the call. It returns apierr.Unavailable if that takes
// too long: a list that lacked records would be wrong.
func (s *Service) current(ctx context.Context) error {
	if ctx.Value(upToDate{}) != nil {
		return nil
	}
	complete, err := s.catchUp(ctx)
	if err == nil && !complete {
		return apierr.Unavailable.RetryAfter(retryAfter)
	}
	return err
}

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

// Kind is the name of a type of records that a search finds.
type Kind string

// Values returns all names.
func (Kind) Values() []string { return typeNames }

// typeNames are the types of [New], and the values of the parameter types.
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
	Type    Kind  `json:"type"`
	Rows    []Row `json:"rows"`
	HasMore bool  `json:"has_more" doc:"Whether the list of the type with the same q shows further rows."`
}

// Row is a record that was found.
type Row struct {
	Type       Kind    `json:"type"`
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
	scores := map[Kind]int{}
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
		scores[Kind(t.Of.Name)] = hits[0].Score
		results.Groups = append(results.Groups, group(t, in, hits))
	}
	sort.SliceStable(results.Groups, func(i, j int) bool { return scores[results.Groups[i].Type] > scores[results.Groups[j].Type] })
	return results, nil
}

// mayRead reports whether the caller has the grant on the endpoint that shows records of a type, and their token its scope.
func (s *Service) mayRead(caller *access.Caller, t Type) bool {
	return caller.MayCall(t.Of.Shown) && caller.InScope(s.names[t.Of.Shown])
}

func group(t Type, in Input, hits []find.Hit) Group {
	g := Group{Type: Kind(t.Of.Name), HasMore: len(hits) > *in.Limit, Rows: []Row{}}
	for _, hit := range hits[:min(len(hits), *in.Limit)] {
		row := Row{Type: Kind(t.Of.Name), ID: hit.ID, Title: hit.Title, Subtitle: hit.Subtitle, Path: t.path(hit)}
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
	_, pattern, _ := strings.Cut(t.Of.Shown, " ")
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

// excerpt returns the part of a message around the first of the searched words, in one line.
func excerpt(message, text string) string {
	fields := strings.FieldsFunc(message, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
	first := 0
	if readings := types.SearchWords(text); len(readings) > 0 {
		first = max(0, slices.IndexFunc(fields, func(field string) bool { return begins(types.Words(field), readings) }))
	}
	const before = 5 // words of context
	from := max(0, first-before)
	line := []rune(strings.Join(fields[from:], " "))
	prefix := ""
	if from > 0 {
		prefix = "… "
	}
	if len(line) > maxLine {
		return prefix + strings.TrimSpace(string(line[:maxLine])) + " …"
	}
	return prefix + string(line)
}

// begins reports whether one of the words begins with a searched one.
func begins(words []string, readings [][]string) bool {
	for _, reading := range readings {
		for _, searched := range reading {
			if slices.ContainsFunc(words, func(word string) bool { return strings.HasPrefix(word, searched) }) {
				return true
			}
		}
	}
	return false
}

// PersonalData lists the tables of the full-text index.
func (s *Service) PersonalData() []personal.Table {
	return []personal.Table{
		{Name: "search_documents", Why: "It holds words of records, which leave it in the transaction that erases or deletes a record."},
		{Name: "search_progress", Why: "It holds numbers of audit entries and ids."},
	}
}
