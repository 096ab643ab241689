package shares_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"kontor/server/shares"
)

// fill takes places for callers in turn until none of them gets another one, and returns what each has.
func fill(p *shares.Pool, staff bool, callers int) map[string]int {
	got := map[string]int{}
	for more := true; more; {
		more = false
		for i := range callers {
			caller := fmt.Sprint(staff, i)
			if _, ok := p.Take(caller, staff); ok {
				got[caller]++
				more = true
			}
		}
	}
	return got
}

func TestPool_NoFewCallersTakeAll(t *testing.T) {
	for callers, want := range map[int]int{1: 24, 2: 16, 3: 12} {
		p := shares.New(64, 16)
		for caller, n := range fill(p, false, callers) {
			if n != want {
				t.Errorf("%d callers: %s got %d, want %d", callers, caller, n, want)
			}
		}
		if _, ok := p.Take("another", false); !ok {
			t.Errorf("%d callers leave nothing for another", callers)
		}
	}
}

func TestPool_KeepsAPartForStaff(t *testing.T) {
	p := shares.New(64, 16)
	taken := 0
	for _, n := range fill(p, false, 1000) {
		taken += n
	}
	if taken != 48 {
		t.Errorf("others took %d of 48", taken)
	}
	if got := fill(p, true, 1); got["true 0"] != 8 {
		t.Errorf("a member of the staff got %v of the 16 that are left, want 8", got)
	}
}

func TestPool_CountsWhatIsReleased(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := shares.New(1000, 250)
		held := map[string]*shares.Share{}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			caller := rapid.SampledFrom([]string{"a", "b", "c", "staff"}).Draw(t, "caller")
			if held[caller] == nil {
				s := p.Of(caller, caller == "staff")
				held[caller] = &s
			}
			if rapid.Bool().Draw(t, "release") {
				held[caller].Release()
				held[caller].Release()
			} else {
				held[caller].Grow(rapid.Int64Range(1, 400).Draw(t, "more"))
			}
		}
		for _, s := range held {
			s.Release()
		}
		s := p.Of("one", false)
		if !s.Grow(750) || s.Grow(1) {
			t.Fatal("an empty pool has 750 for a caller")
		}
	})
}
