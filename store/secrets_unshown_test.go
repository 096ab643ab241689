package store_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"kontor/store"
	"kontor/store/storetest"
)

func TestShown_DeletesTheSecretsOfAFirstStart(t *testing.T) {
	dir := storetest.Dir(t)
	db := storetest.OpenDir(t, dir)
	if _, err := db.Unshown(t.Context()); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("nothing was made: %v", err)
	}
	secret := []byte("a secret of the first start")
	err := db.InTx(t.Context(), func(tx *store.Tx) error { return tx.KeepUnshown(t.Context(), secret) })
	if got, readErr := db.Unshown(t.Context()); err != nil || readErr != nil || !bytes.Equal(got, secret) {
		t.Errorf("got %q, %v, %v", got, err, readErr)
	}
	for _, name := range []string{"kontor.db", "kontor.db-wal"} {
		if data, err := os.ReadFile(filepath.Join(dir, name)); err == nil && bytes.Contains(data, secret) {
			t.Errorf("%s holds it in clear", name)
		}
	}
	if err := db.Shown(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := db.Unshown(t.Context()); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("after it was shown: %v", err)
	}
}
