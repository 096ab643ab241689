package certificates_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"golang.org/x/crypto/acme/autocert"

	"kontor/modules/app/certificates"
	"kontor/store"
	"kontor/store/storetest"
)

func TestCache_KeepsEntriesSealed(t *testing.T) {
	db, ctx := storetest.Open(t), t.Context()
	cache := certificates.New(db, slog.New(slog.DiscardHandler))
	if _, err := cache.Get(ctx, "bank.example"); !errors.Is(err, autocert.ErrCacheMiss) {
		t.Errorf("a missing entry returned %v", err)
	}
	for _, content := range []string{"first private key", "second private key"} {
		if err := cache.Put(ctx, "bank.example", []byte(content)); err != nil {
			t.Fatal(err)
		}
		got, err := cache.Get(ctx, "bank.example")
		if err != nil || !bytes.Equal(got, []byte(content)) {
			t.Errorf("got %q, %v", got, err)
		}
	}
	if stored := stored(t, db); strings.Contains(stored, "private") {
		t.Errorf("it is stored as %q", stored)
	}
	for range 2 {
		if err := cache.Delete(ctx, "bank.example"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := cache.Get(ctx, "bank.example"); !errors.Is(err, autocert.ErrCacheMiss) {
		t.Errorf("a deleted entry returned %v", err)
	}
}

// An entry that was moved to another name, or damaged, must not be used.
func TestCache_RejectsAMovedEntry(t *testing.T) {
	db, ctx := storetest.Open(t), t.Context()
	cache := certificates.New(db, slog.New(slog.DiscardHandler))
	if err := cache.Put(ctx, "other.example", []byte("key")); err != nil {
		t.Fatal(err)
	}
	err := db.InTx(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE certificates SET name = 'bank.example'`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cache.Get(ctx, "bank.example"); !errors.Is(err, autocert.ErrCacheMiss) {
		t.Errorf("a moved entry returned %v", err)
	}
}

func TestCache_SurvivesTheRotationOfTheMasterKey(t *testing.T) {
	db, ctx := storetest.Open(t), t.Context()
	cache := certificates.New(db, slog.New(slog.DiscardHandler))
	if err := cache.Put(ctx, "bank.example", []byte("key")); err != nil {
		t.Fatal(err)
	}
	before := stored(t, db)
	if _, err := db.RotateMasterKey(ctx, storetest.Rotation(t, db)); err != nil {
		t.Fatal(err)
	}
	if stored(t, db) == before {
		t.Error("it is not sealed again")
	}
	if got, err := cache.Get(ctx, "bank.example"); err != nil || string(got) != "key" {
		t.Errorf("got %q, %v", got, err)
	}
}

func stored(t *testing.T, db *store.DB) (text string) {
	t.Helper()
	if err := db.QueryRow(t.Context(), `SELECT content_sealed FROM certificates`).Scan(&text); err != nil {
		t.Fatal(err)
	}
	return text
}
