package requestlog

import (
	"context"
	"net/http"
	"strconv"

	"kontor/modules/kit/list"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
	"kontor/store"
)

const (
	requestsPath = "/v1/requests"
	// Endpoint is the endpoint of the list and the stream, as grants name it.
	Endpoint = http.MethodGet + " " + requestsPath
)

// Endpoints returns the rows of the module. They are for administrators: no other role gets a grant.
func (s *Service) Endpoints() []endpoint.Endpoint {
	reading := endpoint.Event{Kind: endpoint.Reading, Action: "requests.read"}
	rows := []endpoint.Endpoint{
		{Name: "requests.list", Path: requestsPath, Summary: "List the latest requests, newest first, or follow them as an event stream.",
			Faults: []apierr.Kind{apierr.TooManyStreams, apierr.AuthUnavailable}, Reports: reading,
			Doc: endpoint.Doc{Search: requests.Search(), Headers: []string{"Last-Event-ID"}, Description: listDescription, Answers: []endpoint.Answer{
				{Status: http.StatusOK, Body: list.Page[Request]{}},
				{Status: http.StatusOK, Media: endpoint.EventStream, Says: "The stream; it stays open.", Example: streamExample, Frames: streamFrames},
			}},
			Handle: endpoint.JSONOrStream(http.StatusOK, s.list, s.open)},
		{Name: "requests.status", Path: requestsPath + "/status", Summary: "Get whether requests are kept, and how many",
			Handle: endpoint.JSON(http.StatusOK, s.status)},
		{Name: "requests.get", Path: requestsPath + "/{seq}", Summary: "Get a request, and why it was refused",
			Faults: []apierr.Kind{apierr.RequestNotFound}, Reports: reading,
			Handle: endpoint.JSON(http.StatusOK, s.get)},
	}
	for i := range rows {
		rows[i].Compression = endpoint.Uncompressed // a body may have what its members do not name as a secret
		rows[i].Method, rows[i].Tag, rows[i].Limit, rows[i].Access = http.MethodGet, "Operations", ratelimit.Private, access.SignedIn
	}
	return rows
}

const listDescription = "The list has the requests that this node has answered since its start, up to `requests.keep`. Other nodes have their own. " +
	"Requests to the paths below `/v1/requests` and files of the console are not listed. `search.status` takes ranges such as `400..499`, `search.class` takes `4xx`. " +
	"A cursor stays right while requests are added: those that were overwritten are left out.\n\n" +
	"**Stream**: with `Accept: text/event-stream`, the answer is an event stream of the requests that meet the searches. Each is a frame `request` whose " +
	"`id` is its number. `Last-Event-ID` resumes after a number; without it, the stream begins with the next request. The frame `gap` says that " +
	"requests were overwritten before they could be sent, and `close` is sent before a shutdown."

// Request is a request as lists show it.
type Request struct {
	Seq        int64      `json:"seq" example:"1767225600000042" doc:"Its number, which grows with time."`
	At         store.Time `json:"at"`
	Node       string     `json:"node" example:"bank-1" doc:"The node that answered."`
	Method     string     `json:"method" example:"GET" doc:"other stands for a method that HTTP does not define."`
	Endpoint   string     `json:"endpoint" example:"GET /v1/customers/{id}" doc:"Empty if no endpoint has the path and the method."`
	Path       string     `json:"path" example:"/v1/customers/0193a7c4-5e2f-7b1a-9c3d-8f6e2a4b7c10" doc:"Without the query. Parts that are neither ids nor numbers show the name of the parameter, or an ellipsis if no endpoint has the path. A long one is cut."`
	Query      string     `json:"query" example:"limit&sort" doc:"The names of the parameters."`
	Ignored    string     `json:"ignored" example:"status" doc:"The names of the parameters without effect, as in the header Kontor-Ignored-Parameters of the answer."`
	Status     int64      `json:"status" example:"404"`
	Class      string     `json:"class" enum:"2xx,3xx,4xx,5xx" example:"4xx"`
	Code       string     `json:"code" example:"customers_m.customer_not_found" doc:"The code of the error; empty for a success."`
	Micros     int64      `json:"microseconds" example:"840" doc:"How long the answer took."`
	CallerKind string     `json:"caller_kind" enum:"person,service,api_key,anonymous"`
	Caller     string     `json:"caller" format:"-" example:"0193a7c4-5e2f-7b1a-9c3d-8f6e2a4b7c13" doc:"Id of the user, the service account or the API key; empty for anonymous."`
	RequestID  string     `json:"request_id" format:"-" doc:"The X-Request-ID of the answer."`
}

// EachUser names the caller.
func (r Request) EachUser(add func(id string)) {
	if r.CallerKind == kindPerson || r.CallerKind == kindService {
		add(r.Caller)
	}
}

