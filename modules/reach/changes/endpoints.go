package changes

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sort"
	"strings"

	"kontor/modules/kit/change"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
	"kontor/store"
)

const eventsPath = "/v1/events"

// Endpoint is the endpoint of the feed, as grants name it: readers of events need the grant on it, and so do owners of webhooks.
const Endpoint = http.MethodGet + " " + eventsPath

// Endpoints returns the rows of the module.
func (s *Service) Endpoints() []endpoint.Endpoint {
	return endpoint.Group("Events", ratelimit.Private, []endpoint.Endpoint{
		{Name: "events.list", Method: http.MethodGet, Path: eventsPath, Access: access.SignedIn, Roles: []string{access.Advisor},
			Summary: "List changes of records, or follow them as an event stream.",
			Faults:  []apierr.Kind{apierr.CursorExpired, apierr.TooManyStreams, apierr.AuthUnavailable},
			Doc: endpoint.Doc{Description: feedDescription(), Headers: []string{"Last-Event-ID"}, Answers: []endpoint.Answer{
				{Status: http.StatusOK, Body: Page{}},
				{Status: http.StatusOK, Media: endpoint.EventStream, Says: "The stream; it stays open.", Example: streamExample, Frames: streamFrames},
			}},
			Handle: endpoint.JSONOrStream(http.StatusOK, s.list, s.open)},
		{Name: "events.types", Method: http.MethodGet, Path: eventsPath + "/types", Access: access.SignedIn, Roles: []string{access.Advisor},
			Summary: "List the types of events.", Handle: endpoint.JSON(http.StatusOK, s.types)},
	})
}

const (
	defaultLimit = 100
	maxLimit     = 1000
	// maxRecords is the largest page with records, each of which is read by itself.
	maxRecords = 100
	// maxTypes is the number of types or patterns of one request.
	maxTypes = 100
)

// The special values of the parameter after.
const latest = "latest"

type listInput struct {
	After   string `query:"after" example:"00000000-002a-8001-a3f1-0c5d2b7e9f10" doc:"The id of an event, or a cursor in next: the events after it. A time (RFC 3339): the events since. latest: none yet, to begin with the next one. Without it: from the first event."`
	Types   string `query:"types" example:"customers.*,payers.created" doc:"Types of events, or patterns such as customers.*, separated by commas. Without it: all."`
	Limit   *int64 `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"The largest number of events; at most 100 with include=record."`
	Include string `query:"include" enum:"record" doc:"record: with each record as it is now, as its own endpoint answers it."`

	types []string
	since *store.Time
	at    change.Position
	last  bool
}

// Validate checks all parameters.
func (in *listInput) Validate(v *apierr.Fields) {
	switch {
	case in.After == "", in.After == latest:
		in.last = in.After == latest
	default:
		in.parseAfter(v)
	}
	in.types = splitTypes(in.Types)
	if len(in.types) > maxTypes {
		v.Add("types", "invalid.max_items", apierr.Args{"Max": maxTypes})
		in.types = nil
	}
	for _, pattern := range in.types {
		if !ValidPattern(pattern) {
			v.Add("types", "invalid.event_type", apierr.Args{"Type": pattern})
		}
	}
	if in.Include != "" && in.Include != "record" {
		v.Add("include", "invalid.one_of", apierr.Args{"Values": "record"})
	}
	most := int64(maxLimit)
	if in.Include != "" {
		most = maxRecords
	}
	if in.Limit == nil {
		in.Limit = new(int64)
		*in.Limit = defaultLimit
	} else if *in.Limit < 1 || *in.Limit > most {
		v.Add("limit", "invalid.range", apierr.Args{"Min": 1, "Max": most})
	}
}

func (in *listInput) parseAfter(v *apierr.Fields) {
	if p, ok := change.ParsePosition(strings.ToLower(in.After)); ok {
		in.at = p
		return
	}
	if t, err := store.ParseTime(in.After); err == nil {
		in.since = &t
		return
	}
	v.Add("after", "invalid.event_cursor")
}

// splitTypes returns the values of a list, each once.
func splitTypes(list string) []string {
	var types []string
	for part := range strings.SplitSeq(list, ",") {
		if part = strings.TrimSpace(part); part != "" && !slices.Contains(types, part) {
			types = append(types, part)
		}
	}
	return types
}

// Page is a page of events.
type Page struct {
	Data    []change.Event `json:"data"`
	Next    string         `json:"next" format:"uuid" example:"00000000-002a-8001-a3f1-0c5d2b7e9f10" doc:"The cursor to continue with, as after, also if data is empty."`
	HasMore bool           `json:"has_more" doc:"There are further changes after next. Some or all of them may be of records that the caller may not read."`
}

func (s *Service) list(ctx context.Context, in listInput) (Page, error) {
	start, err := s.start(ctx, in)
	if err != nil {
		return Page{}, err
	}
	if in.Include != "" {
		if err := endpoint.TakeTurn(ctx); err != nil {
			return Page{}, err
		}
	}
	b, err := s.After(ctx, Query{After: start, Types: in.types, Limit: int(*in.Limit), Record: in.Include != ""})
	return Page{Data: b.Events, Next: b.Last.ID(), HasMore: b.More}, err
}

// start returns the position after which a request reads.
func (s *Service) start(ctx context.Context, in listInput) (change.Position, error) {
	switch {
	case in.last:
		return s.Latest(ctx)
	case in.since != nil:
		return s.Before(ctx, *in.since)
	case in.After == "":
		return s.Earliest(ctx)
	}
	return in.at, nil
}

// TypeInfo describes a type of events.
type TypeInfo struct {
	Type    string `json:"type" example:"customers.updated"`
	RecType string `json:"rec_type" example:"customers"`
	Show    string `json:"endpoint" example:"GET /v1/customers/{id}" doc:"The endpoint that shows the record. Readers of the events need the grant on it."`
}

// TypeList lists the types of events.
type TypeList struct {
	Data []TypeInfo `json:"data"`
}

func (s *Service) types(context.Context, endpoint.None) (TypeList, error) {
	list := TypeList{Data: []TypeInfo{}}
	for _, from := range sources {
		for _, verb := range from.verbs() {
			list.Data = append(list.Data, TypeInfo{from.Of.Name + "." + verb, from.Of.Name, from.Get})
		}
	}
	sort.Slice(list.Data, func(i, j int) bool { return list.Data[i].Type < list.Data[j].Type })
	return list, nil
}

func feedDescription() string {
	return fmt.Sprintf("Each change of a record is an event with its id and none of its data. Only events of records that the caller may read at "+
		"this moment are listed: the caller needs the grant on the endpoint that shows the record, the right to read the record, and with a token "+
		"of a service account the scope of that endpoint.\n\n"+
		"**Order**: events are in the order in which the changes were committed, so also for each record. `next` is a cursor of any age: continue "+
		"with `after=<next>` until `has_more` is false, then ask again later, or follow the stream. A cursor from before a restore of the database, or "+
		"older than `events.retention_days`, gets 410 `%s`: load the records again, and begin with `after=latest`.\n\n"+
		"**Stream**: with `Accept: %s`, the answer is an event stream. Each event is a frame `change` whose `id` is that of the event. "+
		"`Last-Event-ID` resumes, and takes precedence over `after`; without both, the stream begins with the next event. The frame `close` is sent before a shutdown.\n\n"+
		"The types are %s.", apierr.CursorExpired.Code, endpoint.EventStream, "`"+strings.Join(Types(), "`, `")+"`")
}
