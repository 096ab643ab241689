package openapi

import (
	"net/http"
	"reflect"
	"strings"

	"kontor/server/apierr"
)

const (
	bearerScheme = "bearerAuth"
	apiKeyScheme = "apiKeyAuth"
	errorSchema  = "Error"
	healthSchema = "Health"
)

// version is the version of the API, not of the program.
const version = "1.0.0"

func info(baseURL string) Info {
	return Info{
		Title: "Kontor", Version: version, Summary: "The API of the banking platform",
		Contact: Contact{Name: "Kontor", URL: baseURL},
		License: License{Name: "Apache License 2.0", Identifier: "Apache-2.0"},
		Description: strings.TrimSpace(`
Kontor keeps customers and their verification, personas, payers, tasks, chats, notifications and the users who work with
them, and reads Swiss QR-bills.

Bodies are JSON unless an operation says otherwise. Timestamps are RFC 3339 in UTC with milliseconds, dates are ISO 8601,
ids are UUIDs. Unknown members of a body are ignored. HEAD is answered wherever GET is.

**Language.** ` + "`Accept-Language`" + ` chooses English, German, French or Italian; ` + "`Content-Language`" + ` tells which it is.

**Errors** have one envelope: ` + "`status`, `message`, `code`, `class`" + `, for temporary ones ` + "`retryable`" + `, and
` + "`details`" + ` where there are any. Match on the code, show the message. Beside the errors that each operation lists, any address can answer
404 ` + "`common.not_found`" + `, 405 ` + "`common.method_not_allowed`" + `, 408 ` + "`common.request_timeout`" + ` and 431 ` + "`common.headers_too_large`" + `.

**Lists** share one query layer: ` + "`limit`, `offset`, `sort`, `stack`, `distinct` and `search.<field>`" + `. Each list names its fields.

**Doing it once.** A POST that creates takes an ` + "`Idempotency-Key`" + `; the same key within 24 hours gives the first answer again.
Records have an ` + "`ETag`" + `; send it as ` + "`If-Match`" + ` with a change, so that nobody's change is overwritten unseen.`),
	}
}

// allTags are the groups of operations, as the specification of the API groups them.
var allTags = []Tag{
	{"Authentication", "Signing in and out, tokens, sessions and API keys."},
	{"Users", "Users, their credentials, passwords and roles; registration and recovery."},
	{"Access control", "Roles, grants, rate-limit rules, and the question who may do what."},
	{"Personal Identity", "Personas: who somebody is."},
	{"User-Persona", "Which users a persona belongs to."},
	{"Persona Links", "How personas are related to each other."},
	{"Customers", "Customers and the verification of their identity (KYC)."},
	{"Payers", "People and companies that pay."},
	{"Chats", "Chats between users, their messages, and what is unread."},
	{"Tasks", "Tasks of customers with assignees and progress."},
	{"Profile", "Avatar and display preferences of the signed-in user."},
	{"Notifications", "Notifications, their stream and their deliveries."},
	{"Invoices", "Reading Swiss QR-bills."},
	{"Operations", "Health, metrics, the audit trail, and this document."},
}

// statusTexts describe the answers by their status.
var statusTexts = map[int]string{
	http.StatusOK:                    "Done.",
	http.StatusCreated:               "Created.",
	http.StatusBadRequest:            "The request is not valid; `details` names the wrong fields.",
	http.StatusUnauthorized:          "The bearer token, the API key or the credentials are missing or wrong.",
	http.StatusForbidden:             "The caller may not do this.",
	http.StatusNotFound:              "There is no such record.",
	http.StatusConflict:              "The state of the record forbids this.",
	http.StatusPreconditionFailed:    "The record has changed since it was read.",
	http.StatusRequestEntityTooLarge: "The body is too large.",
	http.StatusUnsupportedMediaType:  "The body has a type or an encoding that is not read here.",
	http.StatusUnprocessableEntity:   "The Idempotency-Key was used for another request.",
	http.StatusTooManyRequests:       "Too many requests; `Retry-After` tells how long to wait.",
	http.StatusInternalServerError:   "Something went wrong in the service.",
	http.StatusServiceUnavailable:    "The service is busy, cannot store data, or is shutting down.",
}

// pathNames describe the names in paths.
var pathNames = map[string]string{
	"id": "Id of the record.", "user_id": "Id of the user.", "session_id": "Id of the session.",
	"credential_id": "Id of the credential.", "cred_id": "Id of the credential.", "customer_id": "Id of the customer.",
	"persona_id": "Id of the persona.", "link_id": "Id of the link.", "assignee_id": "Id of the assignee.",
	"notification_id": "Id of the notification.", "message_id": "Id of the message.", "file": "Name of the file.",
}

// queryNames describe query parameters that do not belong to the shared query layer.
var queryNames = map[string]string{
	"limit": "How many records to give at most.", "offset": "How many records to pass over.",
	"company": "Part of the company's name, compared without regard to case.", "country": "ISO 3166-1 alpha-3 code of the country.",
	"active":      "Only active, or only inactive records.",
	"customer_id": "Chooses the language of rendered texts by the customer; it is no filter.",
	"before":      "Only what is older than the record with this id.",
}

// Error is the envelope of all errors.
type errorEnvelope struct {
	Status    int            `json:"status" minimum:"400" maximum:"599" doc:"The HTTP status." example:"400"`
	Message   string         `json:"message" doc:"What went wrong, in the language of the request." example:"The input is not valid."`
	Code      string         `json:"code" doc:"What went wrong, for programs." example:"common.invalid_input"`
	Class     string         `json:"class" enum:"business,temporary" doc:"temporary: the same request may succeed later."`
	Retryable bool           `json:"retryable,omitzero" doc:"true with the class temporary, else absent."`
	Details   map[string]any `json:"details,omitzero" doc:"What is wrong, usually a sentence for each wrong field."`
}

// components gathers what the operations refer to.
func (b *builder) components() Components {
	b.types.components.Set(errorSchema, b.object(reflect.TypeFor[errorEnvelope](), false))
	b.of(reflect.TypeOf(b.Health), false)
	c := Components{Parameters: b.parameterComponents()}
	if b.used["responses/NotModified"] {
		c.Responses.Set("NotModified", &Response{
			Description: "The record is as the client has it.", Headers: b.headerRefs([]string{"X-Request-ID", "Content-Language", "ETag"}),
		})
	}
	for _, known := range b.failures {
		c.Responses.Set(known.Name, known.Value.response)
	}
	for _, kind := range apierr.All() {
		if b.used["examples/"+kind.Code] {
			c.Examples.Set(kind.Code, &Example{Summary: kind.Code, Value: b.envelope(kind)})
		}
	}
	c.Examples.Set("shutting_down", &Example{Summary: "The service is shutting down", Value: Map[any]{
		{"overall_status", "unhealthy"}, {"message", b.Text("health.shutting_down")}, {"timestamp", exampleTime},
	}})
	for _, header := range sharedHeaders {
		if b.used["headers/"+header.Name] {
			c.Headers.Set(header.Name, header.Value)
		}
	}
	c.SecuritySchemes = securitySchemes
	c.Schemas = b.types.components
	return c
}

// envelope is the example of an error.
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
