package testenv

import (
	"os"
	"path/filepath"
	"sync"
)

// Root returns the root directory of the project. Tests run in the directories of their packages.
var Root = sync.OnceValue(func() string {
	dir, err := os.Getwd()
	for err == nil {
		if _, found := os.Stat(filepath.Join(dir, "go.mod")); found == nil {
			return dir
		}
		if filepath.Dir(dir) == dir {
			err = os.ErrNotExist
		}
		dir = filepath.Dir(dir)
	}
	panic("no directory above the test has a go.mod: " + err.Error())
})

// Path returns the path of a file that is named by its path in the project.
func Path(name string) string { return filepath.Join(Root(), filepath.FromSlash(name)) }
