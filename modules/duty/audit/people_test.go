package audit_test

import (
	"net/http"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/store"
)

func TestEntries_NameActorsAndUsers(t *testing.T) {
	s := servertest.Start(t)
	s.SkipRecordCheck() // an entry is about a record that does not exist
	admin, advisor := s.Admin(), s.User(access.Advisor).Named(t, "Anton Advisor")
	customer := advisor.Create("/v1/customers", map[string]any{"first_name": "Vreni", "last_name": "Muster", "email": "v@example.ch"})
	unknown, record := store.NewID(), store.NewID()
	writeEntries(t, s.DB, store.AuditEntry{Actor: unknown, Action: "test.create", RecType: "roles", RecID: record, After: "created"})

	before := find(t, s, "search.rec_id="+customer)
	people := admin.Do("GET", "/v1/audit?search.rec_id="+customer, nil).Expect(t, http.StatusOK).People(t)
	if got := people[advisor.UserID]; got.DisplayName != "Anton Advisor" || got.UserName == "" || !got.Staff {
		t.Errorf("the actor is %+v", got)
	}
	people = admin.Do("GET", "/v1/audit?search.actor="+store.NilID+"&search.rec_id="+advisor.UserID, nil).Expect(t, http.StatusOK).People(t)
	if got := people[advisor.UserID]; got.DisplayName != "Anton Advisor" {
		t.Errorf("the user whom the entries are about is %+v", got)
	}
	answer := admin.Do("GET", "/v1/audit?search.rec_id="+record, nil).Expect(t, http.StatusOK)
	if _, known := answer.People(t)[unknown]; known || answer.JSON(t)["total"] != 1.0 {
		t.Errorf("an entry of an unknown actor: %s", answer.Body)
	}

	advisor.Named(t, "Berta Beraterin")
	if after := find(t, s, "search.rec_id="+customer); after.Data[0] != before.Data[0] {
		t.Errorf("the entry was %+v and is %+v", before.Data[0], after.Data[0])
	}
	if _, err := s.DB.VerifyAudit(t.Context()); err != nil {
		t.Errorf("after a rename: %v", err)
	}
}
