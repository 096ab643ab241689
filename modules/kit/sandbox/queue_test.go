package sandbox_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"kontor/modules/kit/sandbox"
)

// acquire acquires a slot, and fails the test without one.
func acquire(t *testing.T, q *sandbox.Queue, caller string) (release func()) {
	t.Helper()
	release, err := q.Acquire(t.Context(), caller, 1)
	if err != nil {
		t.Fatalf("%s: %v", caller, err)
	}
	return release
}

func TestQueue_LeavesASlotForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := sandbox.NewQueue(3, time.Second, 1)
		first, second := acquire(t, q, "greedy"), acquire(t, q, "greedy")
		if _, err := q.Acquire(t.Context(), "greedy", 1); !errors.Is(err, sandbox.ErrBusy) {
			t.Errorf("a third slot of three: got %v", err)
		}
		other := acquire(t, q, "modest")
		first()
		first() // the second call does nothing
		acquire(t, q, "greedy")()
		second()
		other()
		for range 3 {
			defer acquire(t, q, "")() // a caller without a name is exempt
		}
	})
}

func TestQueue_ServesTheCallerWithTheFewestSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := sandbox.NewQueue(3, time.Hour, 1)
		held := []func(){acquire(t, q, "a"), acquire(t, q, "b"), acquire(t, q, "b")}
		served := make(chan string, 3)
		for _, caller := range []string{"a", "a", "c"} {
			go func() {
				acquire(t, q, caller)
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

func TestQueue_LimitsWaitingFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := sandbox.NewQueue(1, time.Minute, 1)
		release := acquire(t, q, "holder")
		results := make(chan error, 100)
		try := func(caller string, times int) {
			for range times {
				go func() {
					_, err := q.Acquire(t.Context(), caller, 1)
					results <- err
				}()
				synctest.Wait()
			}
		}
		try("greedy", 10)
		if rejected := len(results); rejected != 6 {
			t.Errorf("%d of 10 files of one caller were rejected, want 6", rejected)
		}
		for _, caller := range []string{"b", "c", "d", "e"} {
			try(caller, 4)
		}
		if rejected := len(results); rejected != 6+4 {
			t.Errorf("%d files were rejected, want 10", rejected)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if rejected := len(results); rejected != 26 {
			t.Errorf("after the longest wait %d files were rejected, want all 26", rejected)
		}
		for range 26 {
			if err := <-results; !errors.Is(err, sandbox.ErrBusy) {
				t.Errorf("got %v", err)
			}
		}
		release()
		acquire(t, q, "greedy")()
	})
}

// Small files wait in larger numbers, as long as they have no more bytes together than the largest ones.
func TestQueue_LimitsTheBytesThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const largest = 1000
		q := sandbox.NewQueue(1, time.Minute, largest)
		release := acquire(t, q, "holder")
		results := make(chan error, 2000)
		rejected := func(caller string, files, bytes int) int {
			t.Helper()
			before := len(results)
			for range files {
				go func() {
					_, err := q.Acquire(t.Context(), caller, bytes)
					results <- err
				}()
			}
			synctest.Wait()
			return len(results) - before
		}
		if n := rejected("greedy", 5, largest); n != 1 {
			t.Errorf("%d of 5 files of the largest size were rejected, want 1", n)
		}
		if n := rejected("greedy", 1, 1); n != 1 {
			t.Error("a caller got more bytes than its share")
		}
		if n := rejected("small", 300, 1); n != 300-256 {
			t.Errorf("%d of 300 small files of one caller were rejected, want 44", n)
		}
		if n := rejected("large", 9, 2*largest); n != 5 { // more than the largest counts as the largest
			t.Errorf("%d of 9 files were rejected, want 5", n)
		}
		for _, caller := range []string{"c", "d", "e"} {
			rejected(caller, 4, largest)
		}
		if n := rejected("late", 1, largest); n != 1 {
			t.Error("more bytes wait than there may be")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		release()
		acquire(t, q, "late")()
	})
}

func TestQueue_StopsWaitingWhenTheContextEnds(t *testing.T) {
	q := sandbox.NewQueue(1, time.Hour, 1)
	release := acquire(t, q, "a")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := q.Acquire(ctx, "b", 1); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	release()
	acquire(t, q, "b")()
}
