package treetest_test

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A passage is a paragraph, a heading, a list item or a table cell: sentences do not continue beyond it.
type passage struct {
	file string
	text string
	// starts holds the offset in text at which each source line begins; line i of the passage is first+i.
	starts []int
	first  int
}

func newPassage(file string, first int, lines []string) passage {
	p := passage{file: file, first: first}
	var b strings.Builder
	for _, line := range lines {
		p.starts = append(p.starts, b.Len())
		b.WriteString(line + "\n")
	}
	p.text = strings.ReplaceAll(mask(b.String()), "\n", " ")
	return p
}

func (p passage) lineAt(offset int) int {
	i, found := slices.BinarySearch(p.starts, offset)
	if !found {
		i--
	}
	return p.first + i
}

var (
	linkTarget = regexp.MustCompile(`\]\([^)]*\)`)
	literal    = regexp.MustCompile("`[^`]*`|\"[^\"]{1,80}\"|“[^”]{1,80}”|\\bhttps?://\\S+")
	markup     = regexp.MustCompile(`[*_]{1,2}|!\[|\[|\]`)
)

// mask replaces code, quotations, addresses and markup with filler of the same length, so that offsets stay valid.
func mask(text string) string {
	text = linkTarget.ReplaceAllStringFunc(text, func(s string) string { return strings.Repeat(" ", len(s)) })
	text = literal.ReplaceAllStringFunc(text, func(s string) string { return strings.Repeat("x", len(s)) })
	return markup.ReplaceAllStringFunc(text, func(s string) string { return strings.Repeat(" ", len(s)) })
}

// collectPassages reads all prose of the repository.
func collectPassages() ([]passage, error) {
	var all []passage
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if entry.IsDir() {
			if slices.Contains([]string{".git", "testdata", "vendor", "node_modules", "data", "demo-data", "results", "dist"}, entry.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		read := passageReader(name)
		if read == nil {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		found, err := read(name, string(text))
		all = append(all, found...)
		return err
	})
	return all, err
}

// passageReader returns the function that extracts the prose of a file, nil for a file without any.
// Migrations are frozen, so their comments are not read.
func passageReader(name string) func(name, text string) ([]passage, error) {
	noError := func(f func(name, text string) []passage) func(string, string) ([]passage, error) {
		return func(name, text string) ([]passage, error) { return f(name, text), nil }
	}
	switch {
	case name == "modules/app/treetest/words_test.go": // its samples break the rules on purpose
		return nil
	case strings.HasSuffix(name, "_gen.go"): // texts of the API document, in a form that tools read
		return nil
	case strings.HasSuffix(name, ".go"):
		return goPassages
	case strings.HasSuffix(name, ".md"):
		return noError(markdownPassages)
	case strings.HasSuffix(name, ".js"), strings.HasSuffix(name, ".mjs"):
		return noError(scriptPassages)
	case strings.HasPrefix(name, "locales/en/"):
		return jsonPassages
	case name == ".ci/run", name == "Makefile", name == "Dockerfile", strings.HasSuffix(name, ".sh"), strings.HasSuffix(name, ".yml"), strings.HasSuffix(name, ".service"):
		return noError(hashPassages)
	}
	return nil
}

// textFields are the members of Go literals whose texts people read in the API document or in the README.
var textFields = []string{"Summary", "Description", "Meaning"}

func goPassages(name, text string) ([]passage, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, text, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	var all []passage
	for _, group := range file.Comments {
		var lines []string
		first := set.Position(group.Pos()).Line
		for _, c := range group.List {
			body, isLine := strings.CutPrefix(c.Text, "//")
			switch {
			case !isLine:
				body = strings.TrimSuffix(strings.TrimPrefix(c.Text, "/*"), "*/")
			case body != "" && body[0] != ' ' && body[0] != '\t': // a directive such as //go:embed
				body = ""
			}
			lines = append(lines, strings.Split(strings.TrimPrefix(body, " "), "\n")...)
		}
		all = append(all, paragraphs(name, first, lines)...)
	}
	ast.Inspect(file, func(node ast.Node) bool {
		pair, ok := node.(*ast.KeyValueExpr)
		if !ok {
			return true
		}
		if key, ok := pair.Key.(*ast.Ident); ok && slices.Contains(textFields, key.Name) {
			all = append(all, newPassage(name, set.Position(pair.Pos()).Line, []string{literalText(pair.Value)}))
		}
		return true
	})
	return all, nil
}

// literalText returns the text of a string literal or of a sum of them, on one line.
func literalText(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		if err == nil {
			return strings.ReplaceAll(text, "\n", " ")
		}
	case *ast.BinaryExpr:
		return literalText(e.X) + literalText(e.Y)
	}
	return ""
}

