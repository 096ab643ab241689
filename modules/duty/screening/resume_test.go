package screening_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"kontor/modules/duty/screening"
	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/store"
)

// cutOff is a context that ends after a number of questions whether it has.
type cutOff struct {
	context.Context

	left int
}

func (c *cutOff) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return c.Context.Err()
}

// position returns how far the pass over all records has come.
func position(t testing.TB, db *store.DB) (source, id string) {
	t.Helper()
	if err := db.QueryRow(t.Context(), "SELECT COALESCE(MAX(source), ''), COALESCE(MAX(position), '') FROM screening_progress").Scan(&source, &id); err != nil {
		t.Fatal(err)
	}
	return source, id
}

// A comparison of all records that was cut off continues where it stopped, with a new process: what was compared is not compared again,
// the rest is, and no record has two hits.
func TestRescreen_ContinuesAfterAnInterruption(t *testing.T) {
	s := servertest.Start(t)
	s.SkipRecordCheck() // it deletes a hit by SQL
	admin, advisor := s.Admin(), s.User(access.Advisor)
	const first, others, last = 3, 500, 3
	create := func(n int, family string) (ids []string) {
		for i := range n {
			ids = append(ids, admin.Create("/v1/customers", object{"first_name": "Viktor", "last_name": family, "email": fmt.Sprintf("%s%d@example.ch", family, i)}))
		}
		return ids
	}
	early := create(first, "Beispielow")
	create(others, "Unbeteiligt")
	create(last, "Beispielow")
	load(t, admin, "Sample", people).Expect(t, http.StatusCreated)
	source, at := "", ""
	for questions := 1; at == ""; questions++ {
		job := screening.New(s.DB, s.Screening.Options)
		if err := job.Rescreen(&cutOff{t.Context(), questions}); err != nil && !strings.Contains(err.Error(), context.Canceled.Error()) {
			t.Fatal(err)
		}
		job.Close()
		source, at = position(t, s.DB)
		if len(hits(t, advisor, "")) > first {
			t.Fatal("the comparison was not cut off")
		}
	}
	if found := hits(t, advisor, ""); source != "customer" || len(found) != first {
		t.Fatalf("after the interruption the pass is at %q, with %d hits, want %d", source, len(found), first)
	}
	servertest.Exec(t, s.DB, "DELETE FROM screening_hit_changes WHERE hit_id IN (SELECT id FROM screening_hits WHERE subject_id = $1)", early[0])
	servertest.Exec(t, s.DB, "DELETE FROM screening_hits WHERE subject_id = $1", early[0])
	again := screening.New(s.DB, s.Screening.Options)
	defer again.Close()
	if err := again.Rescreen(t.Context()); err != nil {
		t.Fatal(err)
	}
	if source, at := position(t, s.DB); source != "" || at != "" {
		t.Errorf("the pass has not ended: %s %s", source, at)
	}
	subjects := map[string]bool{}
	for _, h := range hits(t, advisor, "?limit=100") {
		if subjects[h.SubjectID] || h.Version != 1 || len(one(t, advisor, h.ID).History) != 1 {
			t.Errorf("compared twice: %+v", h)
		}
		subjects[h.SubjectID] = true
	}
	if len(subjects) != first+last-1 || subjects[early[0]] {
		t.Errorf("got hits of %d records, want %d without the first one, which was compared before", len(subjects), first+last-1)
	}
}

// One node compares, and the others follow: a hit blocks on each of them at once, also on one that has not read the newest lists yet.
// Comparisons with an index of former lists would close hits of newer ones.
func TestNodes_HitsBlockOnEveryNode(t *testing.T) {
	s := servertest.StartShared(t)
	other := servertest.IsolatedNode(t, s, false)
	load(t, s.Admin(), "Other", sample+line("X1", "Person", "Somebody Else", "", "")).Expect(t, http.StatusCreated)
	there := other.User(access.Advisor)
	check(t, there, object{"name": "Somebody Else"}) // it has an index
	kyc := inReview(t, there, there.Create("/v1/customers", viktor()))
	rescreen(t, s)
	load(t, s.Admin(), "Sample", people).Expect(t, http.StatusCreated)
	rescreen(t, s)
	verify := object{"kyc_status": "verified"}
	there.Do("PATCH", kyc+"/status", verify).ExpectError(t, http.StatusConflict, "customers.screening_open")
	hit := open(t, there)
	there.Do("POST", hitsPath+"/"+hit.ID+"/decide", decision("dismissed")).Expect(t, http.StatusOK)
	s.User(access.Advisor).Do("POST", hitsPath+"/"+hit.ID+"/decide", decision("open")).Expect(t, http.StatusOK)
	there.Do("PATCH", kyc+"/status", verify).ExpectError(t, http.StatusConflict, "customers.screening_open")
	for range 3 { // both nodes compare, and nothing changes
		rescreen(t, other)
		rescreen(t, s)
	}
	if h := open(t, there); h.ID != hit.ID || h.Version != 3 {
		t.Errorf("got %+v, want the hit as it was", h)
	}
}
