package list_test

import (
	"net/url"
	"strings"
	"testing"
)

func TestPage_Search(t *testing.T) {
	db := open(t, sampleThings(t)...)
	for _, test := range []struct{ query, want string }{
		{"", "654321"},
		{"search.id=" + id(3), "3"},
		{"search.id=" + strings.ToUpper(id(3)), "3"},
		{"search.owner=" + bob, "42"},
		{"search.owner=" + bob + "," + anna, "654321"},
		{"search.owner=" + bob + "&search.owner=" + anna, "654321"},
		{"search.owner=bob", ""},
		{"search.owner=bob," + bob, "42"},
		{"search.active=true", "431"},
		{"search.active=FALSE", "652"},
		{"search.active=true,false", "654321"},
		{"search.active=yes", ""},
		{"search.active=1", ""},
		{"search.active=", ""},
		{"search.name=müller", "21"},
		{"search.name=MÜLLER", "21"},
		{"search.name=mu\u0308ller", "21"},
		{"search.name=muller", ""},
		{"search.name=strasse 50%25", "3"},
		{"search.name=M*", "21"},
		{"search.name=*ÜLL*", "21"},
		{"search.name=*l***r", "21"},
		{"search.name=*0%25", "3"},
		{"search.name=*%25*", "3"},
		{"search.name=*_*", "4"},
		{`search.name=*\*`, "4"},
		{"search.name=a?b*", ""},
		{"search.name=*", "54321"},
		{"search.name=***", "54321"},
		{"search.name=", "6"},
		{"search.name=,", "6"},
		{"search.name=anna,,müller", "521"},
		{"search.name= anna , m* ", "521"},
		{"search.name=anna,*,x*", "54321"},
		{"search.name=%00", ""},
		{"search.name=%ff", ""},
		{"search.name=" + url.QueryEscape("' OR 1=1 --"), ""},
		{"search.plain=ANNA", "5"},
		{"search.title=", ""},
		{"search.title=*", ""},
		{"search.title=x", ""},
		{"search.status=OPEN", "431"},
		{"search.status=open,late", "6431"},
		{"search.status=open,late,x", "6431"},
		{"search.status=open&search.active=true&search.size=5", "41"},
		{"search.code=open", "431"},
		{"search.code=o*", "431"},
		{"search.size=5", "41"},
		{"search.size=-3", "2"},
		{"search.size=5.0", ""},
		{"search.size=five", ""},
		{"search.size=", "63"}, // no value
		{"search.size=null", "63"},
		{"search.size=5,null", "6431"},
		{"search.size=\"null\"", ""},
		{"search.name=null", ""},
		{"search.name=\"anna\"", "5"},
		{"search.name=\"anna,\"", ""},
		{"search.size=99999999999999999999", ""},
		{"search.size=5..", "541"},
		{"search.size=..5", "421"},
		{"search.size=-3..5", "421"},
		{"search.size=6..5", ""},
		{"search.size=..", ""},
		{"search.size=1..x", ""},
		{"search.size=1..5..9", ""},
		{"search.size=100,-3", "52"},
		{"search.size=100,..0,7", "52"},
		{"search.born=1980-02-29", "1"},
		{"search.born=1980-02-30", ""},
		{"search.born=1980-01-01..1980-12-31", "61"},
		{"search.born=1981-01-01..", "2"},
		{"search.seen_at=2026-01-31T08:15:30.123Z", "1"},
		{"search.seen_at=2026-01-31T09:15:30.123%2B01:00", "1"},
		{"search.seen_at=2026-01-31t08:15:30.123z", "1"},
		{"search.seen_at=2026-01-31T08:15:30Z", ""},
		{"search.seen_at=2026-01-31T08:15:30.1230001Z", ""},
		{"search.seen_at=2026-01-31T08:15:30.1229999Z..2026-01-31T08:15:30.1230001Z", "1"},
		{"search.seen_at=2026-01-31T08:15:30.1230001Z..", "2"},
		{"search.seen_at=2026-01-31", "21"},
		{"search.seen_at=2026-01-30", ""},
		{"search.seen_at=..2026-01-30", "4"},
		{"search.seen_at=2026-01-01..2026-01-31", "21"},
		{"search.seen_at=2026-01-31,1969-12-31", "421"},
		{"search.seen_at=null", "653"},
		{"search.seen_at=tomorrow", ""},
		{"search.created_at=2026-01-31T10:00:00Z", "43"},
		{"search.created_at=..2025-12-31", "1"},
	} {
		p, err := page(t, db, test.query)
		if err != nil || lastDigits(p) != test.want {
			t.Errorf("%s: got %q, %v; want %q", test.query, lastDigits(p), err, test.want)
		}
		if int(p.Total) != len(test.want) || p.TotalUnfiltered != 6 {
			t.Errorf("%s: totals %d of %d, want %d of 6", test.query, p.Total, p.TotalUnfiltered, len(test.want))
		}
	}
}

func TestPage_Sort(t *testing.T) {
	db := open(t, sampleThings(t)...)
	for query, want := range map[string]string{
		"sort=created_at":             "123456",
		"sort=-created_at":            "654321",
		"sort=id":                     "123456",
		"sort=-id,name":               "654321",
		"sort=name":                   "645123",
		"sort=-name":                  "321546",
		"sort=name,-id":               "645213",
		"sort=size":                   "362145",
		"sort=-size":                  "541263",
		"sort=size,-created_at":       "632415",
		"sort=born":                   "345612",
		"sort=active,status,-size,id": "526143",
		"sort=status&sort=-id":        "526431",
		"sort= status , -id ":         "526431",
		"sort=status,-status,-id":     "526431",
		"sort=title":                  "654321",
		"sort=":                       "654321",
		"sort=,":                      "654321",
	} {
		if p, err := page(t, db, query); err != nil || lastDigits(p) != want {
			t.Errorf("%s: got %q, %v; want %q", query, lastDigits(p), err, want)
		}
	}
}
