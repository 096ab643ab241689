package migrations

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"
)

// TestMigrations_AreFrozen compares the migrations with the fingerprints of those that have landed.
func TestMigrations_AreFrozen(t *testing.T) {
	landed := fingerprints(t)
	names, err := fs.Glob(Files, "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := Files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(text)
		want, ok := landed[path.Base(name)]
		switch {
		case !ok:
			t.Errorf("%s has no line in migrations/FROZEN.sha256; when it is final, add:\n%x  %s", name, sum, path.Base(name))
		case want != hex.EncodeToString(sum[:]):
			t.Errorf("%s was edited: databases have run it; write a new migration", name)
		}
		delete(landed, path.Base(name))
	}
	for name := range landed {
		t.Errorf("%s was deleted: a new database would differ from those that have run it", name)
	}
}

// fingerprints reads the SHA-256 of each landed migration, by file name.
func fingerprints(t *testing.T) map[string]string {
	t.Helper()
	file, err := os.Open("FROZEN.sha256")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	found := map[string]string{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if line := lines.Text(); line != "" && !strings.HasPrefix(line, "#") {
			sum, name, _ := strings.Cut(line, "  ")
			found[name] = sum
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return found
}
