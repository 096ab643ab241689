package certs_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kontor/server/certs"
)

var start = time.Date(2026, time.November, 22, 12, 0, 0, 0, time.UTC)

// pair is a certificate and its key in PEM form.
type pair struct{ cert, key string }

var serial int64

// newPair returns a certificate that is valid for 30 days around from.
func newPair(t *testing.T, from time.Time) pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial++
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "bank.example"}, DNSNames: []string{"bank.example"},
		NotBefore: from.AddDate(0, 0, -15), NotAfter: from.AddDate(0, 0, 15)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pair{string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}))}
}

// files are the two files of a test. Each write has another time of modification.
type files struct {
	t         *testing.T
	cert, key string
	written   time.Time
}

func newFiles(t *testing.T, p pair) *files {
	dir := t.TempDir()
	f := &files{t, filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), start}
	f.write(f.cert, p.cert)
	f.write(f.key, p.key)
	return f
}

func (f *files) write(name, text string) {
	f.t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
	f.written = f.written.Add(time.Second)
	if err := os.Chtimes(name, f.written, f.written); err != nil {
		f.t.Fatal(err)
	}
}

func TestLoadFiles_RejectsWhatCannotBeServed(t *testing.T) {
	good, other := newPair(t, start), newPair(t, start)
	at := func() time.Time { return start }
	for _, tc := range []struct {
		name      string
		cert, key string
		want      string
	}{
		{"no certificate", "", good.key, "cert.pem contains no certificate in PEM form"},
		{"no key", good.cert, "", "key.pem contains no private key in PEM form"},
		{"exchanged files", good.key, good.cert, "cert.pem contains no certificate"},
		{"the key of another certificate", good.cert, other.key, "cannot be used together"},
		{"a truncated certificate", good.cert[:100], good.key, "contains no certificate"},
		{"a damaged certificate", strings.Replace(good.cert, "MII", "AAA", 1), good.key, "cannot be used together"},
		{"a damaged key", good.cert, strings.Replace(good.key, "MIG", "AAA", 1), "cannot be used together"},
		{"an encrypted key", good.cert, "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n", "cannot be used together"},
		{"expired", newPair(t, start.AddDate(0, -1, 0)).cert, "same", "expired at 2026-11-06"},
		{"not valid yet", newPair(t, start.AddDate(0, 1, 0)).cert, "same", "valid only from 2026-12-07"},
		{"a huge file", strings.Repeat("x", 2<<20), good.key, "not a file of a usual size"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := pair{tc.cert, tc.key}
			if tc.key == "same" {
				shift := -1
				if tc.name == "not valid yet" {
					shift = 1
				}
				p = newPair(t, start.AddDate(0, shift, 0))
			}
			f := newFiles(t, p)
			_, err := certs.LoadFiles(f.cert, f.key, at, slog.New(slog.DiscardHandler))
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
	f := newFiles(t, good)
	for name, paths := range map[string][2]string{
		"cert.pem cannot be read: no such file": {filepath.Join(t.TempDir(), "cert.pem"), f.key},
		"key.pem cannot be read: no such file":  {f.cert, filepath.Join(t.TempDir(), "key.pem")},
		"is not a file of a usual size":         {t.TempDir(), f.key},
	} {
		if _, err := certs.LoadFiles(paths[0], paths[1], at, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want %q", err, name)
		}
	}
	if os.Geteuid() != 0 {
		if err := os.Chmod(f.key, 0); err != nil {
			t.Fatal(err)
		}
		if _, err := certs.LoadFiles(f.cert, f.key, at, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "permission denied") {
			t.Errorf("an unreadable key: %v", err)
		}
	}
}

func TestFiles_FollowChangesAndKeepTheLastUsableCertificate(t *testing.T) {
	now := start
	first, second := newPair(t, start), newPair(t, start)
	f := newFiles(t, first)
	loaded, err := certs.LoadFiles(f.cert, f.key, func() time.Time { return now }, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	expect := func(when string, want pair) {
		t.Helper()
		got, err := loaded.Get(nil)
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		if text := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: got.Certificate[0]})); text != want.cert {
			t.Errorf("%s: another certificate is served", when)
		}
	}
	expect("at the start", first)
	f.write(f.cert, second.cert)
	expect("within a second of the last check", first)
	now = now.Add(2 * time.Second)
	expect("while the key belongs to the other certificate", first)
	f.write(f.key, second.key)
	now = now.Add(2 * time.Second)
	expect("with both files", second)
	f.write(f.cert, "nonsense")
	now = now.Add(2 * time.Second)
	expect("with a damaged file", second)
	if err := os.Remove(f.cert); err != nil {
		t.Fatal(err)
	}
	now = now.Add(2 * time.Second)
	expect("without the file", second)
	f.write(f.cert, second.cert)
	now = now.Add(2 * time.Second)
	expect("with the file again", second)
	now = start.Add(-time.Hour)
	expect("after the clock was set back", second)
	if !loaded.Expires().Equal(start.AddDate(0, 0, 15)) {
		t.Errorf("expires %s", loaded.Expires())
	}
}
