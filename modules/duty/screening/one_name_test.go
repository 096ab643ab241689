package screening_test

import (
	"net/http"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
)

// A person with one name has a dash as first name, of whatever kind, and is compared by the other name.
func TestHits_OfOneName(t *testing.T) {
	s := servertest.Start(t)
	admin, advisor := s.Admin(), s.User(access.Advisor)
	load(t, admin, "Sample", sample+line("S1", "Person", "SUHARTO", "", "")+line("S2", "Person", "FNU Mononimo", "", "")).Expect(t, http.StatusCreated)
	for first, last := range map[string]string{"-": "Suharto", "\u2013": "Mononimo", "FNU": "Suharto"} {
		id := admin.Create("/v1/customers", object{"first_name": first, "last_name": last, "email": "s@example.ch"})
		rescreen(t, s)
		found := hits(t, advisor, "?search.subject_id="+id)
		if len(found) != 1 || found[0].Score < 0.8 || first != "FNU" && found[0].SubjectName != last {
			t.Errorf("%s %s: %+v", first, last, found)
		}
		if got := admin.Do("GET", "/v1/customers/"+id, nil).JSON(t)["first_name"]; first != "FNU" && got != "-" {
			t.Errorf("the first name is %q", got)
		}
	}
	persona := admin.Do("POST", "/v1/personas", object{"first_name": "\u2014", "last_name": "Suharto", "date_of_birth": "1970-03-03"}).Expect(t, http.StatusCreated).JSON(t)
	if persona["first_name"] != "-" {
		t.Errorf("the persona: %v", persona)
	}
	admin.Do("POST", "/v1/customers", object{"first_name": "", "last_name": "Suharto", "email": "s@example.ch"}).Expect(t, http.StatusBadRequest)
}
