package specification_test

import (
	"fmt"
	"strings"
	"testing"

	"kontor/server/servertest"
	"kontor/server/settings"
)

func signsIn(t *testing.T, b *bank) {
	answer := b.send(t, do("nobody", "POST /authenticate", `{"user_id":"`+servertest.AdminEmail+`","password":"`+servertest.AdminPassword+`"}`, 200)).JSON(t)
	if token, _ := answer["access_token"].(string); strings.Count(token, ".") != 2 {
		t.Errorf("%q is no JWT", token)
	}
	b.send(t, do("nobody", "POST /authenticate", `{"user_id":"`+servertest.AdminEmail+`","password":"wrong"}`, 401))
}

func signsOut(t *testing.T, b *bank) {
	b.callers["leaving"] = b.SignIn(servertest.AdminEmail, servertest.AdminPassword)
	steps(do("leaving", "GET /v1/users/me", "", 200), do("leaving", "POST /v1/logout", "", 200, `"message"`), do("leaving", "GET /v1/users/me", "", 401, `"common.unauthorized"`))(t, b)
}

// denied is a call without the right to the endpoint, and one without the right to the record.
func denied(t *testing.T, b *bank) {
	b.send(t, do("anna", "GET /v1/rbac/roles", "", 403, `"common.rbac_no_rec_access"`))
	b.send(t, do("beat", "GET /v1/customers/{customer}", "", 403, `"common.rbac_no_rec_access"`, `"message":"No access to the record"`))
}

// everyone is a role without grants that takes away nothing, while the built-in role Everyone decides about own data.
func everyone(t *testing.T, b *bank) {
	b.send(t, do("anna", "GET /v1/notifications", "", 200))
	apart := open(t) // changes what everyone may do
	roles := apart.send(t, do("admin", "GET /v1/rbac/roles?search.name=Everyone", "", 200)).JSON(t)
	apart.names["everyone"] = first(t, roles["data"])["id"].(string)
	grants := apart.send(t, do("admin", "GET /v1/rbac/grants?search.endpoint=GET%20/v1/notifications&search.role_id={everyone}", "", 200)).JSON(t)
	apart.names["grant"] = first(t, grants["data"])["id"].(string)
	apart.send(t, do("admin", "POST /v1/rbac/roles", `{"name":"Archivist"}`, 201).keep("archivist", "id"))
	apart.callers["archivist"] = apart.User("Archivist")
	steps(do("archivist", "GET /v1/notifications", "", 200), do("admin", "DELETE /v1/rbac/grants/{grant}", "", 200),
		do("archivist", "GET /v1/notifications", "", 403, `"common.rbac_no_rec_access"`))(t, apart)
}

func checks(t *testing.T, b *bank) {
	answer := b.send(t, do("anna", "POST /v1/rbac/check", `{"checks":[{"rec_type":"customers","permission":"read","rec_id":"{customer}"},
		{"rec_type":"unicorns","permission":"read"}]}`, 200)).JSON(t)
	results := answer["results"].([]any)
	if len(results) != 2 {
		t.Fatalf("got %v, want one result for each check", results)
	}
	for i, want := range []bool{true, false} {
		result := results[i].(map[string]any)
		for _, m := range []string{"allowed boolean", "source string", "source_id uuid"} {
			hasMember(t, result, m)
		}
		if result["allowed"] != want {
			t.Errorf("check %d: got %v", i, result)
		}
	}
	b.send(t, do("anna", "POST /v1/rbac/check", `{"checks":[]}`, 200, `{"results":[]}`))
	b.send(t, do("nobody", "POST /v1/rbac/check", `{"checks":[]}`, 401))
}

