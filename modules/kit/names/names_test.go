package names_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"kontor/modules/kit/names"
)

func TestCompare(t *testing.T) {
	const alert = names.DefaultThreshold
	for _, c := range []struct {
		name         string
		kind         names.Kind
		query, entry string
		matches      bool
	}{
		{"the order does not matter", names.Person, "Muster, Anna Maria", "Anna Maria Muster", true},
		{"capitals and marks", names.Person, "ÇELİK Şükrü", "Celik Sukru", true},
		{"Cyrillic", names.Person, "Дмитрий Образцов", "Dmitry Obraztsov", true},
		{"Greek", names.Person, "Νίκος Παράδειγμα", "Nikos Paradeigma", true},
		{"Arabic omits vowels", names.Person, "كريم نموذجي", "Karim Namudhaji", true},
		{"Hebrew omits vowels", names.Person, "אסתר לוינסון", "Ester Levinson", true},
		{"Chinese", names.Person, "李明", "Li Ming", true},
		{"Korean", names.Person, "김 민수", "Kim Minsu", true},
		{"kana", names.Person, "サクラ", "Sakura", true},
		{"a letter exchanged", names.Person, "Anna Mutser", "Anna Muster", true},
		{"a short part is strict", names.Person, "Li Na", "Lu Na", false},
		{"an initial", names.Person, "A. Muster", "Anna Muster", true},
		{"another initial", names.Person, "B. Muster", "Anna Muster", false},
		{"initials alone", names.Person, "A.M.", "Anna Muster", false},
		{"a nickname", names.Person, "Bill Muster", "William Muster", true},
		{"a patronymic is missing", names.Person, "Ivan Obraztsov", "Ivan Petrovich Obraztsov", true},
		{"other patronymics", names.Person, "Ivan Sergeevich Obraztsov", "Ivan Petrovich Obraztsov", false},
		{"particles", names.Person, "Karim bin Sample al-Namudhaji", "Karim ibn Sample Namudhaji", true},
		{"a title", names.Person, "Dr. Anna Muster", "Anna Muster", true},
		{"spaces elsewhere", names.Person, "AnnaMaria Muster", "Anna Maria Muster", true},
		{"another given name", names.Person, "Beat Muster", "Anna Muster", false},
		{"a single name of several", names.Person, "Muster", "Anna Maria Muster", false},
		{"organisation types in other languages", names.Organisation, "Beispiel Aktiengesellschaft", "Beispiel S.A.", true},
		{"an organisation type is missing", names.Organisation, "Beispiel Maschinen", "Beispiel Maschinen GmbH", true},
		{"Russian organisation types", names.Organisation, "ООО «Образец»", "Obrazets LLC", true},
		{"a misspelled organisation type", names.Organisation, "Beispiel Aktiengeselschaft", "Beispiel AG", true},
		{"common words alone", names.Organisation, "Muster Trading Group", "Beispiel Trading Group", false},
		{"numbers in words", names.Organisation, "First Sample Bank", "1st Sample Bank", true},
		{"Roman numbers", names.Organisation, "Sample Fund II", "Sample Fund 2", true},
		{"an acronym", names.Organisation, "BMW", "Bayerische Motoren Werke", true},
		{"aliases in one field", names.Organisation, "Sample Front", "Al-Beispiel/Sample Front", true},
		{"nothing in common", names.Unknown, "Beispiel", "Sample", false},
		{"no letters", names.Unknown, "…", "…", false},
		{"invisible letters", names.Person, "An\u200bna Mu\u00adster", "Anna Muster", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			score, evidence := names.CompareTexts(c.query, c.entry, c.kind, nil)
			if score >= alert != c.matches {
				t.Errorf("%q and %q score %v: %v", c.query, c.entry, score, evidence)
			}
			if back, _ := names.CompareTexts(c.entry, c.query, c.kind, nil); back >= alert != c.matches {
				t.Errorf("%q and %q score %v in the other order", c.entry, c.query, back)
			}
		})
	}
}

