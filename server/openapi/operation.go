package openapi

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
)

func (b *builder) operation(row endpoint.Endpoint) *Operation {
	o := &Operation{
		OperationID: row.Name, Summary: row.Summary, Description: describe(row), Tags: []string{row.Tag},
		RateLimitClass: row.Limit.String(), AccessRule: row.Access.String(),
	}
	if row.Access.TakesBearer() {
		o.Assurance = row.Assurance.String()
	}
	switch {
	case row.Access.TakesBearer():
		o.Security = []map[string][]string{{bearerScheme: {}}}
	case row.Access.TakesAPIKey():
		o.Security = []map[string][]string{{apiKeyScheme: {}}}
	default:
		o.Security = []map[string][]string{}
	}
	o.Parameters = b.parameters(row)
	o.RequestBody = b.requestBody(row)
	o.Responses = b.responses(row)
	o.Errors = errorCodes(row)
	if row.Handle.Out != nil {
		o.Stacked = b.stackedPage(row.Handle.Out)
	}
	return o
}

// describe returns the description of a row. Its access rule, its rate limit and its own errors are one paragraph: generated
// clients repeat descriptions in several comments of each operation.
func describe(row endpoint.Endpoint) string {
	var parts []string
	if row.Doc.Description != "" {
		parts = append(parts, row.Doc.Description)
	}
	rules := "**Access:** "
	switch {
	case row.Access.IsPublic():
		rules += "anybody."
	case row.Access.TakesAPIKey():
		rules += "an API key in the header `X-API-Key`, without a bearer token."
	default:
		rules += describeBearer(row)
	}
	rules += describeAssurance(row.Assurance)
	switch row.Limit {
	case ratelimit.Public:
		rules += " **Rate limit:** the public one, counted by client network."
	case ratelimit.Private:
		rules += " **Rate limit:** the private one, counted by user or API key, unless a stored rule overrides it."
	case ratelimit.None, ratelimit.Undecided:
		rules += " **Rate limit:** none."
	}
	if len(row.Faults) > 0 {
		rules += " " + describeFaults(row.Faults)
	}
	parts = append(parts, rules)
	if len(row.Doc.Search) > 0 {
		parts = append(parts, describeList(row.Doc.Search))
	}
	return strings.Join(parts, "\n\n")
}

// describeAssurance returns how recently callers must have authenticated, or an empty text.
func describeAssurance(a endpoint.Assurance) string {
	var text string
	switch a.Level() {
	case endpoint.Decision.Level():
		text = "an authentication within the time of the setting auth.decision_hours, by default 12 hours"
	case endpoint.Fresh.Level():
		text = "an authentication within the last ten minutes"
	case endpoint.SecondFactor.Level():
		text = "an authentication within the last ten minutes, by a second factor if the user has one"
	default:
		return ""
	}
	if a.Condition() != "" {
		text += ", when " + a.Condition()
	}
	return " **Authentication:** " + text + "."
}

func describeFaults(kinds []apierr.Kind) string {
	var codes []string
	for _, kind := range kinds {
		codes = append(codes, fmt.Sprintf("%d `%s`", kind.Status, kind.Code))
	}
	return "**Errors:** " + strings.Join(codes, ", ") + ", and those of every operation."
}

func describeBearer(row endpoint.Endpoint) string {
	roles := []string{"Administrator"}
	for _, role := range []struct{ id, name string }{
		{access.Advisor, "Advisor"}, {access.Customer, "Customer"}, {access.Registrant, "Registrant"}, {access.Everyone, "Everyone"},
	} {
		if slices.Contains(row.Roles, role.id) {
			roles = append(roles, role.name)
		}
	}
	text := "a signed-in user with the grant on this endpoint; built-in roles: " + strings.Join(roles, ", ") + "."
	if recordType, permission, ok := row.Access.Record(); ok {
		text += fmt.Sprintf(" The permission `%s` on `%s` is checked", permission, recordType)
		if permission == access.Create {
			return text + "."
		}
		return text + " on each record."
	}
	return text
}

func describeList(fields []endpoint.SearchField) string {
	var names []string
	for _, f := range fields {
		names = append(names, "`"+f.Name+"` ("+f.Type+")")
	}
	return "**Fields** for `search.<field>`, `sort`, `stack` and `distinct`: " + strings.Join(names, ", ") + "."
}

// formMedia is the media type of forms with files.
const formMedia = "multipart/form-data"

