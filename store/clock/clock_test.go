package clock_test

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	jsonv2 "github.com/go-json-experiment/json"

	"kontor/store/clock"
)

func TestTime_JSON(t *testing.T) {
	at := clock.Of(time.Date(2026, 1, 31, 9, 15, 30, 123_900_000, time.FixedZone("", 3600)))
	data, err := json.Marshal(map[string]any{"at": at, "none": (*clock.Time)(nil)})
	if want := `{"at":"2026-01-31T08:15:30.123Z","none":null}`; err != nil || string(data) != want {
		t.Errorf("got %s, err %v; want %s", data, err, want)
	}
	for in, want := range map[string]clock.Time{
		`"2026-01-31T08:15:30.123Z"`:       at,
		`"2026-01-31T09:15:30.1239+01:00"`: at,
		`"1969-12-31T23:59:59.999Z"`:       -1,
		`null`:                             0,
	} {
		var got clock.Time
		if err := json.Unmarshal([]byte(in), &got); err != nil || got != want {
			t.Errorf("%s: got %v, err %v; want %v", in, got, err, want)
		}
	}
	for _, in := range []string{`""`, `"2026-01-31"`, `1`, `"2026-02-30T00:00:00Z"`, `{}`} {
		var got clock.Time
		if err := json.Unmarshal([]byte(in), &got); err == nil {
			t.Errorf("%s became %v", in, got)
		}
	}
}

// Both encoders write every moment like the layout of the standard library.
func TestTime_BothEncodersAgree(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	first, last := time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli(), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC).UnixMilli()
	for range 1000 {
		at := clock.Time(first + random.Int64N(last-first))
		want := `"` + at.Std().Format("2006-01-02T15:04:05.000Z") + `"`
		one, err := json.Marshal(at)
		if err != nil || string(one) != want {
			t.Fatalf("got %s, err %v; want %s", one, err, want)
		}
		if two, err := jsonv2.Marshal(at); err != nil || string(two) != want {
			t.Fatalf("got %s, err %v; want %s", two, err, want)
		}
	}
}

func FuzzParseTime(f *testing.F) {
	f.Add("2026-01-31T08:15:30.123Z")
	f.Add("9999-12-31T23:59:59.999999999-23:59")
	f.Fuzz(func(t *testing.T, s string) {
		at, err := clock.Parse(s)
		if err != nil {
			return
		}
		if year := at.Std().Year(); year < 0 || year > 9999 {
			return // an offset moved it out of the range of RFC 3339
		}
		if again, err := clock.Parse(at.String()); err != nil || again != at {
			t.Errorf("%q became %v, then %v, err %v", s, at, again, err)
		}
	})
}
