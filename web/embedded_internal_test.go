package web

import (
	"io/fs"
	"os"
	"strings"
	"testing"
)

// The TypeScript client lies beside the console, and is neither served nor part of the executable.
func TestEmbedded_LeavesOutTheTypeScriptClient(t *testing.T) {
	if _, err := fs.Stat(os.DirFS("."), "client/package.json"); err != nil {
		t.Fatal(err)
	}
	err := fs.WalkDir(embedded, ".", func(name string, _ fs.DirEntry, err error) error {
		if name == "client" || strings.HasSuffix(name, ".ts") {
			t.Errorf("%s is embedded", name)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
