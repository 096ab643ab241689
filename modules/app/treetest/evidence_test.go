package treetest_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kontor/store/testenv"
)

// provers are the packages that establish proofs, by the function of modules/kit/evidence that states one. All others take what they are
// given: so a claimed value cannot become a proven one on the way.
var provers = map[string][]string{
	"Validated": {"modules/identity/directory"},                      // the user has shown access to the address
	"Recorded":  {"modules/bank/customers", "modules/bank/personas"}, // the row says that staff wrote the value, or a reviewer confirmed it
	"Said":      {"modules/bank/customers"},                          // compares claims with their own author
}

var proving = regexp.MustCompile(`\bevidence\.(Validated|Recorded|Said)\b`)

func TestProofs_AreEstablishedInFewPackages(t *testing.T) {
	t.Chdir(testenv.Root())
	used := map[string]bool{}
	err := filepath.WalkDir("modules", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, match := range proving.FindAllStringSubmatch(string(text), -1) {
			used[match[1]] = true
			if directory := filepath.ToSlash(filepath.Dir(path)); !slices.Contains(provers[match[1]], directory) {
				t.Errorf("%s calls evidence.%s. Only %v establish such a proof: take a Proven value from them", path, match[1], provers[match[1]])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range provers {
		if !used[name] {
			t.Errorf("no package calls evidence.%s", name)
		}
	}
}
