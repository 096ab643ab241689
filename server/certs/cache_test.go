package certs

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/crypto/acme/autocert"
)

func TestSealedCache_EncryptsAndBindsToTheName(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "certificates")
	quiet := slog.New(slog.DiscardHandler)
	cache, err := newSealedCache(dir, make([]byte, 32), quiet)
	if err != nil {
		t.Fatal(err)
	}
	ctx, secret := t.Context(), []byte("-----BEGIN PRIVATE KEY-----")
	if err := cache.Put(ctx, "bank.example", secret); err != nil {
		t.Fatal(err)
	}
	if got, err := cache.Get(ctx, "bank.example"); err != nil || !bytes.Equal(got, secret) {
		t.Errorf("got %q, %v", got, err)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "bank.example"))
	if err != nil || bytes.Contains(raw, []byte("PRIVATE")) {
		t.Errorf("the file is readable: %q, %v", raw, err)
	}
	for name, mode := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, "bank.example"): 0o600} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	missing := func(what string, c *sealedCache, name string) {
		t.Helper()
		if got, err := c.Get(ctx, name); !errors.Is(err, autocert.ErrCacheMiss) {
			t.Errorf("%s: got %q, %v", what, got, err)
		}
	}
	missing("no file", cache, "other.example")
	if err := os.WriteFile(filepath.Join(dir, "other.example"), raw, 0o600); err != nil {
		t.Fatal(err)
	}
	missing("the file of another name", cache, "other.example")
	another, err := newSealedCache(dir, bytes.Repeat([]byte{1}, 32), quiet)
	if err != nil {
		t.Fatal(err)
	}
	missing("another key", another, "bank.example")
	for _, damaged := range [][]byte{nil, raw[:5], append([]byte{1}, raw...)} {
		if err := os.WriteFile(filepath.Join(dir, "bank.example"), damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		missing("a damaged file", cache, "bank.example")
	}
}
