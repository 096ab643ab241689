package endpoint

import (
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// An Explanation says how the rows of a request were read, for people who look for the cause of its time. It has no value of a request or a
// record: statements have placeholders.
type Explanation struct {
	// Thorough asks also how the database runs each statement, which takes a further statement.
	Thorough bool
	Steps    []Step // in their order
}

// Step is one statement of a request.
type Step struct {
	Name         string   `json:"name"` // what it is for
	Plan         string   `json:"plan"` // the way to read the rows
	Why          string   `json:"why"`  // it was chosen
	Rows         int64    `json:"rows"` // that were read or counted
	Milliseconds float64  `json:"ms"`
	SQL          string   `json:"sql,omitzero"`      // with placeholders
	Database     []string `json:"database,omitzero"` // how the database runs the statement, in its own words
}

const (
	// maxSteps bounds the steps of an explanation. A table for a spreadsheet reads many pages; the first ones explain it.
	maxSteps = 12
	// maxExplanation bounds the header with an explanation, in bytes, and maxShownText each of its texts.
	maxExplanation = 7000
	maxShownText   = 1500
)

// Begin begins a step. done adds it, with the number of its rows and the time that it took.
func (x *Explanation) Begin(s Step) (done func(rows int64)) {
	began := time.Now()
	return func(rows int64) {
		s.Rows, s.Milliseconds = rows, float64(time.Since(began).Microseconds())/1000
		if len(x.Steps) < maxSteps {
			x.Steps = append(x.Steps, s)
		}
	}
}

// Header returns the steps as JSON on one line in ASCII. Long statements are cut. When the whole is too long, the statements and the words of
// the database are left out, those of the last steps at last.
func (x *Explanation) Header() string {
	steps := slices.Clone(x.Steps)
	for i := range steps {
		steps[i].SQL, steps[i].Database = shown(steps[i].SQL), slices.Clone(steps[i].Database)
		for j, line := range steps[i].Database {
			steps[i].Database[j] = shown(line)
		}
	}
	text, err := json.Marshal(steps)
	for i := 0; i < len(steps) && err == nil && len(text) > maxExplanation; i++ {
		steps[i].SQL, steps[i].Database = "", nil
		text, err = json.Marshal(steps)
	}
	if err != nil { // of texts and numbers there is none
		return "[]"
	}
	return string(text)
}

// shown returns a text on one line, in ASCII and of bounded length.
func shown(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, strings.Join(strings.Fields(text), " "))
	if len(text) > maxShownText {
		text = text[:maxShownText] + " ..."
	}
	return text
}

// Log writes a line for each step.
func (x *Explanation) Log(log func(attrs ...slog.Attr)) {
	for _, s := range x.Steps {
		log(slog.String("step", s.Name), slog.String("plan", s.Plan), slog.String("why", s.Why), slog.Int64("rows", s.Rows), slog.Float64("ms", s.Milliseconds),
			slog.String("sql", strings.Join(strings.Fields(s.SQL), " ")))
	}
}