// TestCompare_SaysWhichPartsMatched shows the parts as they were written.
func TestCompare_SaysWhichPartsMatched(t *testing.T) {
	_, evidence := names.CompareTexts("Лавров, Serge V.", "Sergey Viktorovich LAVROV", names.Person, nil)
	want := map[string]names.Match{
		"Лавров": {"Лавров", "LAVROV", 1, names.Exact},
		"Serge":  {"Serge", "Sergey", 0.95, names.Variant},
		"V":      {"V", "Viktorovich", 0.8, names.Initial},
	}
	if len(evidence) != len(want) {
		t.Fatal(evidence)
	}
	for _, m := range evidence {
		if m != want[m.Query] {
			t.Errorf("%+v, want %+v", m, want[m.Query])
		}
	}
}

func TestCompare_WeighsRareParts(t *testing.T) {
	b := names.NewBuilder()
	for range 1000 {
		b.Add(0, "Muhammad Ali", names.Person)
	}
	b.Add(1, "Muhammad Beispielzadeh Ali", names.Person)
	x := b.Build()
	if common, rare := x.Weigh("muhammad"), x.Weigh("beispielzadeh"); common >= rare {
		t.Errorf("common %v, rare %v", common, rare)
	}
	if unknown := x.Weigh("unheardof"); unknown != 1 {
		t.Errorf("a word of no name weighs %v", unknown)
	}
}

func TestSearch(t *testing.T) {
	b := names.NewBuilder()
	b.Add(1, "Anna Maria Muster", names.Person)
	b.Add(1, "Anna Beispiel", names.Person)
	b.Add(2, "Muster Handels GmbH", names.Organisation)
	b.Add(3, "Образцов Дмитрий", names.Person)
	b.Add(4, "…", names.Person)
	x := b.Build()
	if x.Len() != 4 {
		t.Errorf("%d names", x.Len())
	}
	for query, want := range map[string]int{"Muster Anna": 1, "Ana Beispiel": 1, "Muster Handel AG": 2, "Dmitrii Obraztsov": 3} {
		hits := x.Search(query, names.Unknown, names.DefaultThreshold, nil)
		if len(hits) != 1 || hits[0].Entry != want {
			t.Errorf("%q finds %+v, want entry %d", query, hits, want)
		}
	}
	if hits := x.Search("Anna Muster", names.Person, names.DefaultThreshold, func(entry int) bool { return entry != 1 }); len(hits) > 0 {
		t.Errorf("an entry that is not accepted is found: %+v", hits)
	}
	for _, query := range []string{"", "…", strings.Repeat("a ", 5000), strings.Repeat("x", 100_000), "\xff\xfe", strings.Repeat("/", 3000)} {
		if hits := x.Search(query, names.Unknown, names.DefaultThreshold, nil); len(hits) > 0 {
			t.Errorf("%.20q finds %+v", query, hits)
		}
	}
}