var listItem = regexp.MustCompile(`^\s*([-*]|\d+\.)\s+`)

// paragraphs splits a comment at empty lines and list items, and leaves out indented code.
func paragraphs(name string, first int, lines []string) []passage {
	var all []passage
	var block []string
	begin := first
	flush := func() {
		if len(block) > 0 {
			all = append(all, newPassage(name, begin, block))
		}
		block = nil
	}
	for i, line := range lines {
		item := listItem.MatchString(line) || strings.HasPrefix(line, "  ") // such as a list of fields
		code := strings.HasPrefix(line, "\t")
		if strings.TrimSpace(line) == "" || item || code {
			flush()
		}
		if code || strings.TrimSpace(line) == "" {
			continue
		}
		if len(block) == 0 {
			begin = first + i
		}
		block = append(block, listItem.ReplaceAllString(line, ""))
	}
	flush()
	return all
}

// markdownPassages reads paragraphs, headings, list items and table cells; code, quotations and HTML comments are left out.
func markdownPassages(name, text string) []passage {
	var all []passage
	var block []string
	begin, fenced := 1, false
	flush := func() {
		all = append(all, paragraphs(name, begin, block)...)
		block = nil
	}
	for i, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(trimmed, "```"):
			flush()
			fenced = !fenced
		case fenced:
		case strings.HasPrefix(trimmed, "|"):
			flush()
			for _, cell := range strings.Split(strings.Trim(trimmed, "|"), "|") {
				all = append(all, newPassage(name, i+1, []string{strings.TrimSpace(cell)}))
			}
		case trimmed == "", strings.HasPrefix(trimmed, "#"), strings.HasPrefix(trimmed, "<!--"), strings.HasPrefix(trimmed, ">"):
			flush()
			if strings.HasPrefix(trimmed, "#") {
				all = append(all, newPassage(name, i+1, []string{strings.TrimLeft(trimmed, "# ")}))
			}
		default:
			if len(block) == 0 {
				begin = i + 1
			}
			block = append(block, trimmed)
		}
	}
	flush()
	return all
}

// scriptPassages reads the comments of JavaScript that stand on lines of their own.
func scriptPassages(name, text string) []passage {
	return commentLines(name, text, regexp.MustCompile(`^\s*(//|/\*\*?|\*/?)(\s|$)`))
}

// hashPassages reads the comments of scripts, Makefiles and units that stand on lines of their own.
func hashPassages(name, text string) []passage {
	return commentLines(name, text, regexp.MustCompile(`^\s*#(\s|$)`))
}

func commentLines(name, text string, start *regexp.Regexp) []passage {
	var all []passage
	var block []string
	begin := 1
	for i, line := range append(strings.Split(text, "\n"), "") {
		mark := start.FindString(line)
		if mark == "" {
			all = append(all, paragraphs(name, begin, block)...)
			block, begin = nil, i+2
			continue
		}
		block = append(block, strings.TrimSuffix(line[len(mark):], "*/"))
	}
	return all
}

var tag = regexp.MustCompile(`<[^>]*>`)

// jsonPassages reads the texts of a locale file, each on the line of its key.
func jsonPassages(name, text string) ([]passage, error) {
	var texts map[string]string
	if err := json.Unmarshal([]byte(text), &texts); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var all []passage
	for i, line := range strings.Split(text, "\n") {
		parts := strings.SplitN(strings.TrimSpace(line), `"`, 3)
		if len(parts) < 2 {
			continue
		}
		for _, paragraph := range strings.Split(tag.ReplaceAllString(texts[parts[1]], "\n\n"), "\n\n") {
			all = append(all, newPassage(name, i+1, []string{paragraph}))
		}
	}
	return all, nil
}
