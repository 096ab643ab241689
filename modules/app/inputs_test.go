package app_test

import (
	"maps"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"kontor/server/endpoint"
	"kontor/server/servertest"
)

// specified are the rows whose specification handles wrong members in another way: a reason instead of the members, and no
// rejection.
var specified = map[string]bool{"invoices.read_qr_code": true, "notifications.trigger": true}

// bodyOf returns the schema of a row's JSON body, nil for a row without one.
func bodyOf(document *openapi3.T, e endpoint.Endpoint) *openapi3.Schema {
	if specified[e.Name] {
		return nil
	}
	body := document.Paths.Value(e.Path).GetOperation(e.Method).RequestBody
	if body == nil || body.Value.Content.Get("application/json") == nil || e.Handle.In == nil {
		return nil
	}
	return body.Value.Content.Get("application/json").Schema.Value
}

func loadDocument(t *testing.T, s *servertest.Server) *openapi3.T {
	t.Helper()
	built, err := s.Document()
	if err != nil {
		t.Fatal(err)
	}
	text, err := built.JSON()
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// send makes a request of a caller who may make it. The user in the path is the caller.
func send(s *servertest.Server, e endpoint.Endpoint, body any) servertest.Response {
	client, path := s.Admin(), e.Path
	switch {
	case e.Access.TakesAPIKey():
		client = s.Keyed()
	case e.Access.IsPublic():
		client = s.Anonymous()
	default:
		path = strings.Replace(path, "/v1/users/{id}", "/v1/users/"+client.UserID, 1)
	}
	return client.Do(e.Method, withUnknownIDs(path), body)
}

// namedField finds the members that a message names: "subject.type: This field is required."
var namedField = regexp.MustCompile(`[ "]([a-z_]+)(?:\.[a-z_]+)*: `)

func wrongMembers(t *testing.T, answer servertest.Response) map[string]bool {
	t.Helper()
	wrong := map[string]bool{}
	if answer.Status != http.StatusBadRequest {
		return wrong
	}
	if strings.HasPrefix(answer.Body, `"`) { // an error of the AuthZEN interface is a message with the wrong members
		for _, field := range namedField.FindAllStringSubmatch(answer.Body, -1) {
			wrong[field[1]] = true
		}
		return wrong
	}
	details, _ := answer.JSON(t)["details"].(map[string]any)
	for field := range details {
		member, _, _ := strings.Cut(field, ".")
		wrong[member] = true
	}
	return wrong
}

// conditional reports whether a member is required only if another one is missing.
func conditional(in reflect.Type, member string) bool {
	for i := range in.NumField() {
		if name, _, _ := strings.Cut(in.Field(i).Tag.Get("json"), ","); name == member {
			return in.Field(i).Tag.Get("required") == "false"
		}
	}
	return false
}

func TestInputs_RequireWhatAnEmptyObjectLacks(t *testing.T) {
	s := servertest.Start(t)
	document := loadDocument(t, s)
	for _, e := range s.Table() {
		schema := bodyOf(document, e)
		if schema == nil {
			continue
		}
		missing := wrongMembers(t, send(s, e, `{}`))
		for _, member := range schema.Required {
			if !missing[member] {
				t.Errorf("%s requires %s, and accepts an object without it", e.Key(), member)
			}
		}
		for member := range missing {
			if !slices.Contains(schema.Required, member) && !conditional(e.Handle.In, member) {
				t.Errorf("%s rejects an object without %s, and does not require it", e.Key(), member)
			}
		}
	}
}

func TestInputs_ReportAllWrongTypesAtOnce(t *testing.T) {
	s := servertest.Start(t)
	document := loadDocument(t, s)
	for _, e := range s.Table() {
		schema := bodyOf(document, e)
		if schema == nil {
			continue
		}
		body := map[string]any{}
		for member, property := range schema.Properties {
			if wrong := wrongValue(property.Value); wrong != nil {
				body[member] = wrong
			}
		}
		answer := send(s, e, body)
		for _, member := range slices.Sorted(maps.Keys(body)) {
			if !wrongMembers(t, answer)[member] {
				t.Errorf("%s with %v does not report %s: %d %s", e.Key(), body, member, answer.Status, answer.Body)
			}
		}
	}
}

// wrongValue returns a value of another type than a schema allows, nil for a schema that allows all.
func wrongValue(s *openapi3.Schema) any {
	if len(s.AnyOf) > 0 {
		s = s.AnyOf[0].Value
	}
	switch {
	case s.Type == nil:
		return nil
	case s.Type.Includes("string"):
		return 7
	default:
		return "wrong"
	}
}

// A wrong member does not hide the other wrong ones, neither of a new record nor of a change, also within objects and arrays.
func TestInputs_ReportWrongTypesAndValuesTogether(t *testing.T) {
	s := servertest.Start(t)
	admin := s.Admin()
	customer := admin.Create("/v1/customers", `{"first_name":"Anna","last_name":"Muster","email":"anna@example.ch"}`)
	payer := admin.Create("/v1/payers", `{"customer_id":"`+customer+`","name":"Anna"}`)
	task := admin.Create("/v1/customers/"+customer+"/tasks", `{"title":"Sign","category":"sign"}`)
	for _, c := range []struct{ method, path, body, want string }{
		{"PUT", "/v1/customers/" + customer, `{"last_name":7,"email":"nobody","phone":"12","address":{"street":1,"city":2,"country":"XX"}}`,
			"address.city address.country address.street email last_name phone"},
		{"POST", "/v1/customers", `{"first_name":7,"email":"nobody"}`, "email first_name last_name"},
		{"PUT", "/v1/payers/" + payer, `{"email":7,"country":"XX","name":"","company":""}`, "country email name"},
		{"PUT", "/v1/customers/" + customer + "/tasks/" + task, `{"title":7,"category":"none","weight":-1,"metadata":{"actions":7}}`,
			"category metadata.actions title weight"},
		{"POST", "/v1/customers/" + customer + "/tasks", `{"title":"","category":7,"assignees":[{"user_id":7,"weight":"a"},{"user_id":"x"},8]}`,
			"assignees.0.user_id assignees.0.weight assignees.1.user_id assignees.2 assignees.2.user_id category title"},
		{"PUT", "/v1/customers/" + customer + "/kyc", `{"verified_at":7,"documents":[{"type":7,"number":8},{"type":"passport","number":"","expiry_date":"2001-01-01"}]}`,
			"documents.0.number documents.0.type documents.1.number verified_at"},
		{"POST", "/v1/users/initiate-registration", `{"credential_type":7,"password":"short","terms_accepted":"yes","display_name":8}`,
			"credential_type credential_value display_name password privacy_policy_accepted terms_accepted"},
	} {
		answer := admin.Do(c.method, c.path, c.body)
		if c.path == "/v1/users/initiate-registration" {
			answer = s.Keyed().Do(c.method, c.path, c.body)
		}
		details, _ := answer.Expect(t, http.StatusBadRequest).JSON(t)["details"].(map[string]any)
		if got := strings.Join(slices.Sorted(maps.Keys(details)), " "); got != c.want {
			t.Errorf("%s %s:\ngot  %s\nwant %s", c.method, c.path, got, c.want)
		}
	}
}

// An operation without a body does not read one, so that no body is too large for it.
func TestInputs_OperationsWithoutABodyAcceptAnySize(t *testing.T) {
	s := servertest.Start(t)
	large := strings.Repeat("x", endpoint.DefaultMaxBody+1)
	for _, e := range s.Table() {
		if e.Handle.ReadsBody() || e.Draining != "" || e.Name == "auth.logout" {
			continue // a stream stays open, and a logout ends the session of the other requests
		}
		if answer := send(s, e, large); answer.Status == http.StatusRequestEntityTooLarge {
			t.Errorf("%s: got 413", e.Key())
		}
	}
}
