package openapi

// Document is the OpenAPI document. The types of this file are those of the OpenAPI Specification 3.1, section 4.8, that
// Kontor uses.
type Document struct {
	OpenAPI    string         `json:"openapi"`
	Info       Info           `json:"info"`
	Servers    []Server       `json:"servers"`
	Tags       []Tag          `json:"tags"`
	Paths      Map[*PathItem] `json:"paths"`
	Components Components     `json:"components"`
}

// Info describes the API.
type Info struct {
	Title       string  `json:"title"`
	Version     string  `json:"version"`
	Summary     string  `json:"summary"`
	Description string  `json:"description"`
	Contact     Contact `json:"contact"`
	License     License `json:"license"`
}

// Contact is the contact of the API's owner.
type Contact struct {
	Name string `json:"name"`
	URL  string `json:"url,omitzero"`
}

// License is the licence of the API.
type License struct {
	Name       string `json:"name"`
	Identifier string `json:"identifier"` // SPDX
}

// Server is an address of the API.
type Server struct {
	URL         string `json:"url"`
	Description string `json:"description"`
}

// Tag is a group of operations.
type Tag struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

// PathItem holds the operations of a path.
type PathItem struct {
	Get    *Operation `json:"get,omitzero"`
	Post   *Operation `json:"post,omitzero"`
	Put    *Operation `json:"put,omitzero"`
	Patch  *Operation `json:"patch,omitzero"`
	Delete *Operation `json:"delete,omitzero"`
}

// Operation is a row of the table.
type Operation struct {
	OperationID    string                `json:"operationId"`
	Summary        string                `json:"summary"`
	Description    string                `json:"description"`
	Tags           []string              `json:"tags"`
	Parameters     []*Parameter          `json:"parameters,omitzero"`
	RequestBody    *RequestBody          `json:"requestBody,omitzero"`
	Responses      Map[*Response]        `json:"responses"`
	Security       []map[string][]string `json:"security"`
	RateLimitClass string                `json:"x-rate-limit-class"`
	AccessRule     string                `json:"x-access-rule"`
	Assurance      string                `json:"x-kontor-assurance,omitzero"`
	Errors         Map[[]string]         `json:"x-kontor-errors,omitzero"`  // codes by status
	Stacked        *Schema               `json:"x-kontor-stacked,omitzero"` // the answer of a list with the parameter stack
}

// Parameter is a parameter of a path, a query or a header.
type Parameter struct {
	Ref         string  `json:"$ref,omitzero"`
	Name        string  `json:"name,omitzero"`
	In          string  `json:"in,omitzero"`
	Description string  `json:"description,omitzero"`
	Required    bool    `json:"required,omitzero"`
	Style       string  `json:"style,omitzero"`
	Explode     *bool   `json:"explode,omitzero"`
	Schema      *Schema `json:"schema,omitzero"`
	Example     any     `json:"example,omitzero"`
}

// RequestBody is the body of a request.
type RequestBody struct {
	Description string          `json:"description,omitzero"`
	Required    bool            `json:"required,omitzero"`
	Content     Map[*MediaType] `json:"content"`
}

// MediaType is a body in one media type.
type MediaType struct {
	Schema   *Schema       `json:"schema"`
	Example  any           `json:"example,omitzero"`
	Examples Map[*Example] `json:"examples,omitzero"`
	Frames   Map[*Schema]  `json:"x-kontor-frames,omitzero"` // of an event stream: the data of each event
}

// Example is a named example.
type Example struct {
	Summary string `json:"summary,omitzero"`
	Value   any    `json:"value,omitzero"`
}

// Response is an answer.
type Response struct {
	Ref         string          `json:"$ref,omitzero"`
	Description string          `json:"description,omitzero"`
	Headers     Map[*Header]    `json:"headers,omitzero"`
	Content     Map[*MediaType] `json:"content,omitzero"`
	Table       string          `json:"x-kontor-table,omitzero"` // of a list: the media type of the table that it also is
}

// Header is a header of an answer.
type Header struct {
	Ref         string  `json:"$ref,omitzero"`
	Description string  `json:"description,omitzero"`
	Schema      *Schema `json:"schema,omitzero"`
	Example     any     `json:"example,omitzero"`
}

// Components are the parts that several operations refer to.
type Components struct {
	Schemas         Map[*Schema]         `json:"schemas"`
	Responses       Map[*Response]       `json:"responses"`
	Parameters      Map[*Parameter]      `json:"parameters"`
	Headers         Map[*Header]         `json:"headers"`
	SecuritySchemes Map[*SecurityScheme] `json:"securitySchemes"`
}

// SecurityScheme is a way to authenticate.
type SecurityScheme struct {
	Type         string `json:"type"`
	Description  string `json:"description"`
	Scheme       string `json:"scheme,omitzero"`
	BearerFormat string `json:"bearerFormat,omitzero"`
	Name         string `json:"name,omitzero"`
	In           string `json:"in,omitzero"`
}

// Schema is a JSON Schema in the dialect of OpenAPI 3.1. Type is a name or, with null, a list of two names.
type Schema struct {
	Ref                  string       `json:"$ref,omitzero"`
	Type                 any          `json:"type,omitzero"`
	Format               string       `json:"format,omitzero"`
	Description          string       `json:"description,omitzero"`
	Enum                 []any        `json:"enum,omitzero"`
	Pattern              string       `json:"pattern,omitzero"`
	MinLength            *int64       `json:"minLength,omitzero"`
	MaxLength            *int64       `json:"maxLength,omitzero"`
	Minimum              *int64       `json:"minimum,omitzero"`
	Maximum              *int64       `json:"maximum,omitzero"`
	MinItems             *int64       `json:"minItems,omitzero"`
	MaxProperties        *int64       `json:"maxProperties,omitzero"`
	MaxItems             *int64       `json:"maxItems,omitzero"`
	Default              any          `json:"default,omitzero"`
	Items                *Schema      `json:"items,omitzero"`
	Properties           Map[*Schema] `json:"properties,omitzero"`
	Required             []string     `json:"required,omitzero"`
	AdditionalProperties any          `json:"additionalProperties,omitzero"` // true or a *Schema
	PropertyNames        *Schema      `json:"propertyNames,omitzero"`
	OneOf                []*Schema    `json:"oneOf,omitzero"`
	AnyOf                []*Schema    `json:"anyOf,omitzero"`
	Examples             []any        `json:"examples,omitzero"`

	unusual bool // left out of examples
}
