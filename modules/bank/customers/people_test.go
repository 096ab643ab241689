package customers_test

import (
	"net/http"
	"strings"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/store"
)

func TestHistory_NamesItsActors(t *testing.T) {
	s := servertest.Start(t)
	owner := s.User(access.Customer).Named(t, "Olivia Owner")
	advisor := s.User(access.Advisor).Named(t, "Anton Advisor")
	path := verified(t, owner, advisor, person()) + "/kyc"
	for name, c := range map[string]struct {
		as    *servertest.Client
		staff bool
	}{"staff": {advisor, true}, "the owner": {owner, false}} {
		people := c.as.Do("GET", path, nil).Expect(t, http.StatusOK).People(t)
		if got := people[advisor.UserID]; got.DisplayName != "Anton Advisor" || !got.Staff || (got.UserName != "") != c.staff {
			t.Errorf("%s reads about the reviewer: %+v", name, got)
		}
		if c.staff {
			continue
		}
		advisor.Do("PATCH", path+"/status", decide("expired")).Expect(t, http.StatusOK)
		owner.Do("PUT", path, passport("P-2")).Expect(t, http.StatusOK) // the owner acts, too
		if got := owner.Do("GET", path, nil).People(t)[owner.UserID]; got.DisplayName != "Olivia Owner" || got.Staff || got.UserName != "" {
			t.Errorf("the owner reads about the owner: %+v", got)
		}
	}
}

// A new name changes neither the ETag nor the digests of the audit trail, which the end of the test compares.
func TestHistory_KeepsItsETagWhenAUserIsRenamed(t *testing.T) {
	s := servertest.Start(t)
	owner, advisor := s.User(access.Customer), s.User(access.Advisor).Named(t, "Anton Advisor")
	path := verified(t, owner, advisor, person()) + "/kyc"
	before := owner.Do("GET", path, nil).Expect(t, http.StatusOK)
	advisor.Named(t, "Berta Beraterin")
	after := owner.Do("GET", path, nil).Expect(t, http.StatusOK)
	if tag := after.Header.Get("ETag"); tag == "" || tag != before.Header.Get("ETag") {
		t.Errorf("the ETag was %q and is %q", before.Header.Get("ETag"), tag)
	}
	if got := after.People(t)[advisor.UserID].DisplayName; got != "Berta Beraterin" {
		t.Errorf("the name is %q", got)
	}
	owner.With("If-None-Match", before.Header.Get("ETag")).Do("GET", path, nil).Expect(t, http.StatusNotModified)
}

func TestHistory_ShowsUnknownActorsWithoutName(t *testing.T) {
	s := servertest.Start(t)
	s.SkipRecordCheck()
	owner, advisor := s.User(access.Customer), s.User(access.Advisor)
	path := verified(t, owner, advisor, person())
	unknown := store.NewID()
	err := s.DB.InTx(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec(t.Context(), `UPDATE kyc_changes SET changed_by = $1`, unknown)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	got := owner.Do("GET", path+"/kyc", nil).Expect(t, http.StatusOK)
	if _, known := got.People(t)[unknown]; known || !strings.Contains(got.Body, `"changed_by":"`+unknown+`"`) {
		t.Errorf("got %s", got.Body)
	}
}
