package app_test

import (
	"strings"
	"testing"

	"kontor/locales"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/servertest"
)

// validBodies are valid bodies of requests, so that only the ids are wrong.
var validBodies = map[string]string{
	"POST /v1/customers/{id}/notify":                                       `{"text": "x", "user_ids": ["0193a7c4-5e2f-7b1a-9c3d-8f6e2a4b7c10"]}`,
	"PATCH /v1/users/{id}":                                                 `{"language": "de"}`,
	"PUT /v1/users/{id}/password":                                          `{"old_password": "a long enough password 42", "password": "another long password 43"}`,
	"PUT /v1/users/{id}/roles":                                             `{"roles": ["Customer"]}`,
	"POST /v1/users/{id}/reauthenticate":                                   `{"password": "a long enough password 42"}`,
	"POST /v1/users/{id}/credentials":                                      `{"credential_type": "username", "credential_value": "somebody.new"}`,
	"PUT /v1/users/{id}/credentials/{credential_id}/validate":              `{"otp": "123456"}`,
	"POST /v1/users/{id}/identities":                                       `{"subject": "248289761001"}`,
	"POST /v1/users/{id}/factors":                                          `{"type": "totp"}`,
	"POST /v1/users/{id}/factors/{factor_id}/confirm":                      `{"code": "123456"}`,
	"PATCH /v1/service-accounts/{id}":                                      `{"description": "New."}`,
	"PATCH /v1/webhooks/{id}":                                              `{"description": "New."}`,
	"POST /v1/webhooks/{id}/replay":                                        `{"since": "2026-01-31T08:15:30Z"}`,
	"POST /v1/service-accounts/{id}/tokens":                                `{"name": "Production"}`,
	"PATCH /v1/users/{id}/factors/{factor_id}":                             `{"name": "Phone"}`,
	"PUT /v1/rbac/roles/{id}/permissions":                                  `{"types": []}`,
	"PUT /v1/rbac/roles/{id}":                                              `{"name": "Auditor"}`,
	"PUT /v1/personas/{persona_id}":                                        `{"first_name": "Anna", "last_name": "Muster", "date_of_birth": "1990-04-12"}`,
	"POST /v1/personas/{persona_id}/users":                                 `{"user_id": "01a1fba6-a539-7476-8ef2-2ae6188b879c"}`,
	"POST /v1/personas/{persona_id}/links":                                 `{"linked_persona_id": "01a1fba6-a539-7476-8ef2-2ae6188b879c", "relation": "spouse"}`,
	"PUT /v1/customers/{id}":                                               `{"first_name": "Anna"}`,
	"PUT /v1/customers/{id}/kyc":                                           `{"documents": [{"type": "passport", "number": "X1", "expiry_date": "2099-05-01", "country": "CHE"}]}`,
	"PATCH /v1/customers/{id}/kyc/status":                                  `{"kyc_status": "pending"}`,
	"POST /v1/customers/{id}/kyc/decisions/{decision_id}/reject":           `{"reason": "The proof is missing."}`,
	"POST /v1/screening/hits/{id}/decide":                                  `{"decision": "dismissed", "reason": "Another person."}`,
	"PUT /v1/customers/{id}/relationship":                                  `{"ended_at": null}`,
	"PUT /v1/customers/{id}/legal-hold":                                    `{"reason": "A dispute."}`,
	"POST /v1/customers/{id}/erasure":                                      `{"reason": "request"}`,
	"POST /v1/users/{id}/erasure":                                          `{"reason": "request"}`,
	"POST /v1/personas/{persona_id}/erasure":                               `{"reason": "request"}`,
	"PUT /v1/payers/{id}":                                                  `{"name": "Anna Muster"}`,
	"POST /v1/chats/{id}/messages":                                         `{"content": "Grüezi"}`,
	"POST /v1/chats/{id}/participants":                                     `{"participants": ["01a1fba6-a539-7476-8ef2-2ae6188b879c"]}`,
	"PATCH /v1/inbox/{id}":                                                 `{"state": "closed"}`,
	"POST /v1/inbox/{id}/messages":                                         `{"content": "Grüezi"}`,
	"POST /v1/inbox/{id}/notes":                                            `{"content": "A note."}`,
	"PATCH /v1/notifications/{notification_id}/read":                       `{"read": true}`,
	"POST /v1/customers/{customer_id}/tasks":                               `{"title": "Sign the contract", "category": "sign"}`,
	"PUT /v1/customers/{customer_id}/tasks/{id}":                           `{"title": "Sign the contract", "category": "sign"}`,
	"PATCH /v1/customers/{customer_id}/tasks/{id}/status":                  `{"status": "in_progress"}`,
	"POST /v1/customers/{customer_id}/tasks/{id}/assignees":                `{"user_id": "01a1fba6-a539-7476-8ef2-2ae6188b879c", "weight": 1}`,
	"PATCH /v1/customers/{customer_id}/tasks/{id}/assignees/{assignee_id}": `{"status": "accepted"}`,
}

