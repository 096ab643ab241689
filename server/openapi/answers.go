package openapi

import (
	"cmp"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"sort"
	"strconv"
	"strings"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
)

const (
	jsonMedia  = "application/json"
	tableMedia = "text/csv"
)

// responses returns the possible responses of a row, by status.
func (b *builder) responses(row endpoint.Endpoint) Map[*Response] {
	var all Map[*Response]
	answers := row.Doc.Answers
	if len(answers) == 0 {
		if row.Handle.Out == nil || row.Handle.Out == reflect.TypeFor[endpoint.Result]() {
			b.complain("the types of %s do not describe its answer: set Doc.Answers", row.Name)
		}
		answers = []endpoint.Answer{{Status: row.Handle.Status}}
	}
	for _, answer := range answers {
		b.addAnswer(&all, row, answer)
	}
	if row.Method == http.MethodGet && tagged(row.Handle.Out) {
		all.Set("304", &Response{Ref: b.refer("responses", "NotModified")})
	}
	if slices.Contains(row.Faults, apierr.RangeBeyondEnd) {
		all.Set("416", &Response{Description: "The range begins after the end of the content.", Headers: b.headerRefs([]string{"Accept-Ranges", "Content-Range"}),
			Content: Map[*MediaType]{{jsonMedia, &MediaType{Schema: schemaRef(errorSchema), Example: b.envelope(apierr.RangeBeyondEnd)}}}})
	}
	if row.Draining != "" {
		all.Set("503", b.draining(row))
	}
	if row.AuthZEN {
		all.Set("default", &Response{Description: "An error, as a message. A request that is no valid HTTP is answered with the schema Error.", Content: Map[*MediaType]{
			{jsonMedia, &MediaType{Schema: &Schema{OneOf: []*Schema{{Type: "string"}, schemaRef(errorSchema)}}, Example: b.Text("error." + apierr.NoAccess.Code)}},
		}})
	} else {
		all.Set("default", &Response{Ref: b.refer("responses", errorResponse)})
	}
	sort.SliceStable(all, func(i, j int) bool { return all[i].Name < all[j].Name })
	return all
}

// addAnswer adds a successful response. Answers of the same status become one response with several media types.
func (b *builder) addAnswer(all *Map[*Response], row endpoint.Endpoint, answer endpoint.Answer) {
	code := strconv.Itoa(answer.Status)
	if answer.Status == http.StatusNotModified {
		all.Set(code, &Response{Ref: b.refer("responses", "NotModified")})
		return
	}
	response, known := all.Get(code)
	if !known {
		response = &Response{}
		if answer.Status < http.StatusBadRequest {
			response.Headers = b.headers(row, answer)
		}
		all.Set(code, response)
	}
	if says := cmp.Or(answer.Says, statusTexts[answer.Status]); !strings.Contains(response.Description, says) {
		response.Description = strings.TrimSpace(response.Description + " " + says)
	}
	if answer.Status == http.StatusSeeOther {
		return // without content
	}
	out := answerType(row, answer)
	content := &MediaType{Schema: &Schema{}, Example: answer.Example}
	switch media := cmp.Or(answer.Media, jsonMedia); {
	case isJSON(media) && out != nil && out != reflect.TypeFor[endpoint.Result]():
		content.Schema = b.answer(out)
	case isJSON(media):
	case strings.HasPrefix(media, "text/"):
		content.Schema = &Schema{Type: "string"}
		for _, frame := range answer.Frames {
			content.Frames.Set(frame.Event, b.of(reflect.TypeOf(frame.Body), false))
		}
	default:
		content.Schema = &Schema{Type: "string", Format: "binary"}
	}
	if content.Example == nil && content.Schema.Format != "binary" {
		content.Example = b.exampleAt(content.Schema, 0)
	}
	response.Content.Set(cmp.Or(answer.Media, jsonMedia), content)
	if row.Handle.Listed() && answer.Status == http.StatusOK {
		// No media type of its own: typed clients would have to tell a text from a page at each access.
		response.Table = tableMedia
		response.Description += " With Accept: text/csv, all rows as a table (RFC 4180)."
	}
}

// answerType returns the type of an answer's body.
func answerType(row endpoint.Endpoint, answer endpoint.Answer) reflect.Type {
	if answer.Body != nil {
		return reflect.TypeOf(answer.Body)
	}
	return row.Handle.Out
}

// isJSON reports whether a media type is JSON, or a format in it (RFC 6839, section 3.1).
func isJSON(media string) bool { return media == jsonMedia || strings.HasSuffix(media, "+json") }

// headers returns the headers of a success that are more than those of every answer, which the description of the document
// names.
func (b *builder) headers(row endpoint.Endpoint, answer endpoint.Answer) Map[*Header] {
	names := slices.Clone(row.Doc.Sends)
	if tagged(answerType(row, answer)) || slices.Contains(row.Doc.Headers, "If-None-Match") {
		names = append(names, "ETag")
	}
	if row.Doc.Linked {
		names = append(names, "Link")
	}
	if answer.Status == http.StatusSeeOther {
		names = append(names, "Location")
	}
	if creates(row) {
		names = append(names, "Idempotency-Replayed")
	}
	if row.Handle.Listed() && answer.Status == http.StatusOK {
		names = append(names, "Content-Disposition", "X-Total-Rows", "X-Truncated-Rows")
	}
	return b.headerRefs(append(names, endpoint.IgnoredHeader))
}

