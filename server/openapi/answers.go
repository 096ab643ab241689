package openapi

import (
	"cmp"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
)

const jsonMedia = "application/json"

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
	faults := faultsOf(row)
	statuses := make([]int, 0, len(faults))
	for status := range faults {
		statuses = append(statuses, status)
	}
	slices.Sort(statuses)
	for _, status := range statuses {
		b.addFaults(&all, row, status, faults[status])
	}
	slices.SortStableFunc(all, func(x, y Member[*Response]) int { return cmp.Compare(x.Name, y.Name) })
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
		response = &Response{Headers: b.headers(row, answer.Status)}
		all.Set(code, response)
	}
	if says := cmp.Or(answer.Says, statusTexts[answer.Status]); !strings.Contains(response.Description, says) {
		response.Description = strings.TrimSpace(response.Description + " " + says)
	}
	if answer.Status == http.StatusSeeOther {
		return // without content
	}
	out := row.Handle.Out
	if answer.Body != nil {
		out = reflect.TypeOf(answer.Body)
	}
	content := &MediaType{Schema: &Schema{}, Example: answer.Example}
	switch media := cmp.Or(answer.Media, jsonMedia); {
	case media == jsonMedia && out != nil && out != reflect.TypeFor[endpoint.Result]():
		content.Schema = b.answer(out)
	case media == jsonMedia:
	case strings.HasPrefix(media, "text/"):
		content.Schema = &Schema{Type: "string"}
	default:
		content.Schema = &Schema{Type: "string", Format: "binary"}
	}
	if content.Example == nil && content.Schema.Format != "binary" {
		content.Example = b.exampleAt(content.Schema, 0)
	}
	response.Content.Set(cmp.Or(answer.Media, jsonMedia), content)
}

// headers returns the headers of every answer and those of the row.
func (b *builder) headers(row endpoint.Endpoint, status int) Map[*Header] {
	names := []string{"X-Request-ID", "Content-Language"}
	if status < 300 && (tagged(row.Handle.Out) || slices.Contains(row.Doc.Headers, "If-None-Match")) {
		names = append(names, "ETag")
	}
	if status < 300 && row.Doc.Linked {
		names = append(names, "Link")
	}
	if status == http.StatusSeeOther {
		names = append(names, "Location")
	}
	if row.Limit == ratelimit.Public || row.Limit == ratelimit.Private {
		names = append(names, "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")
	}
	if status < 300 && creates(row) {
		names = append(names, "Idempotency-Replayed")
	}
	if status == http.StatusUnauthorized {
		names = append(names, "WWW-Authenticate")
	}
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		names = append(names, "Retry-After")
	}
	return b.headerRefs(names)
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
	kinds := []apierr.Kind{apierr.MalformedRequest, apierr.UnsupportedMediaType, apierr.ServerError}
	if row.Handle.In != nil && row.Handle.In.NumField() > 0 || !row.Access.IsPublic() {
		kinds = append(kinds, apierr.InvalidInput) // an API key in addition to a bearer token is invalid input, too
	}
	if !row.Access.IsPublic() {
		kinds = append(kinds, apierr.Unauthorized, apierr.Unavailable)
	}
	if row.Access.TakesAPIKey() {
		kinds = append(kinds, apierr.NoAccess) // for calls outside the scopes of the key
	}
	if row.Access.TakesBearer() {
		kinds = append(kinds, apierr.NoAccess, apierr.AuthUnavailable)
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
		kinds = append(kinds, apierr.Unavailable)
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
	if drains(row) {
		byStatus[http.StatusServiceUnavailable] = append(byStatus[http.StatusServiceUnavailable], []apierr.Kind{}...)
	}
	return byStatus
}

// drains reports whether the row answers with 503 while the service shuts down. Liveness and metrics are still served.
func drains(row endpoint.Endpoint) bool {
	return row.Name != "operations.health" && row.Name != "operations.metrics"
}

// addFaults adds the response of an error status: the envelope, with an example for each code.
func (b *builder) addFaults(all *Map[*Response], row endpoint.Endpoint, status int, kinds []apierr.Kind) {
	code := strconv.Itoa(status)
	content := &MediaType{Schema: b.schemaRef(errorSchema)}
	for _, kind := range kinds {
		content.Examples.Set(kind.Code, &Example{Ref: b.refer("examples", kind.Code)})
	}
	response := &Response{Description: statusTexts[status], Headers: b.headers(row, status)}
	if given, ok := all.Get(code); ok { // the row declares the status itself, as readiness does
		*response = *given
	}
	if status == http.StatusServiceUnavailable && drains(row) {
		if row.Draining == "" {
			content.Schema = &Schema{AnyOf: []*Schema{b.schemaRef(errorSchema), b.schemaRef(healthSchema)}}
			content.Examples.Set("shutting_down", &Example{Ref: b.refer("examples", "shutting_down")})
		} else {
			response.Content.Set("text/plain", &MediaType{Schema: &Schema{Type: "string"}, Example: row.Draining})
		}
	}
	if len(content.Examples) > 0 {
		response.Content.Set(jsonMedia, content)
	}
	if response.Description == "" {
		b.complain("%s: status %d has no description", row.Name, status)
	}
	all.Set(code, b.share(status, response))
}

// share returns a reference to the component of an error response. Equal responses share one component. The first component of
// a status has its name, such as "NotFound". Further ones also have a number.
func (b *builder) share(status int, response *Response) *Response {
	text, err := json.Marshal(response, json.Deterministic(true))
	if err != nil {
		b.complain("response %d: %w", status, err)
	}
	for _, known := range b.failures {
		if known.Value.text == string(text) {
			return &Response{Ref: b.refer("responses", known.Name)}
		}
	}
	name := strings.ReplaceAll(http.StatusText(status), " ", "")
	b.statuses[status]++
	if n := b.statuses[status]; n > 1 {
		name += strconv.Itoa(n)
	}
	b.failures.Set(name, failure{string(text), response})
	return &Response{Ref: b.refer("responses", name)}
}