// exceptions are the endpoints whose answer for an unknown id is not 404 by the specification.
var exceptions = map[string]struct {
	status int
	code   string // empty: no error
}{
	"PATCH /v1/notifications/{notification_id}/read": {200, ""},
	"DELETE /v1/notifications/{notification_id}":     {500, "common.database_error"},
}

// textNames are the parameters of paths that are not UUIDs.
var textNames = map[string]bool{"{name}": true, "{file}": true, "{size}": true, "{seq}": true}

func TestIDs_MalformedOnesAreReported(t *testing.T) {
	s := servertest.Start(t)
	texts, err := locales.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range s.Table() {
		for _, name := range endpoint.PathNames(e.Path) {
			if textNames["{"+name+"}"] || !e.Access.TakesBearer() {
				continue
			}
			for _, malformed := range []string{"17", "01a1fba6a53974768ef22ae6188b879c", "01a1fba6-a539-7476-8ef2-2ae6188b879z", "%7B01a1fba6-a539-7476-8ef2-2ae6188b879c%7D"} {
				path := withUnknownIDs(strings.Replace(e.Path, "{"+name+"}", malformed, 1))
				for _, lang := range locales.Languages() {
					answer := s.Admin().With("Accept-Language", lang).Do(e.Method, path, validBody(e))
					details, _ := answer.JSON(t)["details"].(map[string]any)
					if answer.Status != 400 || details[name] != texts.Text(lang, "invalid.uuid", nil) || len(details) != 1 {
						t.Errorf("%s %s in %s: got %d %s", e.Method, path, lang, answer.Status, answer.Body)
					}
				}
			}
		}
	}
}

func validBody(e endpoint.Endpoint) any {
	if body, ok := validBodies[e.Key()]; ok {
		return body
	}
	return nil
}

func TestIDs_UnknownOnesAreNotFound(t *testing.T) {
	s := servertest.Start(t)
	texts, err := locales.Load()
	if err != nil {
		t.Fatal(err)
	}
	known := existing(t, s)
	for _, e := range s.Table() {
		if len(endpoint.PathNames(e.Path)) == 0 || !e.Access.TakesBearer() || textNames[lastName(e.Path)] {
			continue
		}
		// First all ids are unknown, then only the last one, below an existing record.
		paths := []string{withUnknownIDs(e.Path)}
		for prefix, id := range known {
			if below, ok := strings.CutPrefix(e.Path, prefix); ok && strings.Contains(below, "{") {
				paths = append(paths, strings.Replace(prefix, lastName(prefix), id, 1)+withUnknownIDs(below))
			}
		}
		for _, path := range paths {
			for _, lang := range locales.Languages() {
				answer := s.Admin().With("Accept-Language", lang).Do(e.Method, path, validBody(e))
				if special, ok := exceptions[e.Key()]; ok {
					if answer.Status != special.status || special.code != "" && !strings.Contains(answer.Body, special.code) {
						t.Errorf("%s %s: got %d %s, want %d %s", e.Method, path, answer.Status, answer.Body, special.status, special.code)
					}
					continue
				}
				body := answer.JSON(t)
				code, _ := body["code"].(string)
				if answer.Status != 404 || !declares(e, code) || body["message"] != texts.Text(lang, "error."+code, nil) {
					t.Errorf("%s %s in %s: got %d %s, want 404 with a code that the row declares", e.Method, path, lang, answer.Status, answer.Body)
				}
			}
		}
	}
}

// declares reports whether an endpoint declares an error code for status 404.
func declares(e endpoint.Endpoint, code string) bool {
	for _, kind := range e.Faults {
		if kind.Status == 404 && kind.Code == code && kind != apierr.NotFound {
			return true
		}
	}
	return false
}

// lastName returns the last parameter of a path, with its braces.
func lastName(path string) string {
	all := pathName.FindAllString(path, -1)
	return all[len(all)-1]
}

// existing creates records that have sub-records, and returns their ids by path.
func existing(t *testing.T, s *servertest.Server) map[string]string {
	t.Helper()
	made := func(path string, body any) string {
		var record struct{ ID string }
		s.Admin().Do("POST", path, body).Expect(t, 201).Into(t, &record)
		return record.ID
	}
	other := s.User()
	known := map[string]string{
		"/v1/users/{id}":              other.UserID,
		"/v1/customers/{customer_id}": made("/v1/customers", customerBody("Anna")),
	}
	for path, create := range map[string]struct {
		at   string
		body any
	}{
		"/v1/personas/{persona_id}": {"/v1/personas", validBodies["PUT /v1/personas/{persona_id}"]},
		"/v1/chats/{id}":            {"/v1/chats", map[string]any{"participants": []string{other.UserID, s.User().UserID}}},
	} {
		known[path] = made(create.at, create.body)
	}
	return known
}

// customerBody are the data of a customer.
func customerBody(first string) map[string]any {
	return map[string]any{"first_name": first, "last_name": "Muster", "email": strings.ToLower(first) + "@example.ch",
		"metadata": map[string]any{"note": "<b>&"}, "phone": "044 668 18 00", "date_of_birth": "1990-04-12"}
}
