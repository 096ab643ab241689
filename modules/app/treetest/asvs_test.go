package treetest_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kontor/store/testenv"
)

// asvsRequirements are the requirements of levels 1 and 2 of OWASP ASVS 5.0.0: section → last numbers. There are 253.
var asvsRequirements = map[string][]int{
	"1.1": {1, 2}, "1.2": to(9), "1.3": to(11), "1.4": to(3), "1.5": to(2),
	"2.1": to(3), "2.2": to(3), "2.3": to(4), "2.4": {1},
	"3.2": {1, 2}, "3.3": to(4), "3.4": to(6), "3.5": to(5), "3.7": {1, 2},
	"4.1": to(3), "4.2": {1}, "4.3": to(2), "4.4": to(4),
	"5.1": {1}, "5.2": to(3), "5.3": to(2), "5.4": to(3),
	"6.1": to(3), "6.2": to(12), "6.3": to(4), "6.4": to(4), "6.5": to(5), "6.6": to(3), "6.8": to(4),
	"7.1": to(3), "7.2": to(4), "7.3": to(2), "7.4": to(5), "7.5": to(2), "7.6": to(2),
	"8.1": to(2), "8.2": to(3), "8.3": {1}, "8.4": {1},
	"9.1": to(3), "9.2": to(4),
	"10.1": to(2), "10.2": to(2), "10.3": to(4), "10.4": to(11), "10.5": to(5), "10.6": to(2), "10.7": to(3),
	"11.1": to(2), "11.2": to(3), "11.3": to(3), "11.4": to(4), "11.5": {1}, "11.6": {1},
	"12.1": to(3), "12.2": to(2), "12.3": to(4),
	"13.1": {1}, "13.2": to(5), "13.3": to(2), "13.4": to(5),
	"14.1": to(2), "14.2": to(4), "14.3": to(3),
	"15.1": to(3), "15.2": to(3), "15.3": to(7),
	"16.1": {1}, "16.2": to(5), "16.3": to(4), "16.4": to(3), "16.5": to(3),
	"17.1": {1}, "17.2": to(4), "17.3": to(2),
}

// to returns the numbers from 1 to n.
func to(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i + 1
	}
	return list
}

var asvsRow = regexp.MustCompile(`(?m)^\| (\d+\.\d+\.\d+) \| ([12]) \| [^|]+ \| ([a-z/]+) \| ([^|]+) \|$`)

// TestASVS_MapsEveryRequirementOnce compares docs/asvs.md with the list.
func TestASVS_MapsEveryRequirementOnce(t *testing.T) {
	t.Chdir(testenv.Root())
	text, err := os.ReadFile("docs/asvs.md")
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for section, numbers := range asvsRequirements {
		for _, n := range numbers {
			want = append(want, fmt.Sprintf("%s.%d", section, n))
		}
	}
	if len(want) != 253 {
		t.Fatalf("the list has %d requirements", len(want))
	}
	states := []string{"met", "operator", "part", "no", "n/a"}
	for _, row := range asvsRow.FindAllStringSubmatch(string(text), -1) {
		got = append(got, row[1])
		if !slices.Contains(states, row[3]) {
			t.Errorf("%s has the state %q", row[1], row[3])
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		t.Errorf("%d rows, want %d: %s", len(got), len(want), strings.Join(got, " "))
	}
}

// testNames returns the names of the tests of all packages.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	var walk func(dir string)
	walk = func(dir string) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			path := dir + "/" + entry.Name()
			switch {
			case entry.IsDir() && !strings.HasPrefix(entry.Name(), "."):
				walk(path)
			case strings.HasSuffix(path, "_test.go"):
				source, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				for _, found := range declared.FindAllStringSubmatch(string(source), -1) {
					names[found[1]] = true
				}
			}
		}
	}
	walk(".")
	return names
}