func (b *builder) headerRefs(names []string) Map[*Header] {
	var all Map[*Header]
	for _, name := range names {
		all.Set(name, &Header{Ref: b.refer("headers", name)})
	}
	return all
}

// faultsOf returns the errors of a row by status: those that it declares, and those of every row of its kind.
func faultsOf(row endpoint.Endpoint) map[int][]apierr.Kind {
	kinds := []apierr.Kind{apierr.MalformedRequest, apierr.ServerError}
	if !row.AuthZEN {
		kinds = append(kinds, apierr.UnsupportedMediaType)
	}
	if row.Handle.In != nil || !row.Access.IsPublic() || slices.Contains(row.Doc.Headers, endpoint.DeviceHeader) {
		kinds = append(kinds, apierr.InvalidInput) // so is an API key in addition to a bearer token
	}
	if row.Handle.Out != nil {
		kinds = append(kinds, apierr.AnswerTooLarge)
	}
	if !row.OwnTime {
		kinds = append(kinds, apierr.DeadlineExceeded)
	}
	if !row.Access.IsPublic() {
		kinds = append(kinds, apierr.Unauthorized, apierr.Unavailable)
	}
	if row.Access.TakesAPIKey() {
		kinds = append(kinds, apierr.NoAccess) // for calls outside the scopes of the key
	}
	if row.Access.TakesBearer() {
		kinds = append(kinds, apierr.NoAccess, apierr.AuthUnavailable)
		switch {
		case row.Subject.Kind() == access.SubjectAccount:
			kinds = append(kinds, apierr.GrantNotHeld)
		case row.SubjectPosition() >= 0:
			kinds = append(kinds, apierr.RightsNotHeld)
		}
		if row.Assurance != endpoint.AnySession {
			kinds = append(kinds, apierr.StaleSession)
		}
		if row.Assurance != endpoint.AnySession || row.PeopleOnly {
			kinds = append(kinds, apierr.PersonRequired)
		}
		if !row.WithoutFactor {
			kinds = append(kinds, apierr.FactorRequired)
		}
	}
	if row.Limit != ratelimit.None {
		kinds = append(kinds, apierr.RateLimited, apierr.TooManyAtOnce)
	}
	if row.Handle.ReadsBody() {
		kinds = append(kinds, apierr.PayloadTooLarge)
	}
	if creates(row) {
		kinds = append(kinds, apierr.IdempotencyMismatch)
	}
	if row.Method != http.MethodGet {
		kinds = append(kinds, apierr.Unavailable, apierr.OutcomeUnknown)
	}
	if len(row.Doc.Search) > 0 { // a list
		kinds = append(kinds, apierr.QueryInvalidField, apierr.QueryInvalidFormat, apierr.QueryInvalidSortField, apierr.QueryInvalidSearchField)
	}
	byStatus := map[int][]apierr.Kind{}
	for _, kind := range append(kinds, row.Faults...) {
		if !slices.Contains(byStatus[kind.Status], kind) {
			byStatus[kind.Status] = append(byStatus[kind.Status], kind)
		}
	}
	return byStatus
}

// errorCodes returns the codes that a row may return, by status.
func errorCodes(row endpoint.Endpoint) Map[[]string] {
	faults := faultsOf(row)
	var all Map[[]string]
	for _, status := range slices.Sorted(maps.Keys(faults)) {
		var codes []string
		for _, kind := range faults[status] {
			codes = append(codes, kind.Code)
		}
		slices.Sort(codes)
		all.Set(strconv.Itoa(status), codes)
	}
	return all
}

// draining returns the response of a row that answers with a line of text while the service shuts down.
func (b *builder) draining(row endpoint.Endpoint) *Response {
	return &Response{Description: "The service is shutting down (text), or it is busy (JSON).", Content: Map[*MediaType]{
		{"text/plain", &MediaType{Schema: &Schema{Type: "string"}, Example: row.Draining}},
		{jsonMedia, &MediaType{Schema: schemaRef(errorSchema), Example: b.envelope(apierr.Unavailable)}},
	}}
}

// errorComponent returns the response of all errors. A client needs one case for it.
func (b *builder) errorComponent() *Response {
	content := &MediaType{Schema: schemaRef(errorSchema)}
	for _, kind := range []apierr.Kind{apierr.InvalidInput, apierr.Unauthorized, apierr.RateLimited} {
		content.Examples.Set(kind.Code, &Example{Summary: kind.Code, Value: b.envelope(kind)})
	}
	return &Response{Description: errorText, Content: Map[*MediaType]{{jsonMedia, content}}}
}
