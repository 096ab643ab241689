package recordtype

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
	"kontor/store/audittrail"
)

// note is a record of this test.
type note struct {
	ID         string         `json:"id"`
	Title      string         `json:"title"`
	Due        types.Date     `json:"due"`
	Email      *string        `json:"email"`
	Metadata   jsontext.Value `json:"metadata"`
	CreatedAt  store.Time     `json:"created_at"`
	CreatedBy  string         `json:"created_by"`
	ByStaff    bool           `json:"-" column:"by_staff"`
	ModifiedAt store.Time     `json:"modified_at"`
	ModifiedBy string         `json:"modified_by"`
	ErasedAt   *store.Time    `json:"erased_at,omitzero"`
	Version    int64          `json:"-" column:"version"`
}

func (n note) ETag() string { return endpoint.VersionTag(n.Version) }

func (n note) Erased() bool { return n.ErasedAt != nil }

func declare(columns ...Column) Declaration[note] {
	return Declaration[note]{Type: access.Payers, From: "notes", Missing: apierr.PayerNotFound, Columns: columns}
}

var (
	title    = Column{Name: "title", Personal: "''", Folded: true, Parse: RequiredLine(5), Weighs: true}
	due      = Column{Name: "due", Public: "a date of the bank", Parse: Given(types.ParseDate)}
	email    = Column{Name: "email", Personal: "NULL", Folded: true, Parse: Parsed(types.ParseEmail)}
	metadata = Column{Name: "metadata", Personal: "'{}'", Parse: JSON, Fixed: true}
)

func TestNew_RejectsAnIncompleteDeclaration(t *testing.T) {
	for want, d := range map[string]Declaration[note]{
		"notes.email is personal or public": declare(Column{Name: "email"}),
		"notes.title is personal or public": declare(Column{Name: "title", Personal: "''", Public: "both"}),
		"notes.telephone has no member":     declare(Column{Name: "telephone", Personal: "''"}),
		"due of notes has no column":        declare(title, email, metadata),
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, want) {
					t.Errorf("got %q, want %q", got, want)
				}
			}()
			New(d)
		}()
	}
}

func TestNew_DerivesTheStatements(t *testing.T) {
	notes := New(declare(title, due, email, metadata))
	for got, want := range map[string]string{
		notes.insert: "INSERT INTO notes (id, title, title_key, due, email, email_key, metadata, created_at, created_by, by_staff, modified_at, modified_by, version, erased_at) " +
			"VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)",
		notes.update: "UPDATE notes SET title = $2, title_key = $3, due = $4, email = $5, email_key = $6, modified_at = $7, modified_by = $8, version = $9 WHERE id = $1",
		notes.erase: "UPDATE notes SET title = '', title_key = '', email = NULL, email_key = '', metadata = '{}', " +
			"modified_at = $2, modified_by = $3, version = version + 1, erased_at = $2 WHERE id = $1",
	} {
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// Digests of records that were made before the declaration stay valid: the stored part has the bytes of the struct that it replaces.
func TestRecord_HasTheBytesOfAStruct(t *testing.T) {
	notes := New(declare(title, due, email, metadata))
	for _, text := range []string{"", "Plain", `"quoted" \ back`, "line\u2028separator <&> \t", "Zürich"} {
		address := text
		got := notes.Record(note{Title: text, Email: &address, Version: 7})
		want := store.Record{Answer: got.Answer, Stored: struct {
			Version  int64  `json:"version"`
			ByStaff  bool   `json:"by_staff"`
			TitleKey string `json:"title_key"`
			EmailKey string `json:"email_key"`
		}{7, false, types.Fold(text), types.Fold(text)}}
		if a, b := encoded(t, got), encoded(t, want); a != b {
			t.Errorf("%q: got %s, want %s", text, a, b)
		}
	}
}

func encoded(t *testing.T, r audittrail.Record) string {
	t.Helper()
	text, err := json.Marshal(r.Stored, json.Deterministic(true))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestParse_ChecksTheMembersThatAnInputHas(t *testing.T) {
	notes := New(declare(title, due, email, metadata))
	before := note{Title: "Old", Email: types.NilIfEmpty("old@example.ch"), Metadata: jsontext.Value(`{"a":1}`)}
	given := func(text string) endpoint.Optional[string] {
		return endpoint.Optional[string]{Given: true, Value: text}
	}
	type update struct {
		ID       string                            `path:"id"`
		Title    endpoint.Optional[string]         `json:"title"`
		Due      *string                           `json:"due"`
		Email    endpoint.Optional[string]         `json:"email"`
		Metadata endpoint.Optional[jsontext.Value] `json:"metadata"`
	}
	date, wrong := "2026-02-28", "2026-02-30"
	day, err := types.ParseDate(date)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		in    update
		want  note
		wrong string
	}{
		"nothing":  {update{}, before, ""},
		"title":    {update{Title: given("New")}, note{Title: "New", Email: before.Email, Metadata: before.Metadata}, ""},
		"none":     {update{Email: given("")}, note{Title: "Old", Metadata: before.Metadata}, ""},
		"null":     {update{Metadata: endpoint.Optional[jsontext.Value]{Given: true, Null: true}}, note{Title: "Old", Email: before.Email, Metadata: jsontext.Value("{}")}, ""},
		"long":     {update{Title: given("longer")}, note{}, "title"},
		"required": {update{Title: given("")}, note{}, "title"},
		"address":  {update{Email: given("@")}, note{}, "email"},
		"day":      {update{Due: &wrong}, note{}, "due"},
		"empty":    {update{Due: new(string)}, note{}, "due"},
		"date":     {update{Due: &date}, note{Title: "Old", Due: day, Email: before.Email, Metadata: before.Metadata}, ""},
	} {
		var problems apierr.Fields
		got := notes.Parse(&problems, &c.in, before)
		var fields []string
		for field := range problems.All {
			fields = append(fields, field)
		}
		if c.wrong != strings.Join(fields, " ") {
			t.Errorf("%s: errors of %q, want %q", name, fields, c.wrong)
		}
		if a, b := fmt.Sprint(encoded(t, store.Record{Stored: got})), encoded(t, store.Record{Stored: c.want}); c.wrong == "" && a != b {
			t.Errorf("%s: got %s, want %s", name, a, b)
		}
	}
}
