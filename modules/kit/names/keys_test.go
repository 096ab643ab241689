package names_test

import (
	"slices"
	"testing"

	"kontor/modules/kit/names"
)

func TestKeys_FindNamesThatWereWrittenDifferently(t *testing.T) {
	for _, pair := range [][2]string{
		{"Hans Müller", "MUELLER Hans"}, {"Hans Müller", "Hans Möller"}, {"Hans Müller", "Johannes Müller"}, {"Hans Müller", "Hnas Müller"},
		{"Hans Müller", "H. Müller"}, {"H. Müller", "Hans Müller"}, {"Hans Peter Müller", "Hanspeter Müller"}, {"Hanspeter Müller", "Hans Peter Müller"},
		{"Sergej Lawrow", "Сергей Лавров"}, {"Sergej Lawrow", "Sergey Viktorovich LAVROV"}, {"Anna Keller", "Anna Maria Keller-Huber"}, {"Meier Beat", "Beat Mayer"},
		{"Keller", "Keller"}, {"Ai Io", "Io Ai"}, {"محمد العلي", "Mohammed Al Ali"},
	} {
		stored := names.Parse(pair[1], names.Person).Keys()
		if !slices.ContainsFunc(names.Parse(pair[0], names.Person).SearchKeys(), func(key string) bool { return slices.Contains(stored, key) }) {
			t.Errorf("%s does not find %s: %q in %q", pair[0], pair[1], names.Parse(pair[0], names.Person).SearchKeys(), stored)
		}
	}
}

func TestKeys_AreFew(t *testing.T) {
	for text, most := range map[string]int{"": 0, "...": 0, "Novartis AG": 1, "Hans Müller": 3, "Ada Bea Cora Dora Eva Fritz Gertrud Hans": 31} {
		if keys := names.Parse(text, names.Unknown).Keys(); len(keys) > most {
			t.Errorf("%q has %d keys: %q", text, len(keys), keys)
		}
	}
	if keys := names.Parse("Hans Fritz Max Joe Bill Bob", names.Person).SearchKeys(); len(keys) > 1000 {
		t.Errorf("a search has %d keys", len(keys))
	}
}

func FuzzKeys(f *testing.F) {
	f.Add("Hans Müller", "محمد العلي")
	f.Add("ß", "'")
	f.Fuzz(func(_ *testing.T, a, b string) {
		for _, kind := range []names.Kind{names.Unknown, names.Person, names.Organisation} {
			names.Parse(a, kind).Keys()
			names.Parse(b, kind).SearchKeys()
		}
	})
}
