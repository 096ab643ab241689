package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// The tests of this file keep the prose of the repository in plain English: comments of Go, JavaScript and scripts,
// Markdown documents, and the English texts of the API. CONTRIBUTING.md has the rules under "Plain English".
// Identifiers are left to reviewers. The file uses only the standard library: "go test words_test.go" runs it alone.

// maxSentence is the number of words at which a sentence fails the test. Writers should stay below 20.
const maxSentence = 40

// wordRule is a tell-tale and the number of the rule in CONTRIBUTING.md that it breaks.
type wordRule struct {
	pattern *regexp.Regexp
	rule    int
	advice  string
}

var wordRules = []wordRule{
	{regexp.MustCompile(`(?i)\b(told|hears|heard)\b`), 1, "use an ordinary verb: return, report, notify, send, reject"},
	{regexp.MustCompile(`(?i)\b(he|his|him|himself)\b`), 2, `a program or a record is "it", people are "they"`},
	{regexp.MustCompile(`(?i)\b(whoever|(somebody|someone|anybody|nobody|one) who)\b`), 3, "name the subject: the caller, former participants"},
	{regexp.MustCompile(`(?i)\b((it|that|which|they) (is|are) none|there is (no )?room|turn(s|ed)? away|for want of|hand(s|ed|ing)? over)\b`), 4,
		"use the field's term: rejected, missing, invalid, full, passes"},
	{regexp.MustCompile(`(?i)\b(doors?|neighbours?|strangers?)\b`), 8, "no metaphors"},
}

// clauseAsSubject is the start of a sentence that is either a question or breaks rule 3.
var clauseAsSubject = regexp.MustCompile(`^(Who|Whom|Whose|What)\b`)

// wordExceptions lists findings that are right as they are. An entry that no longer matches fails the test.
var wordExceptions = []struct{ file, word, reason string }{}

type finding struct {
	file    string
	line    int
	word    string
	rule    int
	problem string
}

func TestWords_ArePlainEnglish(t *testing.T) {
	passages, err := collectPassages()
	if err != nil {
		t.Fatal(err)
	}
	perFolder := map[string]int{}
	used := make([]bool, len(wordExceptions))
	for _, p := range passages {
		for _, f := range p.check() {
			if i := exceptionOf(f); i >= 0 {
				used[i] = true
				continue
			}
			perFolder[folderOf(f.file)]++
			t.Errorf("%s:%d: %q (rule %d: %s)", f.file, f.line, f.word, f.rule, f.problem)
		}
	}
	for i, e := range wordExceptions {
		if !used[i] {
			t.Errorf("the exception for %q in %s matches nothing; delete it", e.word, e.file)
		}
	}
	for _, folder := range slices.Sorted(maps.Keys(perFolder)) {
		t.Logf("%5d findings in %s", perFolder[folder], folder)
	}
	if t.Failed() {
		t.Log(`the rules are in CONTRIBUTING.md under "Plain English"`)
	}
}

func TestWords_FindsTellTales(t *testing.T) {
	for text, want := range map[string]string{
		"The caller is told that he must wait.":                          "told he",
		"What nothing is left of is deleted.":                            "What",
		"What may a caller do?":                                          "",
		"Who is allowed to read? Who has left reads nothing.":            "Who",
		"Whoever comes later is turned away.":                            "Whoever turned away",
		"The `told` column and the sample \"Hannes His\" are quoted.":    "",
		"The theme of this other thing is the whole.":                    "",
		"It hands\nover the rows, for there is room.":                    "hands over there is room",
		strings.Repeat("word ", maxSentence) + "end.":                    "41 words",
		strings.Repeat("word ", maxSentence-1) + "end. And one more.":    "",
		"| Name | What it holds | He reads |":                            "What He",
		"## What is measured":                                            "What",
		"* Who reads it\n* The reader":                                   "Who",
		"> He is quoted.":                                                "",
		"See [the page](what-he-said.md) and https://told.example/he.\n": "",
	} {
		var got []string
		for _, p := range markdownPassages("sample.md", text) {
			for _, f := range p.check() {
				got = append(got, strings.Join(strings.Fields(f.word), " "))
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: got %q, want %q", text, strings.Join(got, " "), want)
		}
	}
}

func exceptionOf(f finding) int {
	for i, e := range wordExceptions {
		if e.file == f.file && e.word == f.word {
			return i
		}
	}
	return -1
}

// folderOf returns the first two parts of the path of a file's directory.
func folderOf(file string) string {
	parts := strings.Split(path.Dir(file), "/")
	return path.Join(parts[:min(len(parts), 2)]...)
}

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

var sentenceEnd = regexp.MustCompile(`[.?!]+[)”"']*\s+`)

func (p passage) check() []finding {
	var found []finding
	add := func(offset int, word string, rule int, problem string) {
		found = append(found, finding{p.file, p.lineAt(offset), word, rule, problem})
	}
	for _, r := range wordRules {
		for _, at := range r.pattern.FindAllStringIndex(p.text, -1) {
			add(at[0], p.text[at[0]:at[1]], r.rule, r.advice)
		}
	}
	for start, end := range p.sentences() {
		sentence := p.text[start:end]
		trimmed := strings.TrimLeftFunc(sentence, func(r rune) bool { return !unicode.IsLetter(r) })
		if word := clauseAsSubject.FindString(trimmed); word != "" && !strings.Contains(sentence, "?") {
			add(start+len(sentence)-len(trimmed), word, 3, "a sentence that starts with this word must be a question")
		}
		if n := len(strings.Fields(sentence)); n > maxSentence {
			add(start, fmt.Sprintf("%d words", n), 5, fmt.Sprintf("split the sentence; %d words is the limit", maxSentence))
		}
	}
	slices.SortStableFunc(found, func(a, b finding) int { return a.line - b.line })
	return found
}

// sentences yields the start and the end of each sentence. A full stop before a lower-case letter ends no sentence.
func (p passage) sentences() func(yield func(start, end int) bool) {
	return func(yield func(int, int) bool) {
		start := 0
		for _, at := range sentenceEnd.FindAllStringIndex(p.text, -1) {
			next, _ := utf8.DecodeRuneInString(p.text[at[1]:])
			if unicode.IsLower(next) && next != 'x' { // a masked name may start a sentence
				continue
			}
			if !yield(start, at[1]) {
				return
			}
			start = at[1]
		}
		if strings.TrimSpace(p.text[start:]) != "" {
			yield(start, len(p.text))
		}
	}
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
			if slices.Contains([]string{".git", "testdata", "vendor", "node_modules", "data", "demo-data", "results"}, entry.Name()) {
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
	case name == "words_test.go": // its samples break the rules on purpose
		return nil
	case strings.HasSuffix(name, ".go"):
		return goPassages
	case strings.HasSuffix(name, ".md"):
		return noError(markdownPassages)
	case strings.HasSuffix(name, ".js"), strings.HasSuffix(name, ".mjs"):
		return noError(scriptPassages)
	case strings.HasPrefix(name, "locales/en/"):
		return jsonPassages
	case name == ".ci/run", name == "Makefile", name == "Dockerfile", strings.HasSuffix(name, ".yml"), strings.HasSuffix(name, ".service"):
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
