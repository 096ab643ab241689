package privacy_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/store"
	"kontor/store/storetest"
)

// leftTexts are the text columns of erasable tables whose content an erasure leaves, with the reason. A new column is marked and must
// lose its mark, unless it is stated here.
var leftTexts = map[string]string{
	"files.media_type":                 "a code",
	"kyc_changes.from_status":          "a code",
	"kyc_changes.to_status":            "a code",
	"kyc_changes.verification_level":   "a code",
	"kyc_decisions.kyc_status":         "a code",
	"kyc_decisions.verification_level": "a code",
	"otp_sends.target":                 "those of the addresses are erased; that of the network lives for an hour",
	"notifications.content_key":        "the name of a text",
	"notifications.event":              "the name of an event",
	"notifications.rec_type":           "the name of a record type",
	"notifications.title_key":          "the name of a text",
	"tasks.due_on":                     "a day that the bank has set",
	"tasks.reminded_on":                "a day on which the bank has written",
	"sign_in_failures.subject":         "the test cannot make the keyed digest of the user, by which the erasure finds the row",
	"sign_in_values.network":           "the same, and rows live for an hour",
	"sign_in_values.subject":           "the same, and rows live for an hour",
}

// asStored are columns with a digest by which the erasure finds the row, or a sealed value that it opens. Their content is the mark.
var asStored = map[string]bool{"idempotency_keys.body": true, "idempotency_keys.key": true, "otp_sends.target": true}

// untouched are columns that a sealed value in the row depends on, and that hold the name of an endpoint, the kind of a record or a number.
var untouched = map[string]bool{"screening_hits.score": true, "idempotency_keys.path": true, "files.record_type": true}

// validTexts are the contents of columns with a fixed set of values, for rows that the test inserts.
var validTexts = map[string]string{
	"avatars.media_type": "image/png", "auth_challenges.purpose": "sign_in", "factors.type": "totp", "factors.status": "active",
	"legal_holds.until": "2020-01-01", "files.status": "ready", "files.record_type": "kyc_documents", "oidc_codes.purpose": "sign_in",
	"screening_hits.status": "open", "screening_hits.subject_type": "customer", "screening_hits.score": "0.900", "screening_hits.evidence": "{}",
	"imports.state": "done", "imports.on_duplicate": "skip",
	"kyc_decisions.state": "pending", "persona_links.relation": "spouse", "former_marks.kind": "name", "kyc_decision_exclusions.reason": "linked", "kyc_decisions.kyc_status": "verified", "kyc_decisions.verification_level": "basic",
}

