package systemtest

import (
	"regexp"

	"kontor/store/testenv"
)

// Printed waits until the standard output of a server has a number of matches, and returns them with their groups. The log may be read
// before what the server has printed earlier.
func (p *Process) Printed(pattern string, matches int) (found [][]string) {
	p.TB.Helper()
	expression := regexp.MustCompile(pattern)
	testenv.Wait(p.TB, "the server to print "+pattern, func() bool {
		found = expression.FindAllStringSubmatch(p.Stdout.String(), -1)
		return len(found) >= matches
	})
	return found
}

// PrintedWord waits until the server has printed a word after a label, and returns it.
func (p *Process) PrintedWord(label string) string {
	p.TB.Helper()
	return p.Printed(regexp.QuoteMeta(label)+`\s+(\S+)\s`, 1)[0][1]
}
