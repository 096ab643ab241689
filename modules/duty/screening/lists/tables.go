package lists

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/text/encoding/charmap"

	"kontor/modules/kit/names"
)

// rows reads a table and passes each row. A row with more or fewer columns than the first one is an error, as in a file that was cut off.
func rows(table *csv.Reader, limit *budget, f func(row []string) error) error {
	table.FieldsPerRecord, table.ReuseRecord = -1, true
	columns := 0
	for {
		limit.next()
		row, err := table.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return failure(err)
		}
		if columns == 0 {
			columns = len(row)
		}
		if len(row) == 1 && strings.Trim(row[0], endOfFile+" ") == "" {
			continue
		}
		if len(row) != columns {
			line, _ := table.FieldPos(0)
			return fmt.Errorf("%w: line %d has %d columns, not %d", ErrMalformed, line, len(row), columns)
		}
		if err := f(row); err != nil {
			return err
		}
	}
}

// endOfFile is the last row of the files of OFAC, a control character of old systems.
const endOfFile = "\x1a"

// lazy reads tables of OFAC, which may have quotes inside of a field.
func lazy(r io.Reader) *csv.Reader {
	table := csv.NewReader(r)
	table.LazyQuotes = true
	return table
}

// field returns a column of a row; empty if the row is shorter, or for the "-0-" of OFAC.
func field(row []string, column int) string {
	if column < 0 || column >= len(row) {
		return ""
	}
	text := strings.TrimSpace(row[column])
	if text == "-0-" {
		return ""
	}
	if !utf8.ValidString(text) { // older files of OFAC
		text, _ = charmap.Windows1252.NewDecoder().String(text) // it has a character for each byte
	}
	return text
}

// isSimpleHeader reports whether a text begins with the columns of targets.simple.csv.
func isSimpleHeader(start []byte) bool {
	line, _, _ := bytes.Cut(start, []byte("\n"))
	columns := strings.Split(strings.ReplaceAll(strings.TrimSpace(string(line)), `"`, ""), ",")
	return slices.Contains(columns, "id") && slices.Contains(columns, "schema") && slices.Contains(columns, "name")
}

// readSimple reads targets.simple.csv of OpenSanctions. The version is the newest change of an entry.
func readSimple(r io.Reader, limit *budget, add func(Entry) error) (version string, err error) {
	columns := map[string]int{}
	column := func(row []string, name string) string {
		at, exists := columns[name]
		if !exists {
			return ""
		}
		return field(row, at)
	}
	err = rows(csv.NewReader(r), limit, func(row []string) error {
		if len(columns) == 0 {
			for i, name := range row {
				columns[strings.TrimSpace(name)] = i
			}
			return nil
		}
		e := Entry{SourceID: column(row, "id"), Kind: kindOf(column(row, "schema"))}
		e.Names = append([]string{column(row, "name")}, split(column(row, "aliases"))...)
		for _, date := range split(column(row, "birth_date")) {
			e.Births = appendDate(e.Births, date)
		}
		for _, country := range split(column(row, "countries")) {
			e.Countries = appendCountry(e.Countries, country)
		}
		e.Programs = split(cmp.Or(column(row, "program_ids"), column(row, "dataset")))
		version = max(version, column(row, "last_change"))
		return add(e)
	})
	return version, err
}

func split(text string) []string { return strings.Split(text, ";") }

// schemas are the schemas of FollowTheMoney that may be customers or belong to one, with their kinds.
var schemas = map[string]names.Kind{
	"Person": names.Person, "Company": names.Organisation, "Organization": names.Organisation, "PublicBody": names.Organisation,
	"LegalEntity": names.Unknown, "Vessel": names.Unknown, "Airplane": names.Unknown, "CryptoWallet": names.Unknown, "Security": names.Unknown,
}

func kindOf(schema string) names.Kind { return schemas[schema] }

// entity is an entity of FollowTheMoney. Properties that are not named here may have any form: in nested exports they are entities.
type entity struct {
	ID         string `json:"id"`
	Schema     string `json:"schema"`
	Target     *bool  `json:"target"`
	Caption    string `json:"caption"`
	Properties struct {
		Name              []string `json:"name"`
		Alias             []string `json:"alias"`
		WeakAlias         []string `json:"weakAlias"`
		PreviousName      []string `json:"previousName"`
		BirthDate         []string `json:"birthDate"`
		IncorporationDate []string `json:"incorporationDate"`
		Nationality       []string `json:"nationality"`
		Citizenship       []string `json:"citizenship"`
		Country           []string `json:"country"`
		Jurisdiction      []string `json:"jurisdiction"`
		ProgramID         []string `json:"programId"`
	} `json:"properties"`
	Datasets []string `json:"datasets"`
	Changed  string   `json:"last_change"`
}

