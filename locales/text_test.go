package locales

import "testing"

func TestText(t *testing.T) {
	args := map[string]any{"Max": 3, "Name": "{{.Max}}"}
	for source, want := range map[string]string{
		"": "", "plain": "plain", "{{.Max}}": "3", "at most {{.Max}}.": "at most 3.", "{{.Max}}{{.Max}} {": "33 {",
		"{{.Name}}": "{{.Max}}", // values are not parsed
	} {
		parsed, err := parse(source)
		if err != nil {
			t.Errorf("%q: %v", source, err)
		} else if got, ok := parsed.fill(args); !ok || got != want {
			t.Errorf("%q: got %q, %t", source, got, ok)
		}
	}
	for _, source := range []string{"{{", "}}", "{{Max}}", "{{.Max}", "{{.}}", "{{.Max | print}}", "{{ .Max }}", "{{if .Max}}", "{{.Max}} }}", "{{.Max.Min}}"} {
		if _, err := parse(source); err == nil {
			t.Errorf("%q is valid", source)
		}
	}
	missing, err := parse("{{.Max}} {{.Min}}")
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := missing.fill(args); ok {
		t.Errorf("a text without a value of its placeholder is %q", got)
	}
}
