package factors_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"kontor/server/servertest"
)

func TestConfirm_HasFiveAttemptsAndTenMinutes(t *testing.T) {
	b := startBank(t)
	anna := b.person()
	e := anna.begin("totp")
	anna.secret = e.TOTP.Secret
	for range 5 {
		anna.Do("POST", anna.path("/"+e.ID+"/confirm"), servertest.Body{"code": "abcdef"}).ExpectError(t, 400, "common.invalid_input")
	}
	anna.Do("POST", anna.path("/"+e.ID+"/confirm"), servertest.Body{"code": anna.code(0)}).ExpectError(t, 409, "factors.enrolment_over")

	e = anna.begin("totp") // replaces the first one
	anna.secret = e.TOTP.Secret
	b.Clock.Advance(9 * time.Minute)
	anna.Do("POST", "/v1/users/"+anna.UserID+"/reauthenticate", servertest.Body{"password": password}).Expect(t, 200)
	if n := anna.count(""); n != 1 {
		t.Errorf("%d factors, want the pending one", n)
	}
	b.Clock.Advance(2 * time.Minute)
	anna.Do("POST", anna.path("/"+e.ID+"/confirm"), servertest.Body{"code": anna.code(0)}).ExpectError(t, 409, "factors.enrolment_over")
	if n := anna.count(""); n != 0 {
		t.Errorf("%d factors, want none: the enrolment has expired", n)
	}
	if err := b.Factors.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	anna.Do("POST", anna.path("/"+e.ID+"/confirm"), servertest.Body{"code": anna.code(0)}).ExpectError(t, 404, "factors.factor_not_found")
}

// Of many attempts at the same time, five are evaluated.
func TestConfirm_ParallelAttemptsAreCounted(t *testing.T) {
	b := startBank(t)
	anna := b.person()
	e := anna.begin("totp")
	const parallel = 30
	statuses := make([]int, parallel)
	var group sync.WaitGroup
	for i := range statuses {
		group.Go(func() {
			r, err := anna.Try("POST", anna.path("/"+e.ID+"/confirm"), servertest.Body{"code": "abcdef"})
			if err == nil {
				statuses[i] = r.Status
			}
		})
	}
	group.Wait()
	slices.Sort(statuses)
	if evaluated := slices.Index(statuses, 409); evaluated != 5 || statuses[parallel-1] != 409 {
		t.Errorf("%d attempts were evaluated, want 5: %v", evaluated, statuses)
	}
}
