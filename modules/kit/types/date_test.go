package types_test

import (
	"encoding/json"
	"testing"
	"time"

	"kontor/modules/kit/types"
)

func TestParseDate(t *testing.T) {
	for in, ok := range map[string]bool{
		"2026-01-31": true, "2024-02-29": true, "0001-01-01": true, "9999-12-31": true,
		"2025-02-29": false, "2025-02-30": false, "2025-13-01": false, "2025-00-10": false, "0000-01-01": false,
		"2025-1-1": false, "": false, "20250101": false, "2025-01-01T00:00:00Z": false, " 2025-01-01": false,
		"-025-01-01": false, "2025-01-0１": false, "10000-01-01": false,
	} {
		d, err := types.ParseDate(in)
		if (err == nil) != ok {
			t.Errorf("ParseDate(%q) = %v, %v; want ok %v", in, d, err, ok)
		}
		if ok && d.String() != in {
			t.Errorf("ParseDate(%q).String() = %q", in, d)
		}
	}
}

func TestDate_JSON(t *testing.T) {
	var got struct{ A, B, C types.Date }
	if err := json.Unmarshal([]byte(`{"A":"2026-01-31","B":null}`), &got); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(got)
	if want := `{"A":"2026-01-31","B":null,"C":null}`; err != nil || string(out) != want {
		t.Errorf("got %s, %v; want %s", out, err, want)
	}
	for _, in := range []string{`""`, `"2025-02-30"`, `5`, `{}`, `"2025-01-01 "`, `true`} {
		var d types.Date
		if err := json.Unmarshal([]byte(in), &d); err == nil {
			t.Errorf("%s was parsed as %v", in, d)
		}
	}
}

func TestDate_Order(t *testing.T) {
	early, _ := types.ParseDate("2024-02-28")
	late, _ := types.ParseDate("2024-03-01")
	if !early.Before(late) || !late.After(early) || early.Compare(early) != 0 {
		t.Errorf("%v and %v are in the wrong order", early, late)
	}
	if got := early.AddDays(2); got != late {
		t.Errorf("two days after %v is %v, want %v", early, got, late)
	}
	zone := time.FixedZone("east", 5*3600)
	if got := types.DateOf(time.Date(2024, 2, 28, 23, 0, 0, 0, time.UTC).In(zone)).String(); got != "2024-02-29" {
		t.Errorf("the day in the zone is %s", got)
	}
	if got := types.DateOf(time.Date(12000, 1, 1, 0, 0, 0, 0, time.UTC)); !got.IsZero() {
		t.Errorf("the year 12000 gave %v", got)
	}
}

func TestDate_Stored(t *testing.T) {
	d, _ := types.ParseDate("2026-01-31")
	stored, err := d.Value()
	if stored != "2026-01-31" || err != nil {
		t.Errorf("stored as %v, %v", stored, err)
	}
	var back types.Date
	if err := back.Scan(stored); err != nil || back != d {
		t.Errorf("read back as %v, %v", back, err)
	}
	if stored, _ := (types.Date{}).Value(); stored != nil {
		t.Errorf("the zero date is stored as %v", stored)
	}
	if err := back.Scan(nil); err != nil || !back.IsZero() {
		t.Errorf("NULL read as %v, %v", back, err)
	}
	if err := back.Scan([]byte("2026-02-31")); err == nil {
		t.Error("a wrong date was read from the database")
	}
	if err := back.Scan(int64(5)); err == nil {
		t.Error("a number was read as a date")
	}
}

func FuzzParseDate(f *testing.F) {
	f.Add("2026-01-31")
	f.Add("2025-02-29")
	f.Fuzz(func(t *testing.T, in string) {
		d, err := types.ParseDate(in)
		if err == nil && d.String() != in {
			t.Errorf("ParseDate(%q).String() = %q", in, d)
		}
		var viaJSON types.Date
		if quoted, _ := json.Marshal(in); json.Unmarshal(quoted, &viaJSON) == nil && viaJSON != d {
			t.Errorf("%q: JSON gives %v, ParseDate %v", in, viaJSON, d)
		}
	})
}
