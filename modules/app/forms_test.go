package app_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"kontor/modules/app"
)

const goldenForms = "../../testdata/forms.golden"

// TestForms_MatchTheGoldenFile lists the members that the digest of each record type covers. Another list makes the digests of
// existing databases invalid, so it needs another form identifier.
func TestForms_MatchTheGoldenFile(t *testing.T) {
	s := newScenario(t)
	s.run()
	customer := s.id(s.admin, "/v1/customers", map[string]any{"first_name": "Anna", "last_name": "Muster", "email": "anna@example.ch"})
	task := s.id(s.admin, "/v1/customers/"+customer+"/tasks", map[string]any{"title": "Sign", "category": "sign"}) // the scenario has deleted its tasks
	s.file(s.admin, "/v1/customers/"+customer+"/tasks/"+task+"/files")
	var kyc struct{ Documents []struct{ ID string } }
	s.do(s.admin, "PUT", "/v1/customers/"+customer+"/kyc", map[string]any{"documents": []map[string]any{
		{"type": "passport", "number": "X8", "expiry_date": "2031-05-01", "country": "CHE"}}})
	s.do(s.admin, "GET", "/v1/customers/"+customer+"/kyc", nil).Into(s, &kyc)
	s.file(s.admin, "/v1/customers/"+customer+"/kyc/documents/"+kyc.Documents[0].ID+"/files") // and the file of a document
	var b strings.Builder
	b.WriteString(app.FormID + "\n")
	for _, p := range app.Proofs() {
		found := errors.New("found")
		err := p.Each(t.Context(), s.server.DB, func(id string) error {
			record, err := p.Read(context.Background(), s.server.DB, id)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, "%s answer %s\n", p.Type, members(reflect.TypeOf(record.Answer)))
			fmt.Fprintf(&b, "%s stored %s\n", p.Type, members(reflect.TypeOf(record.Stored)))
			return found
		})
		if !errors.Is(err, found) {
			t.Fatalf("%s: no record was read: %v", p.Type, err)
		}
	}
	text, err := os.ReadFile(goldenForms)
	if err != nil && !*update {
		t.Fatal(err)
	}
	want, got := string(text), b.String()
	if got == want {
		return
	}
	if id, _, _ := strings.Cut(want, "\n"); id == app.FormID && !onlyNewTypes(want, got) {
		t.Errorf("the members of a record have changed, but formID in modules/app/proofs.go has not. Without a new formID, "+
			"\"kontor check\" reports every existing record as changed. Increase its number, then run \"make golden\".\n%s", changedLines(want, got))
		return
	}
	if *update {
		if err := os.WriteFile(goldenForms, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("the form of records has changed; run \"make golden\" and review the difference:\n%s", changedLines(want, got))
}

// onlyNewTypes reports whether the only difference are record types that were not digested before. An existing database must have no
// records of them: their tables must come with the same version.
func onlyNewTypes(want, got string) bool {
	before := strings.Split(want, "\n")
	known := map[string]bool{}
	for _, line := range before {
		recType, _, _ := strings.Cut(line, " ")
		known[recType] = true
	}
	rest := slices.DeleteFunc(strings.Split(got, "\n"), func(line string) bool {
		recType, _, _ := strings.Cut(line, " ")
		return !known[recType]
	})
	return slices.Equal(before, rest)
}

func changedLines(want, got string) string {
	var b strings.Builder
	before, after := strings.Split(want, "\n"), strings.Split(got, "\n")
	for _, line := range before {
		if !slices.Contains(after, line) {
			b.WriteString("- " + line + "\n")
		}
	}
	for _, line := range after {
		if !slices.Contains(before, line) {
			b.WriteString("+ " + line + "\n")
		}
	}
	return b.String()
}

// members lists the JSON members of a type, in their order.
func members(t reflect.Type) string {
	if t == nil {
		return "-"
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return members(t.Elem())
	case reflect.Struct:
	default:
		return ""
	}
	var names []string
	for i := range t.NumField() {
		field := t.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-" || !field.IsExported():
		case field.Tag.Get("form") == "later" && strings.HasSuffix(field.Tag.Get("json"), ",omitzero"):
			// Only records of later versions have it: the digest of a record without it is that of the versions before.
		case name == "" && field.Anonymous:
			names = append(names, strings.Trim(members(field.Type), "{}"))
		case name != "":
			names = append(names, name+members(field.Type))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "{" + strings.Join(names, " ") + "}"
}
