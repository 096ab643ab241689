package names_test

import (
	"compress/gzip"
	"encoding/csv"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kontor/modules/kit/names"
)

// measured counts what a threshold finds and misses.
type measured struct{ found, alarms, missed float64 }

func (m measured) precision() float64 { return m.found / max(1, m.found+m.alarms) }
func (m measured) recall() float64    { return m.found / max(1, m.found+m.missed) }
func (m measured) f1() float64        { return 2 * m.found / max(1, 2*m.found+m.alarms+m.missed) }

func (m *measured) count(got, want bool) {
	switch {
	case got && want:
		m.found++
	case got:
		m.alarms++
	case want:
		m.missed++
	}
}

// measurePairs compares the labelled pairs. strong are the failures among the rows of which the authors are sure.
func measurePairs(t testing.TB, threshold float64) (all, people measured, strong []string) {
	t.Helper()
	for _, r := range readRows(t, "pairs.csv") {
		kind := map[string]names.Kind{"Person": names.Person, "Company": names.Organisation, "Organization": names.Organisation}[r[0]]
		score, _ := names.CompareTexts(r[1], r[2], kind, nil)
		got, want := score >= threshold, r[3] == "true"
		all.count(got, want)
		if kind == names.Person {
			people.count(got, want)
		}
		if got != want && r[4] == "STRONG" {
			strong = append(strong, r[1]+" | "+r[2])
		}
	}
	return all, people, strong
}

// unList returns an index of the listed names, and the rows.
func unList(t testing.TB) (*names.Index, [][]string) {
	t.Helper()
	rows := readRows(t, "un.csv")
	b := names.NewBuilder()
	for i, r := range rows {
		b.Add(i, r[0], names.Person)
	}
	return b.Build(), rows
}

// measureRecall returns the share of listed names that a search for a column finds: 0 as they are, 1 disturbed.
func measureRecall(x *names.Index, rows [][]string, column int) float64 {
	found := 0
	for _, r := range rows {
		for _, hit := range x.Search(r[column], names.Person, names.DefaultThreshold, nil) {
			if rows[hit.Entry][0] == r[0] {
				found++
				break
			}
		}
	}
	return float64(found) / float64(len(rows))
}

// measureAlerts returns the share of clean people who alert, of every nth one.
func measureAlerts(t testing.TB, x *names.Index, nth int) float64 {
	t.Helper()
	alerts, people := 0, 0
	for i, r := range readRows(t, "clean.csv.gz") {
		if i%nth != 0 {
			continue
		}
		people++
		if len(x.Search(r[0], names.Person, names.DefaultThreshold, nil)) > 0 {
			alerts++
		}
	}
	return float64(alerts) / float64(people)
}

// readRows returns the rows of a file in testdata, without its header.
func readRows(t testing.TB, name string) [][]string {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(name, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := csv.NewReader(r).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows[1:]
}

// TestQuality_ReachesTheAims holds the figures that docs/screening.md states.
func TestQuality_ReachesTheAims(t *testing.T) {
	all, people, strong := measurePairs(t, names.DefaultThreshold)
	if all.f1() <= 0.80 || people.f1() <= 0.76 {
		t.Errorf("F1 %.3f, of people %.3f", all.f1(), people.f1())
	}
	if len(strong) > 1 {
		t.Errorf("sure rows fail: %q", strong)
	}
	x, rows := unList(t)
	if found := measureRecall(x, rows, 0); found < 0.98 {
		t.Errorf("%.3f of the listed names are found", found)
	}
	if found := measureRecall(x, rows, 1); found < 0.95 {
		t.Errorf("%.3f of the disturbed names are found", found)
	}
	if alerts := measureAlerts(t, x, 10); alerts > 0.005 {
		t.Errorf("%.4f of clean people alert", alerts)
	}
}
