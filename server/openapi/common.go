package openapi

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"sort"
	"strings"

	"kontor/server/apierr"
	"kontor/server/endpoint"
)

const (
	bearerScheme = "bearerAuth"
	apiKeyScheme = "apiKeyAuth"
	errorSchema  = "Error"

	errorResponse = "Error"
	schemaPrefix  = "#/components/schemas/"
)

// errorText describes the response of all errors.
const errorText = "An error; its `status` is that of the answer. `x-kontor-errors` of each operation lists the possible codes by status. " +
	"401 has the header `WWW-Authenticate`, 429 and 503 have `Retry-After` in seconds, 405 has `Allow`."

// version is the version of the API, not of the program.
const version = "1.0.0"

func info(baseURL string) Info {
	return Info{
		Title: "Kontor", Version: version, Summary: "The API of the banking platform",
		Contact: Contact{Name: "Kontor", URL: baseURL},
		License: License{Name: "Apache License 2.0", Identifier: "Apache-2.0"},
		Description: strings.TrimSpace(`
Kontor manages customers and their verification, personas, payers, tasks, chats, notifications and users, and reads Swiss
QR-bills.

Bodies are JSON unless stated otherwise. Timestamps are RFC 3339 in UTC with milliseconds, dates are ISO 8601, ids are
UUIDs. Unknown members of a body are ignored. In a body,
` + "`null`" + ` for a member that documents no ` + "`null`" + ` counts as a missing member, or is rejected.
So does an empty text for a member or a parameter that allows none. Booleans of a query may be ` + "`1`" + ` and ` + "`0`" + `, too. Every GET operation also answers HEAD.

**Language.** ` + "`Accept-Language`" + ` selects English, German, French or Italian; ` + "`Content-Language`" + ` names the language of the answer.

**Headers of every answer.** ` + "`X-Request-ID`" + ` is the id of the request, from the client or generated. Where a rate limit
applies, ` + "`RateLimit-Limit`" + ` is the number of requests allowed in a minute, ` + "`RateLimit-Remaining`" + ` those still allowed at once,
and ` + "`RateLimit-Reset`" + ` the seconds until the full number is allowed again. Compressed answers have ` + "`X-Padding`" + `, dashes that hide their length.
Event streams have ` + "`X-Accel-Buffering: no`" + `, for proxies.
` + "`X-Explanation`" + ` answers a request with ` + "`X-Explain`" + `, which administrators send to learn how a list is read.

**Errors** have one envelope, the schema ` + "`Error`" + `. Programs must compare the code; the message is for people. The response ` + "`default`" + `
of each operation stands for all of them, and ` + "`x-kontor-errors`" + ` lists the codes by status. In addition, any request may return
404 ` + "`common.not_found`" + `, 405 ` + "`common.method_not_allowed`" + `, 408 ` + "`common.request_timeout`" + ` and 431 ` + "`common.headers_too_large`" + `. While
the service starts, it answers 503 ` + "`common.starting`" + `. The codes ` + "`sandbox.…`" + ` are those of a sandbox for developers. While the service shuts down, it
answers 503 with the schema ` + "`Health`" + ` instead, which also has a ` + "`message`" + `.

**Lists** share one query layer: ` + "`limit`, `offset`, `sort`, `stack`, `distinct` and `search.<field>`" + `. A search takes values separated by commas. A value in quotation marks (RFC 4180) may contain commas; within it, two
quotation marks stand for one. ` + "`null`" + ` or an empty value selects the records without a value, ` + "`\"null\"`" + ` the text. An unknown field of a
search is an error. Each list documents its fields.

**Unknown query parameters** have no effect. The header ` + "`" + endpoint.IgnoredHeader + "`" + ` of the answer names them.

**Idempotency and concurrency.** A POST that creates accepts an ` + "`Idempotency-Key`" + `; within 24 hours the same key returns the first answer.
Records have an ` + "`ETag`" + `; send it as ` + "`If-Match`" + ` with a change to prevent lost updates.

**People.** Answers that name users by id have a member ` + "`people`" + `, which maps the ids to display names.`),
	}
}

// allTags are the groups of operations in the order of the API's specification.
var allTags = []Tag{
	{"Authentication", "Sign-in and sign-out, tokens, sessions and API keys."},
	{"Second factors", "Passkeys, authenticator apps and recovery codes of users."},
	{"Service accounts", "Users that are programs, and their tokens."},
	{"Events", "Changes of records, as a list and as a stream."},
	{"Search", "Records of all types, by their words."},
	{"Webhooks", "Addresses that receive the events, and what was sent to them."},
	{"Screening", "Lists of sanctioned people and organisations, and checks of names."},
	{"Users", "Users, their credentials, passwords and roles; registration and recovery."},
	{"Access control", "Roles, grants, rate-limit rules and permission checks."},
	{"AuthZEN", "The OpenID AuthZEN Authorization API 1.0, by which other programs ask for decisions."},
	{"Personal Identity", "Personas: identities of people."},
	{"User-Persona", "Links between personas and users."},
	{"Persona Links", "Relations between personas."},
	{"Customers", "Customers and the verification of their identity (KYC)."},
	{"Payers", "People and companies that pay."},
	{"Privacy", "Export and erasure of what is held about a person."},
	{"Chats", "Chats between users, messages and unread counts."},
	{"Tasks", "Tasks of customers with assignees and progress."},
	{"Imports", "Files whose rows become records."},
	{"Files", "Files of documents, messages and tasks."},
	{"Profile", "Avatar and display preferences of the signed-in user."},
	{"Notifications", "Notifications, their stream and their deliveries."},
	{"Invoices", "Swiss QR-bills."},
	{"Sandbox", "The clock of a sandbox for developers. These paths exist in this mode alone."},
	{"Operations", "Health, metrics, the audit trail, and this document."},
}

