package server

import (
	"errors"
	"testing"
	"testing/quick"
	"time"
)

func TestNear(t *testing.T) {
	now := time.Now()
	in := func(d time.Duration) time.Time { return now.Add(d) }
	for name, c := range map[string]struct {
		present, asked time.Time
		want           bool
	}{
		"none of both":              {time.Time{}, time.Time{}, true},
		"none yet":                  {time.Time{}, in(time.Hour), false},
		"to be removed":             {in(time.Hour), time.Time{}, false},
		"the same":                  {in(time.Hour), in(time.Hour), true},
		"a little earlier":          {in(57 * time.Minute), in(time.Hour), true},
		"too early":                 {in(56 * time.Minute), in(time.Hour), false},
		"later":                     {in(time.Hour + 1), in(time.Hour), false},
		"much later":                {in(time.Minute), in(10 * time.Second), false},
		"passed":                    {in(-time.Second), in(time.Second), false},
		"passed, and one that has":  {in(-2 * time.Second), in(-time.Second), false},
		"in use, and one of 1970":   {in(time.Hour), time.Unix(1, 0), false},
		"of 1970, and one to come":  {time.Unix(1, 0), in(time.Hour), false},
		"without a monotonic clock": {in(time.Hour).Round(0), in(time.Hour).Round(0), true},
		"far away":                  {in(time.Hour), in(1 << 62), false},
	} {
		if got := near(c.present, c.asked); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}

func TestNear_IsNeverLaterAndHardlyEarlier(t *testing.T) {
	holds := func(present, asked int64) bool {
		const most = int64(10 * time.Minute)
		now := time.Now()
		p, a := now.Add(time.Duration(present%most)), now.Add(time.Duration(asked%most))
		if near(p, a) {
			return !p.After(a) && a.Sub(p) <= a.Sub(now)/16
		}
		return !p.Equal(a) || !a.After(now)
	}
	if err := quick.Check(holds, &quick.Config{MaxCount: 100_000}); err != nil {
		t.Error(err)
	}
	// A present deadline close to the one that is asked for is rare among random pairs.
	if err := quick.Check(func(asked uint32, early int16) bool {
		at := int64(asked) * 100
		return holds(at-int64(early)*at/(1<<18), at)
	}, &quick.Config{MaxCount: 100_000}); err != nil {
		t.Error(err)
	}
}

// The deadline in force is always the last one, or near to it.
func TestSetDeadline_KeepsOneThatIsNear(t *testing.T) {
	now := time.Now()
	if err := quick.Check(func(steps []int16) bool {
		var present, inForce time.Time
		set := func(at time.Time) error { inForce = at; return nil }
		for _, step := range steps {
			var asked time.Time
			if step%16 != 0 {
				asked = now.Add(time.Duration(step) * time.Second)
			}
			if setDeadline(&present, asked, set) != nil || inForce != present || asked != inForce && !near(inForce, asked) {
				return false
			}
		}
		return true
	}, &quick.Config{MaxCount: 10_000}); err != nil {
		t.Error(err)
	}
	failed := errors.New("closed")
	present := now
	if err := setDeadline(&present, now.Add(time.Hour), func(time.Time) error { return failed }); !errors.Is(err, failed) || present != now {
		t.Errorf("got %v, %v", err, present)
	}
}
