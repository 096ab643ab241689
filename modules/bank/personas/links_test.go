package personas_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/store"
)

func relation(id, name string) map[string]any {
	return map[string]any{"linked_persona_id": id, "relation": name}
}

func TestLinks_AreReadableFromBothPersonas(t *testing.T) {
	s := servertest.Start(t)
	owner := s.User(access.Customer)
	anna, bruno := newPersona(owner), newPersona(owner)
	for name, inverse := range map[string]string{"spouse": "spouse", "parent": "child", "child": "parent", "guardian": "ward",
		"legal_representative": "represented", "beneficial_owner": "owned", "authorised_signatory": "signed_for", "other": "other"} {
		t.Run(name, func(t *testing.T) {
			made := owner.Do("POST", "/v1/personas/"+anna+"/links", relation(bruno, name)).Expect(t, http.StatusCreated)
			id := made.JSON(t)["id"].(string)
			same := fmt.Sprintf(`"persona_id":%q,"linked_persona_id":%q,"relation":%q,"inverse_relation":%q,`, anna, bruno, name, inverse)
			if !strings.Contains(made.Body, same+`"direction":"outgoing"`) || made.Header.Get("ETag") == "" {
				t.Errorf("created %s", made.Body)
			}
			servertest.Run(t, s, []servertest.Scenario{
				{Name: "from the first persona", As: owner, Method: "GET", Path: "/v1/personas/" + anna + "/links", Status: 200,
					Contains: []string{same + `"direction":"outgoing"`, `"total":1,"total_unfiltered":1`}},
				{Name: "from the second persona", As: owner, Method: "GET", Path: "/v1/personas/" + bruno + "/links?search.relation=" + name, Status: 200,
					Contains: []string{same + `"direction":"incoming"`, `"total":1,`}},
				{Name: "a second one exists", As: owner, Method: "POST", Path: "/v1/personas/" + anna + "/links", Body: relation(bruno, name), Status: 409,
					Contains: []string{`"personas.link_exists"`}},
				{Name: "the other persona removes it", As: owner, Method: "DELETE", Path: "/v1/personas/" + bruno + "/links/" + id, Status: 200, Contains: []string{`"message"`}},
				{Name: "from both", As: owner, Method: "DELETE", Path: "/v1/personas/" + anna + "/links/" + id, Status: 404,
					Contains: []string{`"personas.link_not_found"`}},
			})
		})
	}
}

func TestLink_RejectsTheInverseOfAnExistingRelation(t *testing.T) {
	s := servertest.Start(t)
	owner := s.User(access.Customer)
	anna, bruno := newPersona(owner), newPersona(owner)
	from, to := "/v1/personas/"+anna+"/links", "/v1/personas/"+bruno+"/links"
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "Bruno is Anna's father", As: owner, Method: "POST", Path: from, Body: relation(bruno, "parent"), Status: 201},
		{Name: "the inverse relation exists", As: owner, Method: "POST", Path: to, Body: relation(anna, "child"), Status: 409},
		{Name: "another relation is allowed", As: owner, Method: "POST", Path: from, Body: relation(bruno, "guardian"), Status: 201},
		{Name: "and the same relation in the other direction", As: owner, Method: "POST", Path: to, Body: relation(anna, "guardian"), Status: 201},
	})
}

func TestLink_RejectsInvalidLinks(t *testing.T) {
	s := servertest.Start(t)
	owner := s.User(access.Customer)
	mine, foreign := newPersona(owner), newPersona(s.Admin())
	path := "/v1/personas/" + mine + "/links"
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "an empty body", As: owner, Method: "POST", Path: path, Body: map[string]any{}, Status: 400, Contains: []string{`"linked_persona_id"`, `"relation"`}},
		{Name: "an unknown relation", As: owner, Method: "POST", Path: path, Body: relation(mine, "friend"), Status: 400, Contains: []string{`"relation"`, `"linked_persona_id"`, "authorised_signatory"}},
		{Name: "to itself, in capitals", As: owner, Method: "POST", Path: path, Body: relation(strings.ToUpper(mine), "other"), Status: 400, Contains: []string{"cannot be linked to itself"}},
		{Name: "to a malformed id", As: owner, Method: "POST", Path: path, Body: relation("12", "other"), Status: 400},
		{Name: "to an unknown persona", As: owner, Method: "POST", Path: path, Body: relation(store.NewID(), "other"), Status: 404, Contains: []string{`"personas.persona_not_found"`}},
		{Name: "to a persona that the caller may not read", As: owner, Method: "POST", Path: path, Body: relation(foreign, "other"), Status: 403},
		{Name: "no link exists", As: owner, Method: "GET", Path: path, Status: 200, Contains: []string{`"data":[]`, `"total":0`}},
		{Name: "an unknown link", As: owner, Method: "DELETE", Path: path + "/" + store.NewID(), Status: 404},
	})
}

