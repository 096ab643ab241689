package list_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"kontor/modules/kit/list"
)

// outline formats the groups of a page as key=rows, with their totals.
func outline(t *testing.T, p list.Page[thing]) string {
	var b strings.Builder
	text := encode(t, p.Data)
	for _, m := range regexp.MustCompile(`"([^"]*)":\[|"id":"[^"]*(.)"`).FindAllStringSubmatch(text, -1) {
		if m[2] == "" {
			b.WriteString(" " + m[1] + "=")
		} else {
			b.WriteString(m[2])
		}
	}
	b.WriteString(" |")
	if p.Metadata != nil {
		for _, total := range p.Metadata.GroupTotals {
			fmt.Fprintf(&b, " %s=%d", total.Key, total.Rows)
		}
	}
	return b.String()
}

func TestPage_Stack(t *testing.T) {
	db := open(t, sampleThings(t)...)
	for _, test := range []struct{ query, want string }{
		{"stack=active", " false=652 true=431 | false=3 true=3"},
		{"stack=-active", " true=431 false=652 | true=3 false=3"},
		{"stack=active[day]", " false=652 true=431 | false=3 true=3"},
		{"stack=status", " done=52 late=6 open=431 | done=2 late=1 open=3"},
		{"stack=-status&sort=created_at", " open=134 late=6 done=25 | open=3 late=1 done=2"},
		{"stack=status&limit=2", " done=5 late=6 | done=2 late=1 open=3"},
		{"stack=status&limit=2&offset=2&search.active=true,false", " open=43 | done=2 late=1 open=3"},
		{"stack=status&search.active=true", " open=431 | open=3"},
		{"stack=status&offset=50", " | done=2 late=1 open=3"},
		{"stack=size", " null=63 -3=2 5=41 100=5 | null=2 -3=1 5=2 100=1"},
		{"stack=-size", " 100=5 5=41 -3=2 null=63 | 100=1 5=2 -3=1 null=2"},
		{"stack=born", " null=543 1980-02-28=6 1980-02-29=1 1990-01-01=2 | null=3 1980-02-28=1 1980-02-29=1 1990-01-01=1"},
		{"stack=created_at", " 2025-12-31=1 2026-01-01=2 2026-01-31=43 2026-02-01=65 | 2025-12-31=1 2026-01-01=1 2026-01-31=2 2026-02-01=2"},
		{"stack=-created_at[month]", " 2026-02=65 2026-01=432 2025-12=1 | 2026-02=2 2026-01=3 2025-12=1"},
		{"stack=created_at[year]", " 2025=1 2026=65432 | 2025=1 2026=5"},
		{"stack=created_at[hour]&limit=3", " 2026-01-31T10=4 2026-02-01T09=5 2026-02-01T11=6 | 2025-12-31T23=1 2026-01-01T00=1 2026-01-31T10=2 2026-02-01T09=1 2026-02-01T11=1"},
		{"stack=created_at[DD.MM.YYYY]", " 31.12.2025=1 01.01.2026=2 31.01.2026=43 01.02.2026=65 | 31.12.2025=1 01.01.2026=1 31.01.2026=2 01.02.2026=2"},
		{"stack=created_at[HH]", " 00=2 09=5 10=43 11=6 23=1 | 00=1 09=1 10=2 11=1 23=1"},
		{"stack=created_at[mm]", " 00=6432 59=51 | 00=4 59=2"},
		{"stack=created_at[ss]", " 00=65432 59=1 | 00=5 59=1"},
		{"stack=created_at[YYYYMMDD HH:mm]&limit=1", " 20260201 11:00=6 | 20251231 23:59=1 20260101 00:00=1 20260131 10:00=2 20260201 09:59=1 20260201 11:00=1"},
		{"stack=created_at[2006-01-02]", " 2025-12-31=1 2026-01-01=2 2026-01-31=43 2026-02-01=65 | 2025-12-31=1 2026-01-01=1 2026-01-31=2 2026-02-01=2"},
		{"stack=created_at[02.01.2006]", " 31.12.2025=1 01.01.2026=2 31.01.2026=43 01.02.2026=65 | 31.12.2025=1 01.01.2026=1 31.01.2026=2 01.02.2026=2"},
		{"stack=-created_at[Jan 2006]", " Feb 2026=65 Jan 2026=432 Dec 2025=1 | Feb 2026=2 Jan 2026=3 Dec 2025=1"},
		{"stack=created_at[Mon]", " Wed=1 Thu=2 Sat=43 Sun=65 | Wed=1 Thu=1 Sat=2 Sun=2"},
		{"stack=created_at[15]", " 00=2 09=5 10=43 11=6 23=1 | 00=1 09=1 10=2 11=1 23=1"},
		{"stack=created_at[3 PM]", " 12 AM=2 9 AM=5 10 AM=43 11 AM=6 11 PM=1 | 12 AM=1 9 AM=1 10 AM=2 11 AM=1 11 PM=1"},
		{"stack=created_at[2006-01-02T15:04:05Z07:00]&limit=1", " 2026-02-01T11:00:00Z=6 | 2025-12-31T23:59:59Z=1 2026-01-01T00:00:00Z=1 2026-01-31T10:00:00Z=2 2026-02-01T09:59:00Z=1 2026-02-01T11:00:00Z=1"},
		{"stack=seen_at[year]", " null=653 1969=4 2026=21 | null=3 1969=1 2026=2"},
		{"stack=seen_at[hour]&search.seen_at=..2000-01-01", " 1969-12-31T23=4 | 1969-12-31T23=1"},
		{"stack=title", " =654321 | =6"},
		{"stack=name&search.name=m*,anna", " Anna=5 MÜLLER=2 Müller=1 | Anna=1 MÜLLER=1 Müller=1"},
		{"stack=status&limit=-1", " |"},
		{"stack=status&search.size=77", " |"},
		{"stack=status&distinct=active", " late=6 open=4 | late=1 open=1"},
	} {
		p, err := page(t, db, test.query)
		if err != nil || outline(t, p) != test.want {
			t.Errorf("%s:\n got %q, %v\nwant %q", test.query, outline(t, p), err, test.want)
		}
		if empty := strings.HasPrefix(test.want, " |"); empty != (len(p.Keys) == 0) {
			t.Errorf("%s: keys %v", test.query, p.Keys)
		}
	}
}

