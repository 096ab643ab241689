package playground

import (
	"testing"
	"time"
)

func TestParseDuration(t *testing.T) {
	start := time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"P400D": "2025-04-04T12:00:00Z", "P1Y": "2025-03-01T12:00:00Z", "P1M": "2024-03-29T12:00:00Z", "P2W": "2024-03-14T12:00:00Z",
		"PT36H": "2024-03-02T00:00:00Z", "PT90M": "2024-02-29T13:30:00Z", "P1Y2M3W4DT5H6M7S": "2025-05-24T17:06:07Z", "P0D": "2024-02-29T12:00:00Z",
	} {
		d, err := parseDuration(text)
		if got := d.after(start).Format(time.RFC3339); err != nil || got != want {
			t.Errorf("%s: %s, err %v; want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "P", "PT", "P1", "1D", "-P1D", "P-1D", "+P1D", "P1.5D", "P1DT", "P1S", "PT1D", "P1D1Y", "P1D1D", "p1d", " P1D", "P1D ", "PD", "400d",
		"P99999999999999999999D", "P10000001D", "P1H", "P１D"} {
		if d, err := parseDuration(text); err == nil {
			t.Errorf("%q became %+v", text, d)
		}
	}
}

func FuzzParseDuration(f *testing.F) {
	f.Add("P1Y2M3W4DT5H6M7S")
	f.Add("PT")
	f.Fuzz(func(t *testing.T, text string) {
		d, err := parseDuration(text)
		if err == nil && (d.years < 0 || d.months < 0 || d.days < 0 || d.seconds < 0) {
			t.Errorf("%q is negative: %+v", text, d)
		}
	})
}