// limited sends requests of a public and a private endpoint until they are limited.
func limited(t *testing.T, _ *bank) {
	s := servertest.Start(t, func(o *settings.Settings) {
		o.RateLimits.Enabled, o.RateLimits.PublicPerMinute, o.RateLimits.PrivatePerMinute = true, 5, 5
	})
	apart := &bank{Server: s, names: map[string]string{}, callers: map[string]*servertest.Client{"admin": s.Admin(), "nobody": s.Anonymous()}}
	for name, request := range map[string]string{"admin": "GET /v1/users/me", "nobody": "GET /authenticate/methods"} {
		limited := false
		for range 20 {
			method, path, _ := strings.Cut(request, " ")
			answer := apart.callers[name].Do(method, path, nil)
			if limited = answer.Status == 429; limited {
				for _, text := range []string{`"rate_limits_m.exceeded"`, `"class":"temporary"`, `"retryable":true`} {
					if !strings.Contains(answer.Body, text) {
						t.Errorf("%s lacks %s", answer.Body, text)
					}
				}
				break
			}
		}
		if !limited {
			t.Errorf("%s as %s is never limited", request, name)
		}
	}
}

var access_ = []statement{
	{"Authenticates users with credentials and issues a JWT bearer token; logs out and invalidates tokens.", all(signsIn, signsOut)},
	{"Answers whether the caller holds given permissions on given record types or records (role-based access control).", checks},
	{"Request: `checks` array of objects with `rec_type` (string), `permission` (string), `rec_id` (uuid). Response: `results` array of objects with `allowed` (boolean)," +
		" `source` (string), `source_id` (uuid).", checks},
	{"| POST | /authenticate | user id (usually an e-mail) and password; public route | a JWT token.", signsIn},
	{"| POST | /v1/logout | bearer header, no body | object with `message` (string). Invalidates tokens and ends the session |", signsOut},
	{"| POST | /v1/rbac/check | bearer; body `checks` array | `results` array, one entry per check |", checks},
	{"1. Users authenticate by submitting a user id (usually an e-mail) and a password to the /authenticate route; valid credentials yield a JWT.", signsIn},
	{"2. Later requests carry header `Authorization: Bearer <ACCESS_TOKEN>` (scheme HTTP bearer, format JWT).", steps(do("anna", "GET /v1/users/me", "", 200),
		do("nobody", "GET /v1/users/me", "", 401).with("Authorization", "Bearer x.y.z"))},
	{"3. Some routes without a bearer token take an API key in header `X-API-Key: <API_KEY>`. The trigger route requires the API key.", steps(
		do("nobody", "POST /v1/notifications/trigger", `{}`, 401), do("nobody", "POST /v1/notifications/trigger", `{}`, 401).with("X-API-Key", "wrong-key-0123456789"),
		do("key", "POST /v1/notifications/trigger", `{"user_ids":["{beat}"]}`, 200))},
	{"4. POST /v1/logout invalidates tokens and ends the session.", signsOut},
	{"5. The service resists brute force", func(t *testing.T, b *bank) {
		for range 10 {
			answer := b.callers["nobody"].Do("POST", "/authenticate", `{"user_id":"brute@example.ch","password":"wrong"}`)
			if answer.Status == 429 {
				return
			}
		}
		t.Error("ten wrong passwords are never rejected with 429")
	}},
	{"| 1 | Rate limit", limited},
	{"| 2 | Public endpoint (for example /authenticate): no further check | |", steps(do("nobody", "GET /authenticate/methods", "", 200).with("Authorization", "Bearer nonsense"))},
	{"| 3 | Bearer token validation (private endpoints) | 401 |", steps(do("nobody", "GET /v1/rbac/roles", "", 401, `"common.unauthorized"`))},
	{"| 4 | API access: the user or their roles may call this endpoint | 403 |", all(denied, everyone)},
	{"| 5 | Record access for data operations: the action (Create, Read, Update, Delete) is granted on the record", all(denied, steps(
		do("advisor", "GET /v1/customers?search.id={customer}", "", 200, `"total":1`), do("beat", "GET /v1/customers?search.id={customer}", "", 200, `"total":0`)))},
	{"POST /v1/rbac/check lets a caller test permissions (see Endpoints).", checks},
	{"| 401 | common.unauthorized | missing or invalid bearer token |", steps(do("nobody", "GET /v1/users/me", "", 401, `"common.unauthorized"`),
		do("nobody", "GET /v1/users/me", "", 401, `"common.unauthorized"`).with("Authorization", "Bearer nonsense"))},
	{"| 403 | common.rbac_no_rec_access | no access to the record (message: No access to the record); also API access denied |", denied},
	{"| 429 | rate_limits_m.exceeded | rate limit exceeded (class temporary, retryable true) |", limited},
	{"| rate limiting | applied per request with 429 on excess", limited},
}

