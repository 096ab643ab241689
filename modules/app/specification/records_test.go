package specification_test

import (
	"fmt"
	"strings"
	"testing"
)

const persona = `{"first_name":"Ruth","last_name":"Keller","date_of_birth":"1955-02-03"%s}`

// hundred is the longest name.
var hundred = strings.Repeat("a", 100)

// with adds members to a JSON object that ends with %s.
func with(object, members string) string { return fmt.Sprintf(object, members) }

// fields checks that a record has each of the members with its type: string, uuid, date, date-time, boolean, integer, object, array.
// A member after "?" may be null.
func fields(as, request string, members ...string) func(*testing.T, *bank) {
	return func(t *testing.T, b *bank) {
		t.Helper()
		record := b.send(t, do(as, request, "", 200)).JSON(t)
		for _, m := range members {
			hasMember(t, record, m)
		}
	}
}

// hasMember checks one member, such as "id uuid" or "?read_at date-time".
func hasMember(t *testing.T, record map[string]any, member string) {
	t.Helper()
	member, nullable := strings.CutPrefix(member, "?")
	name, kind, _ := strings.Cut(member, " ")
	value, found := record[name]
	if !found {
		t.Errorf("%s is missing in %v", name, record)
		return
	}
	if value == nil && nullable {
		return
	}
	if !isKind(value, kind) {
		t.Errorf("%s is %v, want %s", name, value, kind)
	}
}

func isKind(value any, kind string) bool {
	switch v := value.(type) {
	case string:
		form, known := map[string]string{"uuid": "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx", "date": "xxxx-xx-xx", "date-time": "xxxx-xx-xxTxx:xx:xx"}[kind]
		return kind == "string" || known && hasForm(v, form)
	case bool:
		return kind == "boolean"
	case float64:
		return kind == "number" || kind == "integer" && v == float64(int(v))
	case map[string]any:
		return kind == "object"
	case []any:
		return kind == "array"
	}
	return false
}

// hasForm reports whether a text has the separators of a form at their places.
func hasForm(text, form string) bool {
	if len(text) < len(form) {
		return false
	}
	for i := range len(form) {
		if form[i] != 'x' && text[i] != form[i] {
			return false
		}
	}
	return true
}

