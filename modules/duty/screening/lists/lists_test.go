package lists_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kontor/modules/duty/screening/lists"
	"kontor/modules/kit/names"
)

// read reads a list of a text.
func read(content []byte) ([]lists.Entry, lists.Info, error) {
	var all []lists.Entry
	info, err := lists.Read(bytes.NewReader(content), int64(len(content)), func(e lists.Entry) error {
		all = append(all, e)
		return nil
	})
	return all, info, err
}

func sample(t testing.TB, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// zipped returns an archive of files in a folder.
func zipped(t testing.TB, folder string, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range files {
		w, err := z.Create(filepath.Base(name))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(sample(t, filepath.Join(folder, name))); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// entries are what each sample has.
var entries = map[string][]lists.Entry{
	"seco.xml": {
		{SourceID: "100", Kind: names.Person, Names: []string{"Dmitry Obraztsov", "Дмитрий Образцов", "Dima Exemplov", "Il Campione"},
			Programs: []string{"Sample"}, Births: []names.Birth{{Year: 1970, Month: 3, Day: 4}, {Year: 1971}}, Countries: []string{"BY", "RU", "IR"}},
		{SourceID: "300", Names: []string{"Sample Star"}, Programs: []string{"12"}},
	},
	"un.xml": {
		{SourceID: "SPi.001", Kind: names.Person, Names: []string{"KARIM BIN SAMPLE AL-NAMUDHAJI", "كريم النموذجي", "Abu Beispiel"}, Programs: []string{"Sample"},
			Births: []names.Birth{{Year: 1969, Month: 5, Day: 6}, {Year: 1968}, {Year: 1969}, {Year: 1970}, {Year: 1966}}, Countries: []string{"IR", "CH"}},
		{SourceID: "SPe.002", Kind: names.Organisation, Names: []string{"SAMPLE FRONT", "Front of Samples"}, Programs: []string{"Sample"}, Countries: []string{"CD"}},
	},
	"eu.xml": {
		{SourceID: "EU.1.23", Kind: names.Person, Names: []string{"Anna Muster", "Anja M. Muster"}, Programs: []string{"SMP"},
			Births: []names.Birth{{Year: 1980, Month: 3, Day: 4}, {Year: 1983}, {Year: 1984}, {Year: 1981}}, Countries: []string{"RU"}},
		{SourceID: "14", Kind: names.Organisation, Names: []string{"Beispiel & Söhne"}},
	},
	"ofac": {
		{SourceID: "101", Kind: names.Person, Names: []string{"OBRAZTSOV, Dmitry", "EXAMPLOV, Dima"}, Programs: []string{"SAMPLE1", "SAMPLE2"},
			Births: []names.Birth{{Year: 1970, Month: 3, Day: 4}, {Year: 1971}}, Countries: []string{"RU"}},
		{SourceID: "102", Kind: names.Organisation, Names: []string{`SAMPLE TRADING "LLC"`}, Programs: []string{"SAMPLE1"}, Countries: []string{"BY"}},
		{SourceID: "103", Names: []string{"SAMPLE STAR"}, Programs: []string{"SAMPLE1"}},
		{SourceID: "104", Kind: names.Person, Names: []string{"MUÑOZ EJEMPLO, José", "PEPE"}, Programs: []string{"SDNTK"}, Countries: []string{"BA", "KP"},
			Births: []names.Birth{{Year: 1950}, {Year: 1951}, {Year: 1952}, {Year: 1953}, {Year: 1954}, {Year: 1948}}},
	},
	"targets.simple.csv": {
		{SourceID: "NK-1", Kind: names.Person, Names: []string{"Anna Muster", "Anja Muster", "Анна Мустер"}, Programs: []string{"Sample list", "Other list"},
			Births: []names.Birth{{Year: 1980, Month: 3, Day: 4}, {Year: 1981}}, Countries: []string{"CH", "RU"}},
		{SourceID: "NK-2", Kind: names.Organisation, Names: []string{"Beispiel AG"}, Programs: []string{"Sample list"}},
	},
	"entities.ftm.json": {
		{SourceID: "NK-1", Kind: names.Person, Names: []string{"Anna Muster", "Анна Мустер"}, Programs: []string{"sample"},
			Births: []names.Birth{{Year: 1980, Month: 3, Day: 4}}, Countries: []string{"CH"}},
		{SourceID: "NK-2", Kind: names.Organisation, Names: []string{"Beispiel AG"}, Programs: []string{"sample"}, Countries: []string{"RU"}},
	},
}

func TestReadFile_EveryFormat(t *testing.T) {
	for name, want := range map[string]lists.Info{
		"seco.xml": {Format: lists.SECO, Version: "2026-03-01"}, "un.xml": {Format: lists.UN, Version: "2026-03-01T00:00:00Z"},
		"eu.xml": {Format: lists.EU, Version: "2026-03-01T10:00:00.000+01:00"}, "ofac": {Format: lists.OFAC},
		"targets.simple.csv": {Format: lists.OpenSanctions, Version: "2026-02-03T10:00:00"},
		"entities.ftm.json":  {Format: lists.FtM, Version: "2026-02-03T10:00:00"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []lists.Entry
			info, err := lists.ReadFile(filepath.Join("testdata", name), func(e lists.Entry) error {
				got = append(got, e)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			want.Entries = len(entries[name])
			if info != want {
				t.Errorf("%+v, want %+v", info, want)
			}
			if diff := cmp.Diff(entries[name], got, emptyIsNil); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// emptyIsNil compares entries whatever their empty lists are.
var emptyIsNil = cmp.Transformer("empty", func(e lists.Entry) map[string]any {
	m := map[string]any{"id": e.SourceID, "kind": e.Kind, "names": e.Names}
	for name, list := range map[string][]string{"programs": e.Programs, "countries": e.Countries} {
		if len(list) > 0 {
			m[name] = list
		}
	}
	if len(e.Births) > 0 {
		m["births"] = e.Births
	}
	return m
})

func TestRead_Archives(t *testing.T) {
	got, info, err := read(zipped(t, "ofac", "sdn.csv", "alt.csv", "add.csv"))
	if err != nil || info.Format != lists.OFAC || len(got) != 4 || len(got[0].Names) != 2 {
		t.Errorf("%+v %+v %v", info, got, err)
	}
	got, info, err = read(zipped(t, "", "seco.xml"))
	if err != nil || info.Format != lists.SECO || len(got) != 2 {
		t.Errorf("%+v %+v %v", info, got, err)
	}
	if _, _, err := read(zipped(t, "", "seco.xml", "un.xml")); !errors.Is(err, lists.ErrUnknownFormat) {
		t.Errorf("two lists in one archive: %v", err)
	}
	got, info, err = read(sample(t, "ofac/sdn.csv"))
	if err != nil || info.Format != lists.OFAC || len(got) != 4 || len(got[0].Names) != 1 {
		t.Errorf("sdn.csv alone: %+v %+v %v", info, got, err)
	}
}

func TestRead_RejectsOtherFiles(t *testing.T) {
	const seco = `<swiss-sanctions-list list-type="whole-list">`
	for name, c := range map[string]struct {
		content string
		want    error
	}{
		"empty":                    {"", lists.ErrUnknownFormat},
		"text":                     {"Anna Muster\n", lists.ErrUnknownFormat},
		"another table":            {"id,name\n1,Anna\n", lists.ErrUnknownFormat},
		"another XML":              {"<html></html>", lists.ErrUnknownFormat},
		"a damaged archive":        {"PK\x03\x04....", lists.ErrMalformed},
		"a delta of SECO":          {`<swiss-sanctions-list list-type="delta"></swiss-sanctions-list>`, lists.ErrDelta},
		"no entries":               {seco + `</swiss-sanctions-list>`, lists.ErrEmpty},
		"an unfinished list":       {seco + `<target ssid="1"><entity>`, lists.ErrMalformed},
		"a row without end":        {"id,schema,name,dataset\n1,Person,Anna Muster,x\n2,Person,An", lists.ErrMalformed},
		"a quote without end":      {"id,schema,name\n1,Person,\"Anna Muster\"\n2,Person,\"An", lists.ErrMalformed},
		"a quote inside a field":   {"id,schema,name\n1,Person,Anna \"A\" Muster\n", lists.ErrMalformed},
		"an OFAC row without end":  {"1,A,-0-,S,,,,,,,,\n2,B,-0-", lists.ErrMalformed},
		"an unfinished object":     {`{"id": "1", "schema": "Person", "caption": "An`, lists.ErrMalformed},
		"JSON of another kind":     {`{"id": 1}`, lists.ErrMalformed},
		"entities":                 {`<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>` + seco + `&b;</swiss-sanctions-list>`, lists.ErrMalformed},
		"an unknown entity":        {seco + `&b;</swiss-sanctions-list>`, lists.ErrMalformed},
		"a later document type":    {seco + `<!DOCTYPE x></swiss-sanctions-list>`, lists.ErrMalformed},
		"an entry without end":     {seco + `<target ssid="1">` + strings.Repeat("<a>x</a>", 300_000), lists.ErrTooLarge},
		"an attribute without end": {seco + `<target ssid="` + strings.Repeat("x", 3<<20), lists.ErrTooLarge},
		"a field without end":      {"id,schema,name\n1,Person,\"" + strings.Repeat("x", 3<<20), lists.ErrTooLarge},
		"an object without end":    {`{"id":"` + strings.Repeat("x", 3<<20), lists.ErrTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			if got, _, err := read([]byte(c.content)); !errors.Is(err, c.want) {
				t.Errorf("%v, want %v; %d entries", err, c.want, len(got))
			}
		})
	}
}

// A table that was cut off in the middle of a row is rejected, and not taken for a shorter list. The end of the last line may be missing.
func TestRead_RejectsCutTables(t *testing.T) {
	whole := sample(t, "targets.simple.csv")
	all, _, err := read(whole)
	if err != nil || len(all) < 2 {
		t.Fatalf("the whole table: %d entries, %v", len(all), err)
	}
	header := bytes.IndexByte(whole, '\n') + 1
	rejected := 0
	for n := header + 1; n < len(whole); n++ {
		ended := bytes.Count(whole[header:n], []byte("\n"))
		got, _, err := read(whole[:n])
		switch {
		case errors.Is(err, lists.ErrMalformed):
			rejected++
			if whole[n-1] == '\n' || whole[n] == '\n' {
				t.Errorf("a table whose last row is whole was rejected: cut after %q", whole[max(0, n-20):n])
			}
		case err != nil || len(got) < ended || !cmp.Equal(got, all[:len(got)]):
			t.Errorf("cut after %q: %+v, %v", whole[max(0, n-20):n], got, err)
		}
	}
	if rejected < (len(whole)-header)/2 {
		t.Errorf("%d cuts were rejected", rejected)
	}
}

// endless is a list that is longer than memory should be.
type endless struct {
	head, entry string
	size        int64
}

// ReadAt returns the head and then one entry after the other.
func (e endless) ReadAt(p []byte, at int64) (int, error) {
	if at >= e.size {
		return 0, io.EOF
	}
	n := int(min(int64(len(p)), e.size-at))
	for i := range n {
		position := at + int64(i)
		if position < int64(len(e.head)) {
			p[i] = e.head[position]
			continue
		}
		p[i] = e.entry[(position-int64(len(e.head)))%int64(len(e.entry))]
	}
	return n, nil
}

// TestRead_StopsAtTheFirstError shows that a list is not read to its end before its entries are passed.
func TestRead_StopsAtTheFirstError(t *testing.T) {
	full := errors.New("full")
	n := 0
	_, err := lists.Read(endless{"<export>", `<sanctionEntity logicalId="1"><nameAlias wholeName="A B"/></sanctionEntity>`, 900 << 20}, 900<<20,
		func(lists.Entry) error {
			if n++; n == 1000 {
				return full
			}
			return nil
		})
	if !errors.Is(err, full) || n != 1000 {
		t.Errorf("%v after %d entries", err, n)
	}
}

// fuzz reads arbitrary content of one form: it ends, and passes only entries with an id and a name.
func fuzz(f *testing.F, seeds ...[]byte) {
	for _, seed := range seeds {
		f.Add(seed)
		f.Add(seed[:len(seed)/2])
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		got, info, err := read(content)
		if err == nil && (info.Entries != len(got) || len(got) == 0) {
			t.Errorf("%+v with %d entries", info, len(got))
		}
		for _, e := range got {
			if e.SourceID == "" || len(e.Names) == 0 || e.Names[0] == "" {
				t.Errorf("%+v", e)
			}
			for _, c := range e.Countries {
				if len(c) != 2 {
					t.Errorf("country %q", c)
				}
			}
		}
	})
}

func FuzzSECO(f *testing.F) { fuzz(f, sample(f, "seco.xml")) }
func FuzzUN(f *testing.F)   { fuzz(f, sample(f, "un.xml")) }
func FuzzEU(f *testing.F)   { fuzz(f, sample(f, "eu.xml")) }
func FuzzOFAC(f *testing.F) {
	fuzz(f, sample(f, "ofac/sdn.csv"), zipped(f, "ofac", "sdn.csv", "alt.csv", "add.csv"))
}
func FuzzOpenSanctions(f *testing.F) { fuzz(f, sample(f, "targets.simple.csv")) }
func FuzzFtM(f *testing.F)           { fuzz(f, sample(f, "entities.ftm.json")) }

// Downloads may end without a newline. A last row with all columns is a whole row.
func TestRead_AcceptsALastRowWithoutNewline(t *testing.T) {
	got, _, err := read([]byte("id,schema,name\n1,Person,Anna Muster\n2,Person,Beat Beispiel"))
	if err != nil || len(got) != 2 {
		t.Errorf("%d entries, %v; want 2", len(got), err)
	}
}

func TestRead_SaysWhyAFileIsDamaged(t *testing.T) {
	if _, _, err := read([]byte(`<!DOCTYPE x><a></a>`)); err == nil || err.Error() != lists.ErrMalformed.Error()+": a document type is not accepted" {
		t.Errorf("got %v", err)
	}
}

// Files declare other encodings, and programs put a folder into an archive.
func TestRead_EncodingsAndFolders(t *testing.T) {
	latin := strings.Replace(string(sample(t, "eu.xml")), "UTF-8", "ISO-8859-1", 1)
	latin = strings.Replace(latin, "Söhne", "S\xf6hne", 1)
	for name, content := range map[string][]byte{"latin-1": []byte(latin), "a byte order mark": append([]byte("\xef\xbb\xbf"), sample(t, "eu.xml")...)} {
		if got, _, err := read(content); err != nil || len(got) != 2 || got[1].Names[0] != "Beispiel & Söhne" {
			t.Errorf("%s: %+v %v", name, got, err)
		}
	}
	if _, _, err := read([]byte(strings.Replace(latin, "ISO-8859-1", "EBCDIC", 1))); !errors.Is(err, lists.ErrMalformed) {
		t.Errorf("an unknown encoding: %v", err)
	}

	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range []string{"sdn.csv", "alt.csv"} {
		w, err := z.Create("SDN/" + strings.ToUpper(name))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(sample(t, "ofac/"+name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if got, _, err := read(b.Bytes()); err != nil || len(got) != 4 || len(got[0].Names) != 2 {
		t.Errorf("a folder in an archive: %+v %v", got, err)
	}
}

// archiveOf returns an archive of one file.
func archiveOf(t *testing.T, name string, content ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.Create(name)
	for i := 0; i < len(content) && err == nil; i++ {
		_, err = io.WriteString(w, content[i])
	}
	if err = errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// directoryOf returns an archive of empty files.
func directoryOf(t *testing.T, files int) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := range files {
		if _, err := z.CreateRaw(&zip.FileHeader{Name: strconv.Itoa(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A file must not take much more memory than a list of a bank needs, whatever it holds.
func TestRead_BoundsWhatAFileTakes(t *testing.T) {
	const seco = `<swiss-sanctions-list list-type="whole-list">`
	var programs strings.Builder
	for i := range 500_100 {
		if i%1000 == 0 {
			programs.WriteString(`</sanctions-program><sanctions-program>`)
		}
		programs.WriteString(`<sanctions-set ssid="` + strconv.Itoa(i) + `"/>`)
	}
	part := `<name-part><value>` + strings.Repeat("y", 12_000) + `</value>` + strings.Repeat(`<spelling-variant>x</spelling-variant>`, 50) + `</name-part>`
	first := strings.Replace(part, "y", "", 12_000) // its spellings repeat the values of all other parts
	bomb := `<target ssid="1"><individual><identity><name>` + first + strings.Repeat(strings.ReplaceAll(part, `<spelling-variant>x</spelling-variant>`, ""), 49) +
		`</name></identity></individual></target>`
	for name, c := range map[string]struct {
		content []byte
		want    error
	}{
		"many files":             {directoryOf(t, 30_000), lists.ErrTooLarge},
		"many folders":           {archiveOf(t, strings.Repeat("a/", 30_000)+"seco.xml", seco), lists.ErrUnknownFormat},
		"elements in each other": {archiveOf(t, "un.xml", "<CONSOLIDATED_LIST>", strings.Repeat("<a>", 1_000_000)), lists.ErrTooLarge},
		"programs":               {archiveOf(t, "seco.xml", seco, `<sanctions-program>`, programs.String(), `</sanctions-program></swiss-sanctions-list>`), lists.ErrTooLarge},
		"spellings":              {archiveOf(t, "seco.xml", seco, strings.Repeat(bomb, 10), `</swiss-sanctions-list>`), lists.ErrTooLarge},
	} {
		if _, _, err := read(c.content); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
}
