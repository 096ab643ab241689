// Command report reads the output of "go test -json" and prints a summary: the output of failed tests, the names of
// skipped tests, and the slowest packages. A skipped test counts as failed, because it proves nothing. Report writes the
// numbers of passed and failed tests to the file named by its argument.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"sort"
)

type event struct {
	Action, Package, ImportPath, Test, Output string
	Elapsed                                   float64
}

type result struct {
	passed, failed int
	outputs        map[string][]byte  // by package and test
	took           map[string]float64 // by package
	failedTests    map[string]bool    // packages with a failed test
}

func main() {
	r := result{outputs: map[string][]byte{}, took: map[string]float64{}, failedTests: map[string]bool{}}
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
	r.finish()
	if err := os.WriteFile(os.Args[1], fmt.Appendf(nil, "%d %d\n", r.passed, r.failed), 0o600); err != nil {
		fmt.Println("reason:", err)
		os.Exit(1)
	}
	if r.failed > 0 || r.passed == 0 || lines.Err() != nil {
		fmt.Printf("reason: %d tests passed, %d failed or were skipped (%v)\n", r.passed, r.failed, lines.Err())
		os.Exit(1)
	}
}

func (r *result) add(e event) {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "output":
		r.outputs[key] = append(r.outputs[key], e.Output...)
		return
	case "build-output":
		fmt.Print(e.Output)
		return
	case "pass":
		if e.Test != "" {
			r.passed++
		} else {
			r.took[e.Package] = e.Elapsed
		}
	case "skip":
		if e.Test != "" { // without a test name: a package without tests
			r.failed++
			r.show("skipped", e.Package, e.Test, key)
		}
	case "fail":
		if e.Test != "" {
			r.failed++
			r.failedTests[e.Package] = true
			r.show("failed", e.Package, e.Test, key)
		} else if !r.failedTests[e.Package] { // the package did not build, panicked or timed out
			r.failed++
			r.show("failed", e.Package, "", key)
		}
	default:
		return
	}
	delete(r.outputs, key)
}

func (r *result) show(what, pkg, test, key string) {
	fmt.Printf("--- %s: %s %s\n%s", what, pkg, test, r.outputs[key])
}

const shownPackages = 5

func (r *result) finish() {
	var names []string
	for name := range r.took {
		names = append(names, name)
	}
	sort.Slice(names, func(i, j int) bool { return r.took[names[i]] > r.took[names[j]] })
	for _, name := range names[:min(len(names), shownPackages)] {
		fmt.Printf("    %6.1f s %s\n", r.took[name], name)
	}
}
