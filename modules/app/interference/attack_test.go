package interference_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"pgregory.net/rapid"

	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/server/servertest"
	"kontor/store/testenv"
)

// pool are the values of the others, which the attacker can use: by the name of a member, and for all other texts.
var pool = map[string][]string{
	"email":         {emailOf("reviewer"), emailOf("second"), emailOf(admin), emailOf("victim"), emailOf("bystander"), emailOf("leaver")},
	"phone":         {"+41446681800", "+41791234567"},
	"first_name":    {"Anna", "Nora", "Viktor", "Hans"},
	"last_name":     {"Muster", "Listowa", "Beispielow", "Neu"},
	"date_of_birth": {"1971-03-04", "1970-01-01"},
	"external_id":   {"BANK-1001", "BANK-1002"},
	"nationality":   {"CHE"},
	"country":       {"CHE", "CH"},
	"ids": {
		"<victim.customer>", "<bystander.customer>", "<victim.user>", "<reviewer.user>", "<leaver.user>", "<victim.persona>", "<victim.payer>", "<victim.task>", "<victim.chat>",
		"<victim.file>", "<victim.document>", "<bystander.hit>", "<attacker.hit>", "<decision>", "<walkin>", "<import>",
	},
	"": {"Anna Muster", "BANK-1001", "user3@example.ch", "Muster AG", "Sign the contract", "<victim.customer>"},
}

// mine are the ids of the attacker's records, by the prefixes of paths.
var mine = []struct{ prefix, id string }{
	{"/v1/customers/{id}", "<attacker.customer>"}, {"/v1/customers/{customer_id}", "<attacker.customer>"}, {"/v1/users/{id}", "<attacker.user>"},
	{"/v1/personas/{persona_id}", "<attacker.persona>"}, {"/v1/payers/{id}", "<attacker.payer>"}, {"/v1/chats/{id}", "<attacker.chat>"},
}

// suicidal are the endpoints that end the attacker's session: the rest of a history would be 401.
var suicidal = []string{"auth.logout", "auth.end_session", "users.password", "users.credentials.delete"}

// surface is what the attacker may call, with the schemas of the bodies.
type surface struct {
	rows   []endpoint.Endpoint
	writes []endpoint.Endpoint // those with a JSON body
	bodies map[string]*openapi3.Schema
}

// surfaceOf returns the endpoints that the role Customer may call, by the table of a server. Anybody may call public endpoints, without being a
// customer: other tests attack them.
func surfaceOf(t *testing.T, s *servertest.Server) surface {
	t.Helper()
	built, err := s.Document()
	if err != nil {
		t.Fatal(err)
	}
	text, err := built.JSON()
	if err != nil {
		t.Fatal(err)
	}
	document, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		t.Fatal(err)
	}
	f := surface{bodies: map[string]*openapi3.Schema{}}
	for _, e := range s.Table() {
		if !e.Access.TakesBearer() || !slices.Contains(e.Roles, access.Customer) && !slices.Contains(e.Roles, access.Everyone) ||
			slices.Contains(suicidal, e.Name) {
			continue
		}
		f.rows = append(f.rows, e)
		body := document.Paths.Value(e.Path).GetOperation(e.Method).RequestBody
		if body != nil && body.Value.Content.Get("application/json") != nil {
			f.writes = append(f.writes, e)
			f.bodies[e.Key()] = body.Value.Content.Get("application/json").Schema.Value
		}
	}
	return f
}

// attack draws a request of the attacker.
func (f surface) attack() *rapid.Generator[step] {
	return rapid.Custom(func(t *rapid.T) step {
		switch rapid.SampledFrom([]string{"claim", "claim", "claim", "write", "write", "call", "call", "flood", "hold"}).Draw(t, "kind") {
		case "claim":
			return claims(t)
		case "write":
			return f.request(t, rapid.SampledFrom(f.writes).Draw(t, "endpoint"))
		case "flood":
			return flood(rapid.IntRange(2, 6).Draw(t, "records"), text(t, "email"))
		case "hold":
			return hold
		}
		return f.request(t, rapid.SampledFrom(f.rows).Draw(t, "endpoint"))
	})
}

// claims draws a request that writes values of others into a record of the attacker that is valid otherwise.
func claims(t *rapid.T) step {
	member := rapid.SampledFrom([]string{"email", "phone", "name", "date_of_birth", "external_id"}).Draw(t, "member")
	body := map[string]any{member: text(t, member)}
	switch member {
	case "name":
		body = map[string]any{"first_name": text(t, "first_name"), "last_name": text(t, "last_name")}
	case "external_id":
		body = map[string]any{"metadata": body}
	}
	return change("<attacker.customer>", body)
}

// change writes members of the attacker's customer record.
func change(id string, members map[string]any) step {
	body, err := json.Marshal(members)
	if err != nil {
		panic(err)
	}
	return step{by: attacker, method: "PUT", path: "/v1/customers/" + id, body: unescape(string(body))}
}

