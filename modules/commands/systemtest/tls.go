package systemtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// identity is a certificate in files, and the pool in which it is trusted.
type identity struct {
	Cert, Key string
	Pool      *x509.CertPool
}

// NewIdentity writes a certificate for bank.example that ends at a time.
func NewIdentity(t *testing.T, dir string, until time.Time) *identity {
	t.Helper()
	i := &identity{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), x509.NewCertPool()}
	i.Renew(t, until)
	return i
}

// Renew replaces the files by renaming, as tools for certificates do.
func (i *identity) Renew(t *testing.T, until time.Time) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), DNSNames: []string{"bank.example", "localhost"},
		NotBefore: until.AddDate(0, 0, -90), NotAfter: until, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{i.Cert: {Type: "CERTIFICATE", Bytes: der}, i.Key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(name+".new", pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(name+".new", name); err != nil {
			t.Fatal(err)
		}
	}
	i.Pool.AppendCertsFromPEM(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// Secure returns a client of a server that speaks TLS as bank.example.
func (p *Process) Secure(pool *x509.CertPool, headers ...string) *Client {
	c := p.Client(headers...)
	c.URL = strings.Replace(p.URL, "http://", "https://", 1)
	c.HTTP.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: pool, ServerName: "bank.example"}
	return c
}

// Address returns the address on which the server listens.
func (p *Process) Address() string { return strings.TrimPrefix(p.URL, "http://") }