func TestLink_CreatesOneOfManyParallelLinks(t *testing.T) {
	s := servertest.Start(t)
	owner := s.User(access.Customer)
	anna, bruno := newPersona(owner), newPersona(owner)
	var made, rejected atomic.Int64
	var wait sync.WaitGroup
	for i := range 16 {
		from, to := anna, bruno
		if i%2 == 1 {
			from, to = bruno, anna
		}
		wait.Go(func() {
			switch answer := owner.Do("POST", "/v1/personas/"+from+"/links", relation(to, "spouse")); answer.Status {
			case http.StatusCreated:
				made.Add(1)
			case http.StatusConflict:
				rejected.Add(1)
			default:
				t.Errorf("got %d %s", answer.Status, answer.Body)
			}
		})
	}
	wait.Wait()
	if made.Load() != 1 || rejected.Load() != 15 {
		t.Errorf("%d links were made and %d rejected, want 1 and 15", made.Load(), rejected.Load())
	}
}

func TestUsers_ReadThePersonaWhileLinked(t *testing.T) {
	s := servertest.Start(t)
	owner, user := s.User(access.Customer), s.User(access.Customer)
	id := newPersona(owner)
	path := "/v1/personas/" + id + "/users"
	body := map[string]any{"user_id": strings.ToUpper(user.UserID)}
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "no persona before the link", As: user, Method: "GET", Path: "/v1/personas", Status: 200, Contains: []string{`"total":0`}},
		{Name: "no user", As: owner, Method: "POST", Path: path, Body: map[string]any{}, Status: 400, Contains: []string{`"user_id"`}},
		{Name: "an unknown user", As: owner, Method: "POST", Path: path, Body: map[string]any{"user_id": store.NewID()}, Status: 404,
			Contains: []string{`"users.user_not_found"`}},
		{Name: "the user is linked", As: owner.With("Idempotency-Key", "k"), Method: "POST", Path: path, Body: body, Status: 201,
			Contains: []string{`"user_id":"` + user.UserID, `"persona_id":"` + id, `"created_by":"` + owner.UserID}},
		{Name: "a repeated request is replayed", As: owner.With("Idempotency-Key", "k"), Method: "POST", Path: path, Body: body, Status: 201},
		{Name: "a second link exists", As: owner, Method: "POST", Path: path, Body: body, Status: 409, Contains: []string{`"personas.user_link_exists"`}},
		{Name: "a pending link has no effect", As: user, Method: "GET", Path: "/v1/personas", Status: 200, Contains: []string{`"total":0`}},
		{Name: "the user accepts it", As: user, Method: "POST", Path: path + "/" + user.UserID + "/accept", Status: 200, Contains: []string{`"status":"active"`}},
		{Name: "the user lists the persona", As: user, Method: "GET", Path: "/v1/personas", Status: 200, Contains: []string{id, `"total":1`}},
		{Name: "and its users", As: user, Method: "GET", Path: path + "?search.user_id=" + user.UserID, Status: 200, Contains: []string{user.UserID, `"total":1,"total_unfiltered":1`}},
		{Name: "but may not remove the link", As: user, Method: "DELETE", Path: path + "/" + user.UserID, Status: 403},
		{Name: "the owner removes the link", As: owner, Method: "DELETE", Path: path + "/" + user.UserID, Status: 200, Contains: []string{`"message"`}},
		{Name: "only once", As: owner, Method: "DELETE", Path: path + "/" + user.UserID, Status: 404, Contains: []string{`"personas.user_link_not_found"`}},
		{Name: "the user may not read the persona", As: user, Method: "GET", Path: "/v1/personas/" + id, Status: 403},
		{Name: "nor list it", As: user, Method: "GET", Path: "/v1/personas", Status: 200, Contains: []string{`"total":0`}},
	})
}

func TestUsers_CannotVerifyThemselvesAsCustomers(t *testing.T) {
	s := servertest.Start(t)
	advisor := s.User(access.Advisor)
	persona := newPersona(s.Admin())
	s.Admin().Do("POST", "/v1/personas/"+persona+"/users", map[string]any{"user_id": advisor.UserID}).Expect(t, http.StatusCreated)
	customer := s.Admin().Create("/v1/customers", map[string]any{"first_name": "ADA", "last_name": "muster", "date_of_birth": "1990-02-28",
		"email": "ada@example.ch"})
	path, decision := "/v1/customers/"+customer+"/kyc/status", map[string]any{"kyc_status": "pending"}
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "the customer may not decide", As: advisor, Method: "PATCH", Path: path, Body: decision, Status: 403, Contains: []string{`"customers.self_verification"`}},
		{Name: "another advisor may", As: s.User(access.Advisor), Method: "PATCH", Path: path, Body: decision, Status: 200},
	})
}
