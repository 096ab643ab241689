//go:build linux && amd64

package systemtest

import (
	"crypto/sha256"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// NewDataDir returns a data directory that a server has used, with one customer.
func NewDataDir(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	p := Start(t, dir)
	p.Admin().Do(t, "POST", "/v1/customers", `{"first_name":"Anna","last_name":"Muster","email":"anna@example.ch"}`, 201)
	if code := p.Stop(); code != 0 {
		t.Fatalf("exit code %d: %s", code, p.Stderr)
	}
	return dir
}

// CopyDataDir copies a data directory.
func CopyDataDir(t *testing.T, dir string) string {
	t.Helper()
	copied := filepath.Join(t.TempDir(), "copy")
	copyDataDir(t, dir, copied)
	return copied
}

// FileDigests returns the digests of all files below a path, except for the lock file, which every process rewrites. It follows no links.
func FileDigests(t *testing.T, path string) map[string][sha256.Size]byte {
	t.Helper()
	all := map[string][sha256.Size]byte{}
	err := filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || entry.Name() == "kontor.lock" {
			return err
		}
		data, err := os.ReadFile(name)
		all[name] = sha256.Sum256(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// SameFiles reports whether two sets of digests are equal.
func SameFiles(a, b map[string][sha256.Size]byte) bool {
	for name, sum := range a {
		if b[name] != sum {
			return false
		}
	}
	return len(a) == len(b)
}

// WriteFile writes a file that only its owner can read.
func WriteFile(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// FlipByte inverts a bit of a byte in a file.
func FlipByte(path string, at int64) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	b := make([]byte, 1)
	if _, err := f.ReadAt(b, at); err != nil {
		return err
	}
	b[0] ^= 1
	_, err = f.WriteAt(b, at)
	return err
}
