package store_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kontor/store"
	"kontor/store/storetest"
)

func TestSeal_OpensInItsPlaceOnly(t *testing.T) {
	db := storetest.Open(t)
	id := store.NewID()
	plain := []byte("X1234567")
	if _, err := db.Seal("kyc_documents", "number", id, plain); err == nil {
		t.Error("a column that a rotation would not reach was sealed")
	}
	db.RegisterSealed(store.SealedColumn{Table: "kyc_documents", Column: "number"})
	sealed, err := db.Seal("kyc_documents", "number", id, plain)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(sealed, "1234567") {
		t.Error("the value is readable")
	}
	if again, _ := db.Seal("kyc_documents", "number", id, plain); again == sealed {
		t.Error("the same value looks the same twice")
	}
	if got, err := db.Unseal("kyc_documents", "number", id, sealed); err != nil || !bytes.Equal(got, plain) {
		t.Errorf("got %q, err %v", got, err)
	}
	for _, place := range [][3]string{
		{"other", "number", id}, {"kyc_documents", "other", id}, {"kyc_documents", "number", store.NewID()},
		{"kyc_documentsn", "umber", id},
	} {
		if got, err := db.Unseal(place[0], place[1], place[2], sealed); err == nil {
			t.Errorf("opened at %v: %q", place, got)
		}
	}
	for _, broken := range []string{"", "1.", "2." + sealed[2:], sealed + "A", sealed[:len(sealed)-4], "1.***"} {
		if _, err := db.Unseal("kyc_documents", "number", id, broken); err == nil {
			t.Errorf("%q was opened", broken)
		}
	}
}

func TestKeys_DifferByPurposeAndStayTheSame(t *testing.T) {
	o := storetest.Options(t)
	db := storetest.OpenAgain(t, o)
	a, b, d := db.Keyed("a", []byte("x")), db.Keyed("b", []byte("x")), firstKey(t, db, "a")
	if bytes.Equal(a, b) || bytes.Equal(a, d) || len(d) != 32 {
		t.Error("keys of different purposes are the same")
	}
	db.Close()
	db = storetest.OpenAgain(t, o)
	if !bytes.Equal(a, db.Keyed("a", []byte("x"))) || !bytes.Equal(d, firstKey(t, db, "a")) {
		t.Error("keys changed with a restart")
	}
}

func firstKey(t *testing.T, db *store.DB, purpose string) []byte {
	t.Helper()
	key, ok := db.FirstKey(purpose, 32)
	if !ok {
		t.Fatal("no key of the first master key")
	}
	return key
}

func TestShown_DeletesTheSecretsOfAFirstStart(t *testing.T) {
	o := storetest.Options(t)
	db := storetest.OpenAgain(t, o)
	if _, err := db.Unshown(t.Context()); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("nothing was made: %v", err)
	}
	secret := []byte("a secret of the first start")
	err := db.InTx(t.Context(), func(tx *store.Tx) error { return tx.KeepUnshown(t.Context(), secret) })
	if got, readErr := db.Unshown(t.Context()); err != nil || readErr != nil || !bytes.Equal(got, secret) {
		t.Errorf("got %q, %v, %v", got, err, readErr)
	}
	for _, name := range []string{"kontor.db", "kontor.db-wal"} {
		if data, err := os.ReadFile(filepath.Join(o.Dir, name)); err == nil && bytes.Contains(data, secret) {
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
