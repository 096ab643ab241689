package treetest_test

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"kontor/store/testenv"
)

// The tests of this file keep the prose of the repository in plain English: comments of Go, JavaScript and scripts,
// Markdown documents, and the English texts of the API. CONTRIBUTING.md has the rules under "Plain English".
// Identifiers are left to reviewers. prose_test.go finds the prose.

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
	{regexp.MustCompile(`(?i)\b(nobody|everybody)\b`), 3, "name the subject: no caller, all users"},
	{regexp.MustCompile(`(?i)\b(anew|goes on|went on|(comes?|came) back|thereby|in vain|(let|lets) in|knows)\b`), 4,
		"use the ordinary word: again, continues, returns, is accepted, depends on"},
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
	t.Chdir(testenv.Root())
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
	t.Chdir(testenv.Root())
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
		"Nobody is let in, and counting\nstarts anew.":                   "Nobody let in anew",
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