func TestPage_EnvelopeOfStack(t *testing.T) {
	db := open(t, sampleThings(t)[4:]...)
	p, err := page(t, db, "stack=-active&limit=1&search.status=done")
	if err != nil {
		t.Fatal(err)
	}
	row := `{"id":"` + id(5) + `","owner":"` + anna + `","name":"Anna","status":"done","active":false,"size":100,"born":null,"seen_at":null,` +
		`"created_at":"2026-02-01T09:59:00.000Z"}`
	want := `{"data":{"false":[` + row + `]},"keys":["false"],"metadata":{"group_totals":{"false":1}},"total":1,"total_unfiltered":2,"has_more":false}`
	if got := encode(t, p); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	plain, err := page(t, db, "limit=1")
	if err != nil {
		t.Fatal(err)
	}
	plain.Data.Rows[0].Name, plain.NextCursor = "changed", ""
	if got := encode(t, plain); !strings.HasPrefix(got, `{"data":[{"id":"`+id(6)+`",`) || !strings.Contains(got, `"name":"changed"`) ||
		!strings.HasSuffix(got, `],"total":2,"total_unfiltered":2,"has_more":true}`) {
		t.Errorf("got %s", got)
	}
	skipped, err := page(t, db, "limit=-1")
	if want := `{"data":[],"total":2,"total_unfiltered":2,"has_more":false}`; err != nil || encode(t, skipped) != want {
		t.Errorf("got %s, %v; want %s", encode(t, skipped), err, want)
	}
}

// A field with as many values as rows must not produce an unbounded answer.
func TestPage_BoundsGroupTotals(t *testing.T) {
	many := make([]thing, 0, 1500)
	for i := range 1500 {
		many = append(many, thing{ID: id(i), Owner: anna})
	}
	db := open(t, many...)
	p, err := page(t, db, "stack=id&limit=3&offset=700")
	if err != nil {
		t.Fatal(err)
	}
	if got := outline(t, p); strings.Count(got, "=") != 6 || len(p.Metadata.GroupTotals) != 3 {
		t.Errorf("got %s", got)
	}
}

func TestPage_Distinct(t *testing.T) {
	db := open(t, sampleThings(t)...)
	for _, test := range []struct {
		query, want string
		total       int64
	}{
		{"distinct=status", "654", 3},
		{"distinct=status&sort=created_at", "126", 3},
		{"distinct=status&sort=name", "645", 3},
		{"distinct=status&limit=1&offset=1", "5", 3},
		{"distinct=active", "64", 2},
		{"distinct=size", "6542", 4},
		{"distinct=size&sort=id", "1235", 4},
		{"distinct=title", "6", 1},
		{"distinct=owner&search.status=open", "43", 2},
		{"distinct=owner&search.status=open&sort=-size", "41", 2},
		{"distinct=id", "654321", 6},
		{"distinct=status&limit=-1", "", 3},
	} {
		p, err := page(t, db, test.query)
		if err != nil || lastDigits(p) != test.want || p.Total != test.total || p.TotalUnfiltered != 6 {
			t.Errorf("%s: got %q, %d of %d, %v; want %q, %d of 6", test.query, lastDigits(p), p.Total, p.TotalUnfiltered, err, test.want, test.total)
		}
	}
}