// TestErasure_ClearsEveryTextColumn fills every text column of every table with personal data with a mark, erases the person, and looks
// for the marks in everything that the database holds. Columns and tables come from the schema: an erasure that forgets one fails.
func TestErasure_ClearsEveryTextColumn(t *testing.T) {
	s := servertest.Start(t)
	s.SkipRecordCheck() // the marks are not in the audit trail
	s.Admin()
	other := s.Admin().Create("/v1/personas", map[string]any{"first_name": "Bea", "last_name": "Other", "date_of_birth": "1990-01-01"})
	f := &filler{t: t, s: s, before: map[string]bool{}, marks: map[string][]string{}}
	for _, table := range s.PersonalData() {
		if table.Holds != "" {
			f.tables = append(f.tables, table.Name)
		}
	}
	slices.Sort(f.tables)
	for _, table := range f.tables {
		for _, row := range f.rows(table) {
			f.before[table+fmt.Sprint(row)] = true
		}
	}
	p := plant(t, s, "Anna")
	p.client.With("Idempotency-Key", "the-key-of-anna-27").Create("/v1/payers", map[string]any{"customer_id": p.customer, "name": "Anna"})
	s.Admin().Do("POST", "/v1/customers/"+p.customer+"/notify", map[string]any{"text": "About Anna", "user_ids": []string{s.User(access.Advisor).UserID}}).Expect(t, 200)
	f.ids = map[string]string{"user": p.client.UserID, "account": p.client.UserID, "customer": p.customer, "persona": p.persona,
		"record": p.customer, "parent": p.customer, "linked_persona": other}
	f.own = map[string]bool{p.client.UserID: true, p.customer: true, p.persona: true}
	f.plant()
	for _, table := range f.tables {
		f.fill(table)
	}
	if err := s.DB.Clean(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := lowered(storetest.Contents(t, s.DB))
	for column, marks := range f.marks {
		if !slices.ContainsFunc(marks, func(mark string) bool { return contains(all, mark) != "" }) {
			t.Errorf("%s: the mark was not written", column)
		}
	}
	erase(t, s.Admin(), "/v1/customers/"+p.customer)
	erase(t, s.Admin(), "/v1/users/"+p.client.UserID)
	erase(t, s.Admin(), "/v1/personas/"+p.persona)
	all = lowered(storetest.Contents(t, s.DB))
	for column, marks := range f.marks {
		left := slices.DeleteFunc(marks, func(mark string) bool { return contains(all, mark) == "" })
		switch reason := leftTexts[column]; {
		case len(left) > 0 && reason == "":
			t.Errorf("%s contains the text of %s after the erasure: erase it in ErasePerson of its module, or add the column to leftTexts", contains(all, left[0]), column)
		case len(left) == 0 && reason != "":
			t.Errorf("%s was erased: remove it from leftTexts", column)
		}
	}
}

func lowered(all map[string]string) map[string]string {
	for name, content := range all {
		all[name] = strings.ToLower(content)
	}
	return all
}

// contains returns the file or table that contains a text in any case; the contents are lowered.
func contains(all map[string]string, text string) string {
	text = strings.ToLower(text)
	for name, content := range all {
		if strings.Contains(content, text) {
			return name
		}
	}
	return ""
}

// filler marks the rows of a person.
type filler struct {
	t      *testing.T
	s      *servertest.Server
	tables []string
	before map[string]bool     // rows from before the person
	ids    map[string]string   // of the person's records, by the name of a column without _id
	own    map[string]bool     // the ids by which a row is one of the person
	marks  map[string][]string // by table and column
	dates  int                 // that are marks
}

// null stands for NULL.
const null = "\x00"

// rows returns the text columns of the rows of a table that are not of others.
func (f *filler) rows(table string) (rows []map[string]string) {
	f.t.Helper()
	var columns []string
	for _, c := range storetest.Columns(f.t, f.s.DB, table) {
		if c.Type == "text" {
			columns = append(columns, c.Name)
		}
	}
	if len(columns) == 0 {
		return nil
	}
	found, err := store.All(f.t.Context(), f.s.DB, func(row store.Scanner) (map[string]string, error) {
		values, dest := make([]*string, len(columns)), make([]any, len(columns))
		for i := range values {
			dest[i] = &values[i]
		}
		err := row.Scan(dest...)
		texts := map[string]string{}
		for i, name := range columns {
			if texts[name] = null; values[i] != nil {
				texts[name] = *values[i]
			}
		}
		return texts, err
	}, "SELECT "+strings.Join(columns, ", ")+" FROM "+table)
	if err != nil {
		f.t.Fatal(err)
	}
	for _, row := range found {
		if !f.before[table+fmt.Sprint(row)] && f.belongs(row) {
			rows = append(rows, row)
		}
	}
	return rows
}

// belongs reports whether a row names the person, or has no ids at all.
func (f *filler) belongs(row map[string]string) bool {
	if f.own == nil {
		return true
	}
	ids := 0
	for name, value := range row {
		if name != "id" && !strings.HasSuffix(name, "_id") && name != "caller" && name != "uploaded_by" {
			continue
		}
		if f.own[value] {
			return true
		}
		if name != "id" {
			ids++
		}
	}
	return ids == 0 && (row["created_by"] == "" || f.own[row["created_by"]])
}

// parts are the tables whose rows have further rows.
var parts = []string{"imports", "credentials", "sessions", "factors", "files", "kyc_decisions", "screening_hits"}

// plant inserts a row into each table that has none of the person. Tables that refer to others come after them.
func (f *filler) plant() {
	f.t.Helper()
	for tables := f.tables; len(tables) > 0; {
		var refused []string
		var because error
		for _, table := range tables {
			if len(f.rows(table)) == 0 {
				if err := f.insert(table); err != nil {
					refused, because = append(refused, table), err
					continue
				}
			}
			for _, row := range f.rows(table) {
				one := strings.TrimSuffix(table, "s")
				f.ids[one], f.ids[strings.TrimPrefix(strings.TrimPrefix(one, "kyc_"), "screening_")] = row["id"], row["id"]
				if slices.Contains(parts, table) {
					f.own[row["id"]] = true
				}
			}
		}
		if len(refused) == len(tables) {
			f.t.Fatalf("no row of the person was inserted into %v: %v", refused, because)
		}
		tables = refused
	}
}

// insert inserts a row of the person.
func (f *filler) insert(table string) error {
	var names, places []string
	var args []any
	for _, c := range storetest.Columns(f.t, f.s.DB, table) {
		value := f.value(table, c)
		if value == nil {
			continue
		}
		args = append(args, value)
		names, places = append(names, c.Name), append(places, fmt.Sprintf("$%d", len(args)))
	}
	statement := "INSERT INTO " + table + " (" + strings.Join(names, ", ") + ") VALUES (" + strings.Join(places, ", ") + ")"
	return f.s.DB.InTx(f.t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec(f.t.Context(), statement, args...)
		return err
	})
}