// statusTexts describes answers by their status.
var statusTexts = map[int]string{http.StatusOK: "Done.", http.StatusCreated: "Created."}

// pathNames describes path parameters.
var pathNames = map[string]string{
	"id": "Id of the record.", "user_id": "Id of the user.", "session_id": "Id of the session.",
	"credential_id": "Id of the credential.", "cred_id": "Id of the credential.", "customer_id": "Id of the customer.",
	"persona_id": "Id of the persona.", "link_id": "Id of the link.", "decision_id": "Id of the decision.", "assignee_id": "Id of the assignee.",
	"identity_id": "Id of the linked account.", "factor_id": "Id of the second factor.", "token_id": "Id of the token.", "delivery_id": "Id of the delivery.", "notification_id": "Id of the notification.", "message_id": "Id of the message.", "file": "Name of the file.", "document_id": "Id of the document.",
}

// queryNames describes query parameters outside the shared query layer.
var queryNames = map[string]string{
	"limit": "Maximum number of records.", "offset": "Number of records to skip.",
	"company": "Part of the company's name, case-insensitive.", "country": "Code of the country, three upper-case letters.",
	"active":      "Only active, or only inactive records.",
	"customer_id": "Selects the language of rendered texts by the customer; not a filter.",
	"q": "Words that occur in the record, in any order; the last one may be the beginning of a word. Case and accents are ignored, and Müller, Mueller " +
		"and Muller are the same. Telephone numbers are found in any notation, ids by their beginning.",
	"before": "Only records that are older than the one with this id.",
}

// errorEnvelope is the body of all errors.
type errorEnvelope struct {
	Status    int            `json:"status" minimum:"400" maximum:"599" doc:"The HTTP status." example:"400"`
	Message   string         `json:"message" doc:"A description of the error, in the language of the request." example:"The input is not valid."`
	Code      errorCode      `json:"code" doc:"The error, for programs." example:"common.invalid_input"`
	Class     string         `json:"class" enum:"business,temporary" doc:"temporary: the same request may succeed later."`
	Retryable bool           `json:"retryable,omitzero" doc:"true with the class temporary, else absent."`
	Details   map[string]any `json:"details,omitzero" doc:"Details, usually a sentence for each wrong field."`
}

// errorCode is the code of an error.
type errorCode string

// Values returns all codes.
func (errorCode) Values() []string {
	var codes []string
	for _, kind := range apierr.All() {
		codes = append(codes, kind.Code)
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}

// describeCodes returns a list of all errors with their statuses and English messages.
func (b *builder) describeCodes() string {
	var text strings.Builder
	text.WriteString("The errors of the API. Later versions may add codes: treat an unknown one by its status.\n")
	kinds := apierr.All()
	sort.Slice(kinds, func(i, j int) bool { return kinds[i].Code < kinds[j].Code })
	for _, kind := range kinds {
		fmt.Fprintf(&text, "\n* `%s` (%d): %s", kind.Code, kind.Status, b.Text("error."+kind.Code))
	}
	return text.String()
}

// components returns the components to which the operations refer.
func (b *builder) components() Components {
	b.types.components.Set(errorSchema, b.objectOf(errorSchema, reflect.TypeFor[errorEnvelope](), false))
	code, _ := b.types.components.Get(errorSchema + "Code")
	code.Description = b.describeCodes()
	b.of(reflect.TypeOf(b.Health), false)
	c := Components{Parameters: b.parameterComponents()}
	if b.used["responses/NotModified"] {
		c.Responses.Set("NotModified", &Response{Description: "The client's copy is up to date. The headers are those of the 200.", Headers: b.headerRefs([]string{"ETag"})})
	}
	c.Responses.Set(errorResponse, b.errorComponent())
	for _, header := range sharedHeaders {
		if b.used["headers/"+header.Name] {
			c.Headers.Set(header.Name, header.Value)
		}
	}
	c.SecuritySchemes = securitySchemes
	c.Schemas = b.types.components
	return c
}

// envelope returns an example of an error.
func (b *builder) envelope(kind apierr.Kind) Map[any] {
	example := Map[any]{{"status", kind.Status}, {"message", b.Text("error." + kind.Code)}, {"code", kind.Code}, {"class", "business"}}
	if kind.Temporary() {
		example.Set("class", "temporary")
		example.Set("retryable", true)
	}
	if kind == apierr.InvalidInput {
		example.Set("details", Map[any]{{"email", b.Text("invalid.email")}})
	}
	return example
}
