// Command report reads the output of "go test -json" and prints a summary: the output of failed tests, the names of skipped
// tests, and the slowest packages and tests. In the full tier (KONTOR_TEST) a skipped test and a package that runs no test count
// as failed, because they prove nothing. Report writes the numbers of passed and failed tests to the file named by its argument.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strings"
)

type event struct {
	Action, Package, ImportPath, Test, Output string
	Elapsed                                   float64
}

type result struct {
	full                    bool
	passed, failed, skipped int
	outputs                 map[string][]byte  // by package and test
	packages, tests         map[string]float64 // seconds by name
	failedTests             map[string]bool    // packages with a failed test
}

func main() {
	r := result{full: os.Getenv("KONTOR_TEST") != "", outputs: map[string][]byte{}, packages: map[string]float64{}, tests: map[string]float64{}, failedTests: map[string]bool{}}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			fmt.Println(lines.Text()) // an error message of the go command
			continue
		}
		r.add(e)
	}
	fmt.Printf("%d tests passed, %d failed, %d belong to another tier\n", r.passed, r.failed, r.skipped)
	slowest("packages", r.packages)
	slowest("tests", r.tests)
	if err := os.WriteFile(os.Args[1], fmt.Appendf(nil, "%d %d\n", r.passed, r.failed), 0o600); err != nil {
		fmt.Println("reason:", err)
		os.Exit(1)
	}
	if r.failed > 0 || r.passed == 0 || lines.Err() != nil {
		fmt.Printf("reason: %d tests passed, %d failed or were skipped (%v)\n", r.passed, r.failed, lines.Err())
		os.Exit(1)
	}
}

// noTests is what the go command prints for a package that runs no test.
const noTests = "testing: warning: no tests to run"

func (r *result) add(e event) {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "output":
		r.outputs[key] = append(r.outputs[key], e.Output...)
		if strings.HasPrefix(e.Output, noTests) && r.full {
			r.fail("no test ran", e)
		}
		return
	case "build-output":
		fmt.Print(e.Output)
		return
	case "pass":
		if e.Test == "" {
			r.packages[e.Package] = e.Elapsed
			break
		}
		r.passed++
		if !strings.Contains(e.Test, "/") {
			r.tests[key] = e.Elapsed
		}
	case "skip":
		switch {
		case e.Test == "": // a package without tests
		case r.full:
			r.fail("skipped", e)
		default:
			r.skipped++
		}
	case "fail":
		if e.Test != "" || !r.failedTests[e.Package] { // else the package did not build, panicked or timed out
			r.fail("failed", e)
		}
	default:
		return
	}
	delete(r.outputs, key)
}

// fail counts a test, or a package as a whole, as failed and prints its output.
func (r *result) fail(what string, e event) {
	r.failed++
	r.failedTests[e.Package] = r.failedTests[e.Package] || e.Test != ""
	fmt.Printf("--- %s: %s %s\n%s", what, e.Package, e.Test, r.outputs[e.Package+" "+e.Test])
}

const shown = 8

func slowest(what string, took map[string]float64) {
	var names []string
	for name := range took {
		names = append(names, name)
	}
	sort.Slice(names, func(i, j int) bool { return took[names[i]] > took[names[j]] })
	fmt.Printf("    slowest %s\n", what)
	for _, name := range names[:min(len(names), shown)] {
		fmt.Printf("    %6.1f s %s\n", took[name], name)
	}
}