func TestSignals_OnlyLower(t *testing.T) {
	born := func(b ...names.Birth) names.Signals { return names.Signals{Births: b} }
	in := func(c ...string) names.Signals { return names.Signals{Countries: c} }
	day := names.Birth{Year: 1980, Month: 3, Day: 4}
	for name, c := range map[string]struct {
		query, entry names.Signals
		want         float64
	}{
		"nothing known":          {names.Signals{}, names.Signals{}, 1},
		"missing in the entry":   {born(day), in("CH"), 1},
		"missing in the query":   {names.Signals{}, names.Signals{Births: []names.Birth{day}, Countries: []string{"CH"}}, 1},
		"the same day":           {born(day), born(day), 1},
		"the year alone":         {born(day), born(names.Birth{Year: 1980}), 1},
		"day and month changed":  {born(day), born(names.Birth{Year: 1980, Month: 4, Day: 3}), 1},
		"another day":            {born(day), born(names.Birth{Year: 1980, Month: 3, Day: 9}), 0.95},
		"another year":           {born(day), born(names.Birth{Year: 1990, Month: 3, Day: 4}), 0.8},
		"one of several":         {born(day), born(names.Birth{Year: 1950}, day), 1},
		"another country":        {in("CH"), in("RU", "BY"), 0.95},
		"one country is shared":  {in("CH", "RU"), in("RU"), 1},
		"everything contradicts": {names.Signals{Births: []names.Birth{day}, Countries: []string{"CH"}}, names.Signals{Births: []names.Birth{{Year: 1950}}, Countries: []string{"RU"}}, 0.76},
	} {
		if got := c.query.Factor(c.entry); got < c.want-1e-9 || got > c.want+1e-9 {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// FuzzCompare compares arbitrary texts: a score is between 0 and 1, the same in both orders, and 1 for the same text with letters.
func FuzzCompare(f *testing.F) {
	for _, seed := range [][2]string{{"Anna Muster", "Muster, A."}, {"ООО «Образец»", "S.A.R.L. x/y"}, {"\xff", "\u200f\u0301"}, {"1st 40 4", "forty-four II"}, {"كريم", "דוד"}, {"a a a", "aaa"}} {
		f.Add(seed[0], seed[1], uint8(0))
		f.Add(seed[1], seed[0], uint8(1))
		f.Add(seed[0], seed[0], uint8(2))
	}
	f.Fuzz(func(t *testing.T, a, b string, kind uint8) {
		k := names.Kind(kind % 3)
		x, y := names.Parse(a, k), names.Parse(b, k)
		score, evidence := names.Compare(x, y, nil)
		if score < 0 || score > 1 {
			t.Errorf("score %v", score)
		}
		for _, m := range evidence {
			if m.Score <= 0 || m.Score > 1 || m.Query == "" || m.Entry == "" || m.How == "" {
				t.Errorf("evidence %+v", m)
			}
		}
		if same, _ := names.Compare(x, x, nil); same < 0.99 && !x.Empty() {
			t.Errorf("%q scores %v with itself", a, same)
		}
		build := names.NewBuilder()
		build.Add(7, a, k)
		for _, hit := range build.Build().Search(b, k, 0.5, nil) {
			if hit.Entry != 7 || hit.Score < 0.5 {
				t.Errorf("hit %+v", hit)
			}
		}
	})
}

// The distance is the one of the whole table, wherever it is within the limit.
func TestDistance_IsThatOfTheWholeTable(t *testing.T) {
	whole := func(a, b string) int {
		d := make([][]int, len(a)+1)
		for i := range d {
			d[i] = make([]int, len(b)+1)
			for j := range d[i] {
				switch {
				case i == 0 || j == 0:
					d[i][j] = i + j
				case a[i-1] == b[j-1]:
					d[i][j] = d[i-1][j-1]
				default:
					d[i][j] = min(d[i-1][j], d[i][j-1], d[i-1][j-1]) + 1
				}
				if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
					d[i][j] = min(d[i][j], d[i-2][j-2]+1)
				}
			}
		}
		return d[len(a)][len(b)]
	}
	rapid.Check(t, func(t *rapid.T) {
		a, limit := rapid.StringMatching("[abc]{0,12}").Draw(t, "a"), rapid.IntRange(0, 3).Draw(t, "limit")
		b := rapid.StringMatching("[abc]{0,12}").Draw(t, "b")
		if rapid.Bool().Draw(t, "long") {
			a, b = strings.Repeat("x", rapid.IntRange(0, 140).Draw(t, "n"))+a+"y", b+strings.Repeat("z", rapid.IntRange(0, 2).Draw(t, "m"))
		}
		if len(a) > 128 || len(b) > 128 {
			names.Distance(a, b, limit) // it ends
			return
		}
		if got, want := names.Distance(a, b, limit), min(whole(a, b), limit+1); got != want {
			t.Fatalf("distance of %q and %q within %d: %d, want %d", a, b, limit, got, want)
		}
	})
}