var records = []statement{
	// Personas
	{"Stores personal identities (personas) with optional user links, and lets them be updated.", steps(
		do("advisor", "POST /v1/personas/{persona}/users", `{"user_id":"{anna}"}`, 201),
		do("anna", "GET /v1/personas/{persona}", "", 200),
		do("advisor", "PUT /v1/personas/{persona}", with(persona, ""), 200, `"first_name":"Ruth"`))},
	{"| first_name | string | yes | max length 100 |", steps(
		do("advisor", "POST /v1/personas", `{"first_name":"`+hundred+`","last_name":"a","date_of_birth":"1955-02-03"}`, 201),
		do("advisor", "POST /v1/personas", `{"first_name":"`+hundred+`a","last_name":"a","date_of_birth":"1955-02-03"}`, 400, `"first_name"`),
		do("advisor", "POST /v1/personas", `{"last_name":"a","date_of_birth":"1955-02-03"}`, 400, `"first_name"`))},
	{"| last_name | string | yes | max length 100 |", steps(
		do("advisor", "POST /v1/personas", `{"first_name":"a","last_name":"`+hundred+`","date_of_birth":"1955-02-03"}`, 201),
		do("advisor", "POST /v1/personas", `{"first_name":"a","last_name":"`+hundred+`a","date_of_birth":"1955-02-03"}`, 400, `"last_name"`),
		do("advisor", "POST /v1/personas", `{"first_name":"a","date_of_birth":"1955-02-03"}`, 400, `"last_name"`))},
	{"| date_of_birth | string, date | yes | |", steps(
		do("advisor", "POST /v1/personas", `{"first_name":"a","last_name":"b"}`, 400, `"date_of_birth"`),
		do("advisor", "POST /v1/personas", `{"first_name":"a","last_name":"b","date_of_birth":"1955-02-30"}`, 400, `"date_of_birth"`))},
	{"| date_of_death | string, date | no | nullable |", steps(
		do("advisor", "POST /v1/personas", with(persona, `,"date_of_death":null`), 201, `"date_of_death":null`),
		do("advisor", "POST /v1/personas", with(persona, `,"date_of_death":"2020-01-31"`), 201, `"date_of_death":"2020-01-31"`))},
	{"| nationality | string | no | pattern ^[A-Z]{3}$ (three upper-case letters) |", steps(
		do("advisor", "POST /v1/personas", with(persona, `,"nationality":"XKX"`), 201, `"nationality":"XKX"`),
		do("advisor", "POST /v1/personas", with(persona, `,"nationality":"XXA"`), 201, `"nationality":"XXA"`),
		do("advisor", "POST /v1/personas", with(persona, `,"nationality":"XQZ"`), 201, `"nationality":"XQZ"`),
		do("advisor", "POST /v1/personas", with(persona, `,"nationality":"che"`), 400, `"nationality"`),
		do("advisor", "POST /v1/personas", with(persona, `,"nationality":"CH"`), 400, `"nationality"`),
		do("advisor", "POST /v1/personas", with(persona, `,"nationality":"CHEE"`), 400, `"nationality"`))},
	{"| hash_id | string | no | |", steps(do("advisor", "POST /v1/personas", with(persona, `,"hash_id":"h 42"`), 201, `"hash_id":"h 42"`))},
	{"The update input is PersonaData plus optional `metadata` (object with arbitrary members) and optional `active` (boolean).", steps(
		do("advisor", "PUT /v1/personas/{persona}", with(persona, `,"metadata":{"x":[1,{"y":null}]},"active":false`), 200,
			`"metadata":{"x":[1,{"y":null}]}`, `"active":false`),
		do("advisor", "PUT /v1/personas/{persona}", with(persona, ""), 200, `"active":false`),
		do("advisor", "PUT /v1/personas/{persona}", with(persona, `,"active":true`), 200, `"active":true`))},
	{"The persona record returned is PersonaData plus:", fields("advisor", "GET /v1/personas/{persona}", "first_name string", "last_name string",
		"date_of_birth date", "?date_of_death date", "?nationality string", "?hash_id string", "id uuid", "active boolean", "metadata object",
		"created_at date-time", "created_by uuid", "modified_at date-time", "modified_by uuid")},
	{"| PUT | /v1/personas/{persona_id} | path persona_id (uuid, required); body = update input", steps(
		do("advisor", "PUT /v1/personas/{persona}", with(persona, ""), 200, `"id":"{persona}"`),
		do("advisor", "PUT /v1/personas/7", with(persona, ""), 400, `"common.invalid_input"`),
		do("advisor", "PUT /v1/personas/{persona}", `{"first_name":"Ruth","last_name":"Keller"}`, 400, `"date_of_birth"`))},
	{"The API groups its operations under the tags Personal Identity, User-Persona and Persona Links.", steps(
		do("nobody", "GET /openapi.json", "", 200, `"Personal Identity"`, `"User-Persona"`, `"Persona Links"`))},
	{"| persona active | PUT /v1/personas/{persona_id} | body member `active` present | the given value | |", steps(
		do("advisor", "PUT /v1/personas/{persona}", with(persona, `,"active":false`), 200, `"active":false`))},
	{"| Persona, payer | active | true, false |", steps(
		do("advisor", "GET /v1/payers/{payer}", "", 200, `"active":true`), do("advisor", "DELETE /v1/payers/{payer}", "", 200),
		do("advisor", "GET /v1/payers/{payer}", "", 200, `"active":false`),
		do("advisor", "PUT /v1/payers/{payer}", `{"active":true}`, 200, `"active":true`))},
	{"| persona first_name, last_name | at most 100 characters |", steps( // characters, not bytes
		do("advisor", "POST /v1/personas", `{"first_name":"`+strings.Repeat("é", 100)+`","last_name":"`+strings.Repeat("日", 100)+`","date_of_birth":"1955-02-03"}`, 201))},
	{"| persona nationality, payer country filter | three upper-case letters |", steps(
		do("advisor", "GET /v1/payers?country=XQZ", "", 200), do("advisor", "GET /v1/payers?country=xqz", "", 400, `"country"`))},

	// Payers
	{"| id | uuid | |", all(fields("advisor", "GET /v1/payers/{payer}", "id uuid"), fields("anna", "GET /v1/customers/{customer}", "id uuid"),
		fields("anna", task, "id uuid"))},
	{"| customer_id | uuid | |", all(fields("advisor", "GET /v1/payers/{payer}", "customer_id uuid"), fields("anna", task, "customer_id uuid"))},
	{"| email | string | e-mail format |", steps(do("advisor", "GET /v1/payers/{payer}", "", 200, `"email":"p@example.ch"`),
		do("advisor", "POST /v1/payers", `{"customer_id":"{customer}","name":"a","email":"nobody"}`, 400, `"email"`))},
	{"| name | string | |", fields("advisor", "GET /v1/payers/{payer}", "name string")},
	{"| company | string | |", fields("advisor", "GET /v1/payers/{payer}", "company string")},
	{"| country | string | country filter uses three upper-case letters", steps(do("advisor", "GET /v1/payers?country=CHE", "", 200, `"country":"CHE"`))},
	{"| active | boolean | |", fields("advisor", "GET /v1/payers/{payer}", "active boolean")},
	{"| metadata | object | free-form |", all(fields("advisor", "GET /v1/payers/{payer}", "metadata object"),
		fields("anna", "GET /v1/customers/{customer}", "metadata object"))},
	{"| created_at, modified_at | date-time | |", fields("advisor", "GET /v1/payers/{payer}", "created_at date-time", "modified_at date-time")},
	{"| created_by, modified_by | uuid | |", fields("advisor", "GET /v1/payers/{payer}", "created_by uuid", "modified_by uuid")},
	{"Stores payers (a person or company that pays) and lists them with filters and pagination.", steps(
		do("advisor", "POST /v1/payers", `{"customer_id":"{customer}","company":"Paged AG","country":"FRA"}`, 201),
		do("advisor", "POST /v1/payers", `{"customer_id":"{customer}","company":"Paged AG","country":"FRA"}`, 201),
		do("advisor", "GET /v1/payers?company=paged&limit=1", "", 200, `"total":2`, `"has_more":true`),
		do("advisor", "GET /v1/payers?company=paged&limit=1&offset=1", "", 200, `"total":2`, `"has_more":false`))},
	{"| GET | /v1/payers | query parameters below; bearer |", steps(
		do("nobody", "GET /v1/payers", "", 401), do("advisor", "GET /v1/payers?company=holzbau", "", 200, `{"payers":[{`, `"total":1`, `"has_more":false`))},
	{"| PUT | /v1/payers/{id} | path id (payer uuid); bearer; body name, company, country, metadata", steps(
		do("advisor", "PUT /v1/payers/{payer}", `{"name":"New","company":"New AG","country":"DEU","metadata":{"k":"v"}}`, 200,
			`"name":"New"`, `"company":"New AG"`, `"country":"DEU"`, `"metadata":{"k":"v"}`),
		do("nobody", "PUT /v1/payers/{payer}", `{"name":"New"}`, 401),
		do("advisor", "PUT /v1/payers/{payer}", `{"name":"Beat Brunner","company":"Keller Holzbau AG","country":"CHE"}`, 200))},
	{"| limit | integer | maximum records to return, 1 to 100 |", wholePage},
	{"| offset | integer | records to skip, at least 0 |", steps(do("advisor", "GET /v1/payers?offset=0", "", 200), do("advisor", "GET /v1/payers?offset=-1", "", 400))},
	{"| company | string | filter by company name |", steps(do("advisor", "GET /v1/payers?company=Keller%20Holzbau%20AG", "", 200, `"total":1`),
		do("advisor", "GET /v1/payers?company=no%20such", "", 200, `"payers":[]`, `"total":0`))},
	{"| country | string | filter by country code, pattern ^[A-Z]{3}$ |", steps(do("advisor", "GET /v1/payers?country=CH", "", 400, `"country"`))},
	{"| active | boolean | filter by active status |", steps(do("advisor", "GET /v1/payers?active=true&company=holzbau", "", 200, `"total":1`),
		do("advisor", "GET /v1/payers?active=false&company=holzbau", "", 200, `"total":0`))},
	{"| GET /v1/payers limit | 1 to 100 |", steps(do("advisor", "GET /v1/payers?limit=0", "", 400), do("advisor", "GET /v1/payers?limit=1", "", 200),
		do("advisor", "GET /v1/payers?limit=100", "", 200), do("advisor", "GET /v1/payers?limit=101", "", 400), do("advisor", "GET /v1/payers?limit=x", "", 400))},
	{"| GET /v1/payers offset | at least 0 |", steps(do("advisor", "GET /v1/payers?offset=99999", "", 200, `"payers":[]`), do("advisor", "GET /v1/payers?offset=x", "", 400))},

	// Customers
	{"Stores customers with address, identity-verification (KYC) status and verification level, and accepts KYC documents for a customer.", steps(
		do("anna", "GET /v1/customers/{customer}", "", 200, `"kyc_status":"not_started"`, `"verification_level":"none"`, `"city":"Zug"`))},
	{"| type | string | |", fields("anna", "GET /v1/customers/{customer}", "type string")},
	{"| first_name, last_name | string | |", fields("anna", "GET /v1/customers/{customer}", "first_name string", "last_name string")},
	{"| email | string | e-mail format on input |", steps(do("anna", "POST /v1/customers", `{"first_name":"A","last_name":"B","email":"nobody"}`, 400, `"email"`))},
	{"| phone | string | |", fields("anna", "GET /v1/customers/{customer}", "phone string")},
	{"| date_of_birth | date on input; string on output | |", steps(do("anna", "GET /v1/customers/{customer}", "", 200, `"date_of_birth":"1984-05-17"`),
		do("anna", "POST /v1/customers", `{"first_name":"A","last_name":"B","email":"a@example.ch","date_of_birth":"17.5.1984"}`, 400, `"date_of_birth"`))},
	{"| nationality | string | |", steps(
		do("anna", "POST /v1/customers", `{"first_name":"A","last_name":"B","email":"a@example.ch","nationality":"XXB"}`, 201, `"nationality":"XXB"`))},
	{"| address | object | members street, city, postal_code, country (all strings) |", steps(do("anna", "GET /v1/customers/{customer}", "", 200,
		`"street":"Seeweg 1"`, `"city":"Zug"`, `"postal_code":"6300"`, `"country":"CH"`),
		do("anna", "POST /v1/customers", `{"first_name":"A","last_name":"B","email":"a@example.ch","address":{"country":"XK"}}`, 201, `"country":"XK"`))},
	{"| kyc_status | string | output only |", steps(
		do("admin", "PUT /v1/customers/{customer}", `{"kyc_status":"verified"}`, 200, `"kyc_status":"not_started"`))},
	{"| verification_level | string | output only |", steps(
		do("admin", "PUT /v1/customers/{customer}", `{"verification_level":"enhanced"}`, 200, `"verification_level":"none"`))},
	{"| created_at, updated_at | date-time | output only |", fields("anna", "GET /v1/customers/{customer}", "created_at date-time", "updated_at date-time")},
	{"KYC update input: `verified_at` (date-time) and `documents` (array of objects with `type` string, `number` string, `expiry_date` date, `country` string).", steps(
		do("anna", "POST /v1/customers", `{"first_name":"K","last_name":"Y","email":"kyc@example.ch"}`, 201).keep("new", "id"),
		do("anna", "PUT /v1/customers/{new}/kyc", `{"documents":[]}`, 200, `"kyc_status":"not_started"`),
		do("anna", "PUT /v1/customers/{new}/kyc", `{"documents":[{"type":"library card","number":"7","expiry_date":"2019-01-31","country":"XKX"}]}`, 200),
		do("anna", "GET /v1/customers/{new}/kyc", "", 200, `"type":"library card"`, `"expiry_date":"2019-01-31"`, `"country":"XKX"`),
		do("anna", "PUT /v1/customers/{new}/kyc", `{"verified_at":"2026-01-01T00:00:00Z","documents":[{"type":"passport","number":"X1","expiry_date":"2099-05-01","country":"CHE"}]}`,
			200, `"kyc_status":"pending"`))},
	{"| POST | /v1/customers | body: first_name, last_name, email, phone, date_of_birth, nationality, address, metadata | 201 with the customer record |", steps(
		do("anna", "POST /v1/customers", `{"first_name":"A","last_name":"B","email":"a@example.ch","phone":"+41446681800","date_of_birth":"1990-01-31",
			"nationality":"CHE","address":{"city":"Bern"},"metadata":{"k":1}}`, 201, `"phone":"+41446681800"`, `"metadata":{"k":1}`))},
	{"| GET | /v1/customers/{id} | path id | 200 with the customer record |", steps(do("anna", "GET /v1/customers/{customer}", "", 200, `"id":"{customer}"`))},
	{"| PUT | /v1/customers/{id}/kyc | path id; body verified_at and documents | 200 on success; response body: not shown |", steps(
		do("anna", "POST /v1/customers", `{"first_name":"K","last_name":"Y","email":"kyc@example.ch"}`, 201).keep("new", "id"),
		do("anna", "PUT /v1/customers/{new}/kyc", `{"documents":[{"type":"passport","number":"X1","expiry_date":"2099-05-01","country":"CHE"}]}`, 200))},
	{"| Customer | kyc_status | values not listed |", fields("anna", "GET /v1/customers/{customer}", "kyc_status string")},
}

// wholePage reads pages of heavy rows: each has limit rows as long as there are that many.
func wholePage(t *testing.T, b *bank) {
	heavy := `{"customer_id":"{customer}","company":"Heavy AG","metadata":{"text":"` + strings.Repeat("x", 15000) + `"}}`
	for range 101 {
		b.send(t, do("advisor", "POST /v1/payers", heavy, 201))
	}
	for _, limit := range []int{1, 100} {
		page := b.send(t, do("advisor", fmt.Sprintf("GET /v1/payers?company=heavy&limit=%d", limit), "", 200, `"total":101`, `"has_more":true`)).JSON(t)
		if got := len(page["payers"].([]any)); got != limit {
			t.Errorf("limit %d: got %d rows", limit, got)
		}
	}
}
