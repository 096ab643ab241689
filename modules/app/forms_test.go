package app_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"kontor/modules/app"
)

const goldenForms = "../../testdata/forms.golden"

// TestForms_MatchTheGoldenFile lists the members that the digest of each record type covers. Another list makes the digests of
// existing databases invalid, so it needs another form of the type.
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
	for _, p := range app.Proofs() {
		found := errors.New("found")
		err := p.Each(t.Context(), s.server.DB, func(id string) error {
			record, err := p.Read(context.Background(), s.server.DB, id)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, "%s %s answer %s\n", p.Type, app.FormOf(p), members(reflect.TypeOf(record.Answer)))
			fmt.Fprintf(&b, "%s %s stored %s\n", p.Type, app.FormOf(p), storedMembers(t, record.Stored))
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
	for _, line := range withOldForms(want, got) {
		t.Errorf("the members of a record have changed, but the Form of its records.Proof has not. Without a new one, "+
			"\"kontor check\" reports every existing record of the type as changed. Increase it, then run \"make golden\".\n%s", line)
	}
	if t.Failed() {
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

// withOldForms returns the lines of record types with other members in the form that existing databases have. New types have no records
// there. Digests do not change by a new member that is left out when it is absent, which has a question mark.
func withOldForms(want, got string) (wrong []string) {
	before := map[string]string{}
	for line := range strings.Lines(want) {
		name, list, _ := strings.Cut(line, "{")
		before[name] = list
	}
	for line := range strings.Lines(got) {
		name, list, _ := strings.Cut(line, "{")
		old, known := before[name]
		kept := optional.ReplaceAllStringFunc(list, func(member string) string {
			if strings.Contains(old, member) {
				return member
			}
			return ""
		})
		if known && kept != old {
			wrong = append(wrong, line)
		}
	}
	return wrong
}

var optional = regexp.MustCompile(` \w+\?`)

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

// storedMembers lists the members of what a record stores beside its answer.
func storedMembers(t *testing.T, stored any) string {
	t.Helper()
	text, ok := stored.(jsontext.Value)
	if !ok {
		return members(reflect.TypeOf(stored))
	}
	names, in := []string{}, jsontext.NewDecoder(bytes.NewReader(text))
	for token, err := in.ReadToken(); err == nil; token, err = in.ReadToken() {
		if token.Kind() == '"' && in.StackDepth() == 1 {
			names = append(names, token.String())
			if err := in.SkipValue(); err != nil {
				t.Fatal(err)
			}
		}
	}
	return "{" + strings.Join(names, " ") + "}"
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
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		absent := ""
		if strings.Contains(options, "omit") {
			absent = "?"
		}
		switch {
		case name == "-" || !field.IsExported():
		case field.Tag.Get("form") == "later" && strings.HasSuffix(field.Tag.Get("json"), ",omitzero"):
			// Only records of later versions have it: the digest of a record without it is that of the versions before.
		case name == "" && field.Anonymous:
			names = append(names, strings.Trim(members(field.Type), "{}"))
		case name != "":
			names = append(names, name+members(field.Type)+absent)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "{" + strings.Join(names, " ") + "}"
}