func text(t *rapid.T, member string) string {
	values, known := pool[member]
	if !known {
		values = pool[""]
	}
	return rapid.SampledFrom(values).Draw(t, member)
}

// request draws a request to an endpoint: ids and values are the attacker's or those of others.
func (f surface) request(t *rapid.T, e endpoint.Endpoint) step {
	s := step{by: attacker, method: e.Method, path: e.Path}
	for _, own := range mine {
		if rest, ok := strings.CutPrefix(e.Path, own.prefix); ok && rapid.IntRange(0, 4).Draw(t, "own") > 0 {
			s.path = strings.Replace(own.prefix, parameter.FindString(own.prefix), own.id, 1) + rest
			break
		}
	}
	s.path = parameter.ReplaceAllStringFunc(s.path, func(string) string { return rapid.SampledFrom(pool["ids"]).Draw(t, "id") })
	if schema := f.bodies[e.Key()]; schema != nil {
		body, _ := json.Marshal(value(t, "", schema, 0))
		s.body = unescape(string(body))
	}
	if s.method == http.MethodGet {
		s.path += "?q=" + rapid.SampledFrom([]string{"Muster", "BANK-1001", "user1"}).Draw(t, "query")
	}
	return s
}

// value draws a value of a schema.
func value(t *rapid.T, name string, schema *openapi3.Schema, depth int) any {
	if len(schema.Enum) > 0 {
		return rapid.SampledFrom(schema.Enum).Draw(t, name)
	}
	for _, one := range slices.Concat(schema.OneOf, schema.AnyOf, schema.AllOf) {
		return value(t, name, one.Value, depth)
	}
	switch kind := schema.Type; {
	case kind.Includes("object") || len(schema.Properties) > 0:
		return object(t, schema, depth)
	case kind.Includes("array"):
		var all []any
		for range rapid.IntRange(0, 2).Draw(t, "length") {
			all = append(all, value(t, name, schema.Items.Value, depth+1))
		}
		return all
	case kind.Includes("boolean"):
		return rapid.Bool().Draw(t, name)
	case kind.Includes("integer"), kind.Includes("number"):
		return rapid.IntRange(0, 100).Draw(t, name)
	case schema.Format == "uuid":
		return rapid.SampledFrom(append([]string{"<attacker.customer>", "<attacker.user>"}, pool["ids"]...)).Draw(t, name)
	case name == "metadata":
		return map[string]any{"external_id": text(t, "external_id")}
	case name == "password":
		return servertest.Password
	case schema.Format == "date":
		return text(t, "date_of_birth")
	}
	return text(t, name)
}

const deepest = 4

func object(t *rapid.T, schema *openapi3.Schema, depth int) map[string]any {
	members := map[string]any{}
	names := make([]string, 0, len(schema.Properties))
	for name := range schema.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if depth < deepest && (slices.Contains(schema.Required, name) || rapid.Bool().Draw(t, "has "+name)) {
			members[name] = value(t, name, schema.Properties[name].Value, depth+1)
		}
	}
	return members
}

// flood makes the attacker create many records with an address.
func flood(records int, email string) step {
	return step{by: attacker, does: fmt.Sprintf("attacker: creates %d customers with the address %s", records, email), job: func(b *bank) {
		body := fmt.Sprintf(`{"first_name":"Flo","last_name":"Od","email":%q}`, email)
		for range records {
			b.do(step{by: attacker, method: "POST", path: "/v1/customers", body: body})
		}
	}}
}

// hold makes both accounts of the attacker take all places for uploads that they get, and keep them to the end of the history.
var hold = step{by: attacker, does: "attacker: begins uploads with two accounts, and does not end them", job: func(b *bank) {
	for _, by := range []string{attacker, accomplice} {
		uploads := []step{encloses(by, "message"), encloses(by, "message2")} // each takes 50 files
		var all sync.WaitGroup
		for n := range places {
			all.Go(func() { b.begin(uploads[n%2]) })
		}
		all.Wait()
		probe := uploads[0]
		probe.body = "a file that no upload accepts"
		testenv.Wait(b, "the uploads of "+by+" to take their places", func() bool {
			isFree := b.do(probe).status == http.StatusUnsupportedMediaType
			if isFree {
				b.begin(uploads[1]) // one was rejected because the probe had its place
			}
			return !isFree
		})
	}
}}

// places is how many uploads of one caller run at the same time, at most.
const places = 64

// begin sends the beginning of an upload. The connection stays open to the end of the history.
func (b *bank) begin(s step) {
	c, err := net.Dial("tcp", b.server.Address)
	if err != nil {
		b.Errorf("begin an upload: %v", err)
		return
	}
	b.mu.Lock()
	b.end = append(b.end, func() { c.Close() })
	b.mu.Unlock()
	fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: %s\r\n", s.method, b.fill(s.path), b.people[s.by].Token, s.media)
	fmt.Fprintf(c, "Content-Disposition: attachment; filename=\"a.png\"\r\nContent-Length: %d\r\n\r\n%s", len(noise), noise[:len(noise)/2])
}
