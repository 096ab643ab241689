package locales

import (
	"fmt"
	"strings"
)

// text is a parsed text: literal parts and, between each two of them, the name of a placeholder.
//
// Texts need neither conditions nor plural forms, so that they need no template library.
type text struct {
	literals []string
	names    []string // one fewer than literals
}

const opening, closing = "{{.", "}}"

// parse parses a text. Two braces are allowed around the name of a placeholder only.
func parse(source string) (t text, err error) {
	rest := source
	for {
		literal, after, found := strings.Cut(rest, opening)
		if strings.Contains(literal, "{{") || strings.Contains(literal, closing) {
			return text{}, fmt.Errorf("invalid placeholder in %q", source)
		}
		t.literals = append(t.literals, literal)
		if !found {
			return t, nil
		}
		var name string
		if name, rest, found = strings.Cut(after, closing); !found || !isName(name) {
			return text{}, fmt.Errorf("invalid placeholder in %q", source)
		}
		t.names = append(t.names, name)
	}
}

// isName reports whether a placeholder consists of ASCII letters and digits.
func isName(name string) bool {
	for _, c := range name {
		if (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}

// fill returns the text with the values of its placeholders. ok is false if one has no value.
func (t text) fill(args map[string]any) (filled string, ok bool) {
	if len(t.names) == 0 {
		return t.literals[0], true
	}
	var b strings.Builder
	b.WriteString(t.literals[0])
	for i, name := range t.names {
		value, ok := args[name]
		if !ok {
			return "", false
		}
		fmt.Fprint(&b, value)
		b.WriteString(t.literals[i+1])
	}
	return b.String(), true
}