// requestBody describes the body that the handler reads. It returns nil if the handler reads none.
func (b *builder) requestBody(row endpoint.Endpoint) *RequestBody {
	if !row.Handle.ReadsBody() {
		return nil
	}
	body := &RequestBody{Description: fmt.Sprintf("At most %d bytes.", row.BodyLimit())}
	var schema *Schema
	switch {
	case row.Doc.Body != nil:
		schema, body.Required = b.of(reflect.TypeOf(row.Doc.Body), true), true
	case row.Handle.In != nil:
		schema = b.structure(row.Handle.In, true)
		target := b.resolve(schema)
		b.require(target, row.Handle.In)
		b.applyRules(row, target)
		body.Required = len(target.Required) > 0
	default:
		b.complain("%s reads a body and has no Doc.Body", row.Name)
		return nil
	}
	for _, media := range row.Handle.Media {
		content := &MediaType{Schema: schema}
		if row.Handle.Streams && media != formMedia {
			content.Schema = &Schema{Type: "string", Format: "binary"}
			if strings.HasPrefix(media, "text/") {
				content.Example = row.Doc.Example
			}
		}
		if media == jsonMedia {
			content.Example = b.exampleAt(schema, 0)
		}
		body.Content.Set(media, content)
	}
	return body
}

// require marks members as required if the rules of the input report them as missing in an empty input. The members of nested
// objects are required if they are missing in an empty object.
func (b *builder) require(s *Schema, in reflect.Type) {
	b.requireMissing(s, in, reflect.New(in), "")
	for i := range in.NumField() {
		name, _, _ := strings.Cut(in.Field(i).Tag.Get("json"), ",")
		member, known := s.Properties.Get(name)
		if !known {
			continue
		}
		value, prefix := reflect.New(in), name+"."
		typ := emptyObject(value.Elem().Field(i))
		if member.Items != nil {
			member, prefix = member.Items, prefix+"0."
		}
		if len(member.AnyOf) > 0 {
			member = member.AnyOf[0]
		}
		if nested := b.resolve(member); typ != nil && len(nested.Properties) > 0 {
			b.requireMissing(nested, typ, value, prefix)
		}
	}
}

// emptyObject sets a field to an empty object, or to an array of one, and returns the type of the object. It returns nil for
// fields of other types.
func emptyObject(field reflect.Value) reflect.Type {
	switch typ := field.Type(); {
	case typ.Kind() == reflect.Pointer && typ.Elem().Kind() == reflect.Struct:
		field.Set(reflect.New(typ.Elem()))
		return typ.Elem()
	case typ.Kind() == reflect.Slice && typ.Elem().Kind() == reflect.Struct:
		field.Set(reflect.MakeSlice(typ, 1, 1))
		return typ.Elem()
	case strings.HasPrefix(typ.Name(), "Optional[") && field.FieldByName("Value").Kind() == reflect.Pointer:
		field.FieldByName("Given").SetBool(true)
		return emptyObject(field.FieldByName("Value"))
	}
	return nil
}

// requireMissing marks the members of an object that the rules of the input report in an input without them. prefix is the
// place of the object in the input.
func (b *builder) requireMissing(s *Schema, object reflect.Type, in reflect.Value, prefix string) {
	var problems apierr.Fields
	switch checked := in.Interface().(type) {
	case interface{ Validate(v *apierr.Fields) }:
		checked.Validate(&problems)
	case interface {
		Validate(ctx context.Context, v *apierr.Fields)
	}:
		checked.Validate(context.Background(), &problems)
	}
	for field := range problems.All {
		name, inside := strings.CutPrefix(field, prefix)
		_, known := s.Properties.Get(name)
		if inside && known && !slices.Contains(s.Required, name) && requiredTag(object, name) != "false" {
			s.Required = append(s.Required, name)
		}
	}
}

// requiredTag returns the tag "required" of a member. Some members are required only if another one is missing.
func requiredTag(in reflect.Type, member string) string {
	for i := range in.NumField() {
		name, _, _ := strings.Cut(in.Field(i).Tag.Get("json"), ",")
		if name == member {
			return in.Field(i).Tag.Get("required")
		}
	}
	return ""
}

// creates reports whether the row supports the header Idempotency-Key.
func creates(row endpoint.Endpoint) bool {
	return row.Method == http.MethodPost && row.Handle.Status == http.StatusCreated
}

// conditional reports whether the row supports the header If-Match.
func conditional(row endpoint.Endpoint) bool {
	return slices.Contains(row.Faults, apierr.PreconditionFailed)
}

// tagged reports whether answers of a type have an ETag.
func tagged(out reflect.Type) bool {
	return out != nil && out.Implements(reflect.TypeFor[endpoint.Tagged]())
}