// readFtM reads entities of FollowTheMoney, one JSON object a line. Objects that are no targets, such as addresses, are left out.
func readFtM(r *bufio.Reader, limit *budget, add func(Entry) error) (version string, err error) {
	d := jsontext.NewDecoder(r, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for n := 1; ; n++ {
		limit.next()
		var entity entity
		err := json.UnmarshalDecode(d, &entity)
		if errors.Is(err, io.EOF) {
			return version, nil
		}
		if err != nil {
			return version, failure(fmt.Errorf("line %d: %w", n, err))
		}
		kind, known := schemas[entity.Schema]
		if !known || entity.Target != nil && !*entity.Target {
			continue
		}
		p := entity.Properties
		e := Entry{SourceID: entity.ID, Kind: kind, Names: slices.Concat([]string{entity.Caption}, p.Name, p.Alias, p.WeakAlias, p.PreviousName)}
		for _, date := range slices.Concat(p.BirthDate, p.IncorporationDate) {
			e.Births = appendDate(e.Births, date)
		}
		for _, country := range slices.Concat(p.Nationality, p.Citizenship, p.Country, p.Jurisdiction) {
			e.Countries = appendCountry(e.Countries, country)
		}
		e.Programs = slices.Concat(p.ProgramID, entity.Datasets)
		version = max(version, entity.Changed)
		if err := add(e); err != nil {
			return version, err
		}
	}
}

// isSDN reports whether a text begins with a row of sdn.csv: a number, a name, and ten columns more.
func isSDN(start []byte) bool {
	line, _, _ := bytes.Cut(start, []byte("\n"))
	row, err := csv.NewReader(bytes.NewReader(line)).Read()
	return err == nil && len(row) == 12 && row[0] != "" && strings.Trim(row[0], "0123456789") == ""
}

// readSDN reads sdn.csv without its other files.
func readSDN(r io.Reader, limit *budget, add func(Entry) error) error {
	return rows(lazy(r), limit, func(row []string) error {
		if e, ok := sdnEntry(row); ok {
			return add(e)
		}
		return nil
	})
}

// sdnEntry reads a row of sdn.csv.
func sdnEntry(row []string) (Entry, bool) {
	if len(row) < 4 {
		return Entry{}, false
	}
	e := Entry{SourceID: field(row, 0), Kind: names.Organisation, Names: []string{field(row, 1)}}
	switch strings.ToLower(field(row, 2)) {
	case "individual":
		e.Kind = names.Person
	case "vessel", "aircraft":
		e.Kind = names.Unknown
	}
	e.Programs = strings.Split(strings.Trim(field(row, 3), "[]"), "] [")
	for remark := range strings.SplitSeq(strings.TrimSuffix(field(row, 11), "."), ";") {
		label, value, _ := strings.Cut(strings.TrimSpace(remark), " ")
		switch label {
		case "DOB":
			e.Births = appendDate(e.Births, value)
		case "alt.":
			if date, isDate := strings.CutPrefix(value, "DOB "); isDate {
				e.Births = appendDate(e.Births, date)
			}
			e.Countries = appendCountry(e.Countries, strings.TrimPrefix(strings.TrimPrefix(value, "nationality "), "citizen "))
		case "nationality", "citizen":
			e.Countries = appendCountry(e.Countries, value)
		case "a.k.a.", "f.k.a.", "n.k.a.": // weak ones, which alt.csv lacks
			e.Names = append(e.Names, strings.Trim(value, "'"))
		}
	}
	return e, true
}

// readOFAC reads sdn.csv, and joins the aliases of alt.csv and the countries of add.csv.
func readOFAC(folder fs.FS, files map[string]string, add func(Entry) error) error {
	var order []string
	entries := map[string]*Entry{}
	err := readTable(folder, files["sdn.csv"], func(row []string) error {
		e, ok := sdnEntry(row)
		if _, repeated := entries[e.SourceID]; !ok || repeated {
			return nil
		}
		if len(order) == maxJoinedEntries {
			return ErrTooLarge
		}
		order, entries[e.SourceID] = append(order, e.SourceID), &e
		return nil
	})
	if err != nil {
		return err
	}
	join := func(name string, f func(e *Entry, row []string)) error {
		if files[name] == "" {
			return nil
		}
		return readTable(folder, files[name], func(row []string) error {
			if e := entries[field(row, 0)]; e != nil {
				f(e, row)
				if max(len(e.Names), len(e.Countries)) > maxValues {
					return ErrTooLarge
				}
			}
			return nil
		})
	}
	if err := join("alt.csv", func(e *Entry, row []string) { e.Names = append(e.Names, field(row, 3)) }); err != nil {
		return err
	}
	if err := join("add.csv", func(e *Entry, row []string) { e.Countries = appendCountry(e.Countries, field(row, 4)) }); err != nil {
		return err
	}
	for _, id := range order {
		if err := add(*entries[id]); err != nil {
			return err
		}
	}
	return nil
}

// readTable reads a file of a folder.
func readTable(folder fs.FS, name string, f func(row []string) error) error {
	file, err := folder.Open(name)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	defer file.Close() //nolint:errcheck // it was only read
	limit := &budget{r: file, total: maxJoined}
	limit.next()
	if err := rows(lazy(limit), limit, func(row []string) error { return f(slices.Clone(row)) }); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
