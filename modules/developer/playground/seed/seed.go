// Package seed fills a sandbox: it plays seed files, which are requests to the API as steps in YAML or JSON, and scenarios, which are
// such files in the executable. See docs/sandbox.md.
//
// [Parse] checks everything that can be known before a step runs: the form, the limits, and that each reference names an earlier step.
// [Service] sends the steps to a server in memory, one after the other, as the people whom they name, and has the endpoints.
package seed

import (
	"fmt"
	"time"
)

// The limits of a file.
const (
	MaxBytes = 1 << 20
	MaxSteps = 2000
	// MaxDepth is the depth of nested values.
	MaxDepth = 32
	// maxNodes is the number of values, with those that aliases repeat.
	maxNodes = 100_000
	// maxText is the length of a text after its references are replaced.
	maxText = 1 << 20
	// maxMatches is the number of patterns of a step, and maxPattern the length of one.
	maxMatches, maxPattern = 10, 200
)

// File is a checked seed file.
type File struct {
	// Start is when the first step runs; nil: the clock stays as it is.
	Start *time.Time
	// Values are texts, numbers or truth values that references name. Their names may contain dots.
	Values map[string]any
	Steps  []Step

	used map[string]bool // ids of steps that others refer to
}

// Step is a request of a file.
type Step struct {
	ID      string // as given, or step1, step2, … by its place
	Line    int
	As      text // empty: the caller
	Method  string
	Path    text
	Query   mapping // of texts
	Headers mapping // of texts
	Body    any
	HasBody bool
	Upload  *upload
	Expect  expectation
	Match   []match
}

// Request returns the request as the file has it, with its references.
func (s Step) Request() string { return s.Method + " " + s.Path.source }

// upload is a file that a step sends as its body.
type upload struct {
	Name    text
	Content []byte
}

// expectation says how a step ends.
type expectation struct {
	Status int // 0: any success
	Body   any // members that the answer must have
	HasAny bool
}

// Problem is a mistake in a file. Key is one of the texts "invalid.seed_…"; Args are its values.
type Problem struct {
	Line int
	Step string // empty: before the first one
	Key  string
	Args map[string]any
}

// Error returns the mistake for the log.
func (p *Problem) Error() string {
	return fmt.Sprintf("line %d, step %q: %s %v", p.Line, p.Step, p.Key, p.Args)
}