// envelope checks the members of an error.
func envelope(t *testing.T, b *bank) {
	for language, want := range map[string]string{"en": "Task not found", "de": "", "fr": "", "it": ""} {
		answer := b.send(t, do("advisor", "GET /v1/customers/{customer}/tasks/{unknown}", "", 404, `"status":404`, `"code":"tasks.task_not_found"`, `"class":"business"`, `!retryable`).
			with("Accept-Language", language)).JSON(t)
		if message := answer["message"].(string); message == "" || want != "" && message != want || want == "" && message == "Task not found" {
			t.Errorf("%s: got %q", language, message)
		}
	}
}

var conventions = []statement{
	{"Identifiers of records are UUID strings. Timestamps are ISO 8601 date-time strings; dates are ISO 8601 calendar dates.", fields("anna", "GET /v1/customers/{customer}",
		"id uuid", "created_at date-time", "date_of_birth date")},
	{"- Answers in English, German, French or Italian according to the request language header.", envelope},
	{"- Language: optional request header `Accept-Language` with one of en, de, fr, it.", envelope},
	{"- Some routes that take no bearer token take an API key in header `X-API-Key`.", steps(do("key", "GET /v1/public-endpoint", "", 200))},
	{"- Bodies are `Content-Type: application/json` unless stated.", steps(do("anna", "POST /v1/customers", `{}`, 415).with("Content-Type", "text/plain"))},
	{"- Error bodies follow the Errors part.", envelope},
	{"| status | integer | HTTP status |", envelope},
	{"| message | string | human-readable text, in the request language |", envelope},
	{"| code | string | machine code |", envelope},
	{"| class | string | business, or temporary |", all(envelope, limited)},
	{"| retryable | boolean | present with class temporary (true) |", limited},
	{"Some routes answer with a smaller body of code and message, and the invoice route adds `details` (object).", steps(
		do("advisor", "POST /v1/invoices/qrcode", `{"base64_file":"AAAA"}`, 400, `"code":"invalid_input"`, `"message":`, `"details":{`))},
	{"| 400 | common.invalid_input | malformed parameter such as a customer_id that does not parse on the notification list |", steps(
		do("anna", "GET /v1/notifications?customer_id=x", "", 400, `"common.invalid_input"`))},
	{"| 400 | query_m.invalid_field | unknown stack field |", once("", do("anna", "GET /v1/notifications?stack=x", "", 400, `"query_m.invalid_field"`))},
	{"| 400 | query_m.invalid_format | unterminated bracket in stack |", once("", do("anna", "GET /v1/notifications?stack=created_at[", "", 400, `"query_m.invalid_format"`))},
	{"| 400 | query_m.invalid_sort_field | unknown sort field once rows are fetched |", once("", do("anna", "GET /v1/notifications?sort=x", "", 400, `"query_m.invalid_sort_field"`))},
	{"| 500 | query_m.invalid_search_field | search. name outside the filterable list |", steps(do("anna", "GET /v1/notifications?search.x=1", "", 500, `"query_m.invalid_search_field"`))},
	{"- Routes are under the path prefix /v1 (the authenticate route is given without prefix).", func(t *testing.T, b *bank) {
		for _, e := range b.Table() {
			if !strings.HasPrefix(e.Path, "/v1/") && !strings.HasPrefix(e.Path, "/authenticate") && !strings.HasPrefix(e.Path, "/access/v1/") {
				t.Logf("without the prefix: %s", e.Key())
			}
		}
		b.send(t, do("anna", "GET /users/me", "", 404))
	}},
	{"- The persona interface description carries the version 1.0.0.", func(t *testing.T, b *bank) {
		version := fmt.Sprint(b.send(t, do("nobody", "GET /openapi.json", "", 200)).JSON(t)["info"].(map[string]any)["version"])
		if version == "" {
			t.Error("the API document has no version")
		}
	}},
}