// requestOf returns an entry as lists show it.
func (s *Service) requestOf(e entry) Request {
	r := Request{Seq: e.seq, At: store.TimeOf(e.at), Node: s.options.Node, Method: e.method, Path: e.path, Query: e.query, Ignored: e.ignored, Status: int64(e.status),
		Class: strconv.Itoa(e.status/100) + "xx", Code: e.code, Micros: e.took.Microseconds(), CallerKind: e.kind, Caller: e.caller, RequestID: e.requestID}
	if e.row != nil {
		r.Endpoint = e.row.Key()
	}
	return r
}

var requests = list.NewMemory("requests",
	list.MemoryField[Request]{Name: "seq", Type: list.Number, Value: func(r *Request) any { return r.Seq }},
	list.MemoryField[Request]{Name: "at", Type: list.Time, Value: func(r *Request) any { return int64(r.At) }},
	list.MemoryField[Request]{Name: "method", Type: list.Text, Value: func(r *Request) any { return r.Method }},
	list.MemoryField[Request]{Name: "endpoint", Type: list.Text, Value: func(r *Request) any { return r.Endpoint }},
	list.MemoryField[Request]{Name: "path", Type: list.Text, Value: func(r *Request) any { return r.Path }},
	list.MemoryField[Request]{Name: "status", Type: list.Number, Value: func(r *Request) any { return r.Status }},
	list.MemoryField[Request]{Name: "class", Type: list.Text, Value: func(r *Request) any { return r.Class }},
	list.MemoryField[Request]{Name: "code", Type: list.Text, Value: func(r *Request) any { return r.Code }},
	list.MemoryField[Request]{Name: "microseconds", Type: list.Number, Value: func(r *Request) any { return r.Micros }},
	list.MemoryField[Request]{Name: "caller_kind", Type: list.Text, Value: func(r *Request) any { return r.CallerKind }},
	list.MemoryField[Request]{Name: "caller", Type: list.Text, Value: func(r *Request) any { return r.Caller }},
	list.MemoryField[Request]{Name: "request_id", Type: list.Text, Value: func(r *Request) any { return r.RequestID }},
)

func (s *Service) list(_ context.Context, in list.Input) (list.Page[Request], error) {
	entries, _, _ := s.ring.after(0, s.options.Keep)
	rows := make([]Request, len(entries))
	for i, e := range entries {
		rows[i] = s.requestOf(e)
	}
	return requests.Page(s.db, rows, in.Query)
}

// Status says what is kept.
type Status struct {
	Keep   int    `json:"keep" example:"10000" doc:"The setting requests.keep; 0: the log is off."`
	Bodies bool   `json:"bodies" doc:"Whether bodies are kept, as in a sandbox."`
	Node   string `json:"node" example:"bank-1" doc:"The node that answers."`
}

func (s *Service) status(context.Context, endpoint.None) (Status, error) {
	return Status{Keep: s.options.Keep, Bodies: s.options.Bodies, Node: s.options.Node}, nil
}

type oneInput struct {
	Seq string `path:"seq,text" pattern:"^[0-9]+$" example:"1767225600000042" doc:"The number of the request."`
}

// Detail is a request with what explains it.
type Detail struct {
	Request
	Reason       string    `json:"reason" example:"endpoint" doc:"The reason in the details of a 403; empty for none."`
	Fields       []string  `json:"fields" doc:"The names of the wrong fields, at most 10."`
	Why          []Finding `json:"why" doc:"The checks that the request passed or failed, in their order. Empty for other statuses than 400, 401, 403, 404, 405, 409 and 422."`
	RequestBody  string    `json:"request_body" doc:"In a sandbox, the JSON of the request with masked secrets; empty if it was not kept."`
	ResponseBody string    `json:"response_body" doc:"In a sandbox, the JSON of the answer with masked secrets; empty if it was not kept."`
	Curl         string    `json:"curl" doc:"A command that repeats the request with the token in KONTOR_TOKEN. It lacks values that were not kept."`
}

// get returns a request. It returns apierr.RequestNotFound for one that was overwritten.
func (s *Service) get(ctx context.Context, in oneInput) (Detail, error) {
	seq, err := strconv.ParseInt(in.Seq, 10, 64)
	if err != nil || !s.On() {
		return Detail{}, apierr.RequestNotFound
	}
	e, ok := s.ring.get(seq)
	if !ok {
		return Detail{}, apierr.RequestNotFound
	}
	d := Detail{Request: s.requestOf(e), Reason: e.reason, Fields: append([]string{}, e.fields...), Curl: s.curl(e)}
	if e.content != nil {
		d.RequestBody, d.ResponseBody = e.content.request, e.content.answer
	}
	d.Why, err = s.why(ctx, e)
	return d, err
}
