package store_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"kontor/store"
	"kontor/store/backup"
	"kontor/store/inspect"
	"kontor/store/storetest"
)

// A backup from before a rotation opens with the key from before, and one from after it with the new key.
func TestRotateMasterKey_Backups(t *testing.T) {
	if storetest.SQLiteOnly(t, keyInFile) {
		return
	}
	work := t.TempDir()
	dir, db := newNotes(t, 5)
	former := readKey(t, dir)
	source := inspect.Source{Dir: dir}
	create := func(name string, withKey bool) string {
		file := filepath.Join(work, name)
		if _, err := backup.Create(t.Context(), source, file, backup.Options{WithKey: withKey}); err != nil {
			t.Fatal(err)
		}
		return file
	}
	before := create("before", false)
	beforeWithKey := create("before-with-key", true)
	rotate(t, db)
	after := create("after", false)
	afterWithKey := create("after-with-key", true)
	newest := readKey(t, dir)
	for i, c := range []struct {
		file, key string
		wrong     string
	}{{before, former, newest}, {beforeWithKey, "", newest}, {after, newest, former}, {afterWithKey, "", former}} {
		target := filepath.Join(work, fmt.Sprint("restored-", i))
		if _, err := backup.Restore(t.Context(), []string{c.file}, inspect.Source{Dir: target + "-wrong", SecretKey: c.wrong}); !errors.Is(err, store.ErrWrongKey) {
			t.Errorf("%s with the other key: %v", c.file, err)
		}
		if _, err := backup.Restore(t.Context(), []string{c.file}, inspect.Source{Dir: target}); err != nil {
			t.Fatalf("%s: %v", c.file, err)
		}
		if c.key != "" {
			if err := backup.ImportKey(t.Context(), target, c.key); err != nil {
				t.Fatalf("%s: %v", c.file, err)
			}
		}
		check(t, target)
		restored := storetest.OpenDir(t, target)
		if got := readNotes(t, restored); got != 5 {
			t.Errorf("%s: %d values", c.file, got)
		}
		restored.Close()
	}
}
