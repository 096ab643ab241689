package sandbox_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"kontor/modules/sandbox"
)

// enter takes a slot, which must be there.
func enter(t *testing.T, q *sandbox.Queue, caller string) (leave func()) {
	t.Helper()
	leave, err := q.Enter(t.Context(), caller)
	if err != nil {
		t.Fatalf("%s: %v", caller, err)
	}
	return leave
}

func TestQueue_LeavesASlotForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := sandbox.NewQueue(3, time.Second)
		first, second := enter(t, q, "greedy"), enter(t, q, "greedy")
		if _, err := q.Enter(t.Context(), "greedy"); !errors.Is(err, sandbox.ErrBusy) {
			t.Errorf("a third slot of three: got %v", err)
		}
		other := enter(t, q, "modest")
		first()
		first() // a second time does nothing
		enter(t, q, "greedy")()
		second()
		other()
		for range 3 {
			defer enter(t, q, "")() // a command has no name and no bound
		}
	})
}

func TestQueue_ServesWhoHoldsTheFewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := sandbox.NewQueue(3, time.Hour)
		held := []func(){enter(t, q, "a"), enter(t, q, "b"), enter(t, q, "b")}
		served := make(chan string, 3)
		for _, caller := range []string{"a", "a", "c"} {
			go func() {
				enter(t, q, caller)
				served <- caller
			}()
			synctest.Wait()
		}
		for i, want := range []string{"c", "a"} {
			held[2-i]()
			synctest.Wait()
			if got := <-served; got != want {
				t.Errorf("turn %d: %s was served before %s", i, got, want)
			}
		}
		held[0]()
		if got := <-served; got != "a" {
			t.Errorf("last: got %s", got)
		}
	})
}

func TestQueue_IsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := sandbox.NewQueue(1, time.Minute)
		leave := enter(t, q, "holder")
		results := make(chan error, 100)
		try := func(caller string, times int) {
			for range times {
				go func() {
					_, err := q.Enter(t.Context(), caller)
					results <- err
				}()
				synctest.Wait()
			}
		}
		try("greedy", 10)
		if refused := len(results); refused != 6 {
			t.Errorf("%d of 10 files of one caller were refused, want 6", refused)
		}
		for _, caller := range []string{"b", "c", "d", "e"} {
			try(caller, 4)
		}
		if refused := len(results); refused != 6+4 {
			t.Errorf("%d files were refused, want 10", refused)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if refused := len(results); refused != 26 {
			t.Errorf("after the longest wait %d files were refused, want all 26", refused)
		}
		for range 26 {
			if err := <-results; !errors.Is(err, sandbox.ErrBusy) {
				t.Errorf("got %v", err)
			}
		}
		leave()
		enter(t, q, "greedy")()
	})
}

func TestQueue_EndsWithItsContext(t *testing.T) {
	q := sandbox.NewQueue(1, time.Hour)
	leave := enter(t, q, "a")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := q.Enter(ctx, "b"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	leave()
	enter(t, q, "b")()
}