// value returns the content of a column in an inserted row; nil: none.
func (f *filler) value(table string, c storetest.Column) any {
	of := strings.TrimSuffix(strings.TrimSuffix(c.Name, "_id"), "_by")
	if fixed, ok := validTexts[table+"."+c.Name]; ok {
		return fixed
	}
	switch {
	case c.Type == "bytea" && !c.Null:
		return []byte("x")
	case c.Type == "boolean" && !c.Null:
		return false
	case c.Type != "text" && (!c.Null || c.Name == "ended_at"):
		return int64(1)
	case c.Type != "text":
		return nil
	case f.ids[of] != "":
		return f.ids[of]
	case c.Name == "id":
		return store.NewID()
	case of != c.Name && c.Null:
		return nil
	case of != c.Name:
		return f.ids["user"]
	}
	return "x"
}

// fill adds a mark to each text of the person in a table, except ids and texts that the schema restricts.
func (f *filler) fill(table string) {
	f.t.Helper()
	for _, row := range f.rows(table) {
		for _, name := range slices.Sorted(maps.Keys(row)) {
			column, value := table+"."+name, row[name]
			if asStored[column] {
				f.marks[column] = append(f.marks[column], value)
				continue
			}
			if _, err := types.ParseID(value); err == nil || untouched[column] || (value == null || value == "") && idColumn.MatchString(name) {
				continue
			}
			mark := "mark" + strings.NewReplacer(".", "x", "_", "y").Replace(column) + "q"
			text := marked(value, mark)
			if _, err := types.ParseDate(value); err == nil || dateColumn.MatchString(name) {
				f.dates++
				mark = fmt.Sprintf("%04d-11-%02d", 1801+f.dates/28, 1+f.dates%28)
				text = mark
			}
			if f.update(table, row, name, text) {
				f.marks[column] = append(f.marks[column], mark)
			}
		}
	}
}

var dateColumn = regexp.MustCompile(`^date_|_on$|_date$`)

var idColumn = regexp.MustCompile(`_(id|by)$`)

// update changes a column of a row. It returns false if a constraint of the schema rejects the text.
func (f *filler) update(table string, row map[string]string, name, value string) bool {
	f.t.Helper()
	args, where := []any{value}, []string{}
	for other, text := range row {
		if text == null {
			where = append(where, other+" IS NULL")
			continue
		}
		args = append(args, text)
		where = append(where, fmt.Sprintf("%s = $%d", other, len(args)))
	}
	err := f.s.DB.InTx(f.t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec(f.t.Context(), "UPDATE "+table+" SET "+name+" = $1 WHERE "+strings.Join(where, " AND "), args...)
		return err
	})
	if err != nil && strings.Contains(strings.ToLower(err.Error()), "constraint") {
		return false
	}
	if err != nil {
		f.t.Fatalf("%s.%s: %v", table, name, err)
	}
	row[name] = value
	return true
}

// marked returns a text with a mark. A JSON object or array gets the mark in its texts.
func marked(value, mark string) string {
	var parsed any
	if value == null {
		return mark
	}
	if strings.Trim(value[:min(1, len(value))], "[{") != "" || json.Unmarshal([]byte(value), &parsed) != nil {
		return value + mark
	}
	text, _ := json.Marshal(markedJSON(parsed, mark))
	return string(text)
}

func markedJSON(value any, mark string) any {
	switch v := value.(type) {
	case map[string]any:
		v["mark"] = mark
	case []any:
		for i := range v {
			v[i] = markedJSON(v[i], mark)
		}
	}
	return value
}
