package certs

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/acme/autocert"
)

// sharedCache is the cache of several nodes.
type sharedCache struct {
	mu      sync.Mutex
	entries map[string][]byte
}

func (c *sharedCache) Get(_ context.Context, name string) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if entry, ok := c.entries[name]; ok {
		return entry, nil
	}
	return nil, autocert.ErrCacheMiss
}

func (c *sharedCache) Put(_ context.Context, name string, data []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries[name] = bytes.Clone(data)
	return nil
}

func (c *sharedCache) Delete(_ context.Context, name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.entries, name)
	return nil
}

// certificateOf returns a key and a certificate as the cache keeps them.
func certificateOf(t *testing.T, domain string) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{domain}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(0, 0, 90)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return append(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded}), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
}

func TestACME_AnotherNodeWaitsForTheCertificateOfTheLeader(t *testing.T) {
	var ordered atomic.Int64
	authority := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		ordered.Add(1)
		http.Error(w, "not today", http.StatusTeapot)
	}))
	defer authority.Close()
	cache := &sharedCache{entries: map[string][]byte{}}
	var leads atomic.Bool
	node, err := NewACME(ACMEOptions{Domains: []string{"bank.example"}, Directory: authority.URL, Cache: cache, Leads: leads.Load, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := node.Get(modernHello("bank.example")); !errors.Is(err, errNotObtained) || ordered.Load() != 0 {
		t.Errorf("without a certificate: %v, %d requests to the authority", err, ordered.Load())
	}
	if err := cache.Put(t.Context(), "bank.example", certificateOf(t, "bank.example")); err != nil {
		t.Fatal(err)
	}
	got, err := node.Get(modernHello("bank.example"))
	if err != nil || got.Leaf.DNSNames[0] != "bank.example" || node.Expires().IsZero() {
		t.Errorf("with the certificate of the leader: %v", err)
	}
	if _, err := node.Get(modernHello("other.example")); err == nil {
		t.Error("another domain is served")
	}
	if ordered.Load() != 0 {
		t.Error("a node that does not lead called the authority")
	}
}

func TestACME_TheLeaderPlacesOrders(t *testing.T) {
	var ordered atomic.Int64
	authority := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		ordered.Add(1)
		http.Error(w, "not today", http.StatusTeapot)
	}))
	defer authority.Close()
	node, err := NewACME(ACMEOptions{Domains: []string{"bank.example"}, Directory: authority.URL, Cache: &sharedCache{entries: map[string][]byte{}}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := node.Get(modernHello("bank.example")); err == nil || errors.Is(err, errNotObtained) || ordered.Load() == 0 {
		t.Errorf("got %v, %d requests to the authority", err, ordered.Load())
	}
}

// The authority may send a challenge to any node.
func TestACME_EveryNodeAnswersAChallenge(t *testing.T) {
	cache := &sharedCache{entries: map[string][]byte{"abc+http-01": []byte("abc.thumbprint")}}
	node, err := NewACME(ACMEOptions{Domains: []string{"bank.example"}, Cache: cache, Leads: func() bool { return false }, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	handler := node.Handler(http.NotFoundHandler())
	for path, want := range map[string]int{"/.well-known/acme-challenge/abc": http.StatusOK, "/.well-known/acme-challenge/abd": http.StatusNotFound} {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "http://bank.example:8080"+path, nil))
		if answer.Code != want || want == http.StatusOK && answer.Body.String() != "abc.thumbprint" {
			t.Errorf("%s: %d %q", path, answer.Code, answer.Body)
		}
	}
	hello := modernHello("bank.example")
	hello.SupportedProtos = []string{Protocol}
	if _, err := node.Get(hello); err == nil || errors.Is(err, errNotObtained) {
		t.Errorf("a challenge without a certificate: %v", err)
	}
	cache.entries["bank.example+token"] = certificateOf(t, "bank.example")
	if got, err := node.Get(hello); err != nil || got == nil {
		t.Errorf("a challenge of another node's order: %v", err)
	}
}
