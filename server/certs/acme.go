package certs

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"
)

// ACMEOptions configure [NewACME].
type ACMEOptions struct {
	Domains   []string
	Email     string // for the authority; may be empty
	Directory string // URL of the authority
	Dir       string // keeps account and certificates, encrypted
	Key       []byte // 32 bytes that encrypt them
	Log       *slog.Logger

	// Cache replaces Dir and Key when several nodes have the same certificates.
	Cache autocert.Cache
	// Leads reports whether this node obtains missing certificates; the others wait for them. nil: it always does.
	Leads func() bool
}

// ACME obtains certificates from a certificate authority and renews them. The owner of the server has accepted the terms of
// the authority.
type ACME struct {
	manager *autocert.Manager
	domains []string
	leads   func() bool
	log     *slog.Logger
	served  sync.Map     // names of certificates that the manager has
	expires atomic.Int64 // Unix seconds, of the certificate that was used last
}

// NewACME returns the certificates of some domains. It does not use the network before the first handshake.
func NewACME(o ACMEOptions) (*ACME, error) {
	cache := o.Cache
	if cache == nil {
		var err error
		if cache, err = newSealedCache(o.Dir, o.Key, o.Log); err != nil {
			return nil, err
		}
	}
	if o.Leads == nil {
		o.Leads = func() bool { return true }
	}
	return &ACME{domains: o.Domains, leads: o.Leads, log: o.Log, manager: &autocert.Manager{
		Prompt: autocert.AcceptTOS, Cache: cache, HostPolicy: autocert.HostWhitelist(o.Domains...), Email: o.Email,
		Client: &acme.Client{DirectoryURL: o.Directory, UserAgent: "kontor"},
	}}, nil
}

// Protocol is the application protocol of the challenge TLS-ALPN-01 (RFC 8737).
const Protocol = acme.ALPNProto

// Get returns the certificate of the domain in a handshake, and answers challenges. It rejects other domains. Until the leading node
// has obtained a certificate, the other nodes reject handshakes for its domain.
func (a *ACME) Get(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	own := slices.Contains(a.domains, hello.ServerName) && !slices.Contains(hello.SupportedProtos, Protocol)
	if own && !a.mayGet(hello.ServerName) {
		return nil, errNotObtained
	}
	got, err := a.manager.GetCertificate(hello)
	if err == nil && got.Leaf != nil && own {
		a.served.Store(hello.ServerName, true)
		a.expires.Store(got.Leaf.NotAfter.Unix())
	}
	return got, err
}

// errNotObtained is the reason why a handshake is rejected on a node that does not obtain certificates itself.
var errNotObtained = errors.New("the leading node has not obtained the certificate yet")

// mayGet reports whether the manager may be asked for a certificate. It places an order for a missing one, which only the leading
// node may do: authorities limit the number of orders. The manager finds what another node has renewed.
func (a *ACME) mayGet(domain string) bool {
	if _, known := a.served.Load(domain); known || a.leads() {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookupTime)
	defer cancel()
	_, err := a.manager.Cache.Get(ctx, domain)
	return err == nil
}

// lookupTime bounds the time to look for a certificate in the cache.
const lookupTime = 5 * time.Second

// Expires returns the end of the certificate that was used last, the zero time if there is none.
func (a *ACME) Expires() time.Time {
	if end := a.expires.Load(); end != 0 {
		return time.Unix(end, 0)
	}
	return time.Time{}
}

// Handler answers challenges over plain HTTP (HTTP-01) and passes other requests on. A forwarded port may be part of the host.
func (a *ACME) Handler(next http.Handler) http.Handler {
	challenges := a.manager.HTTPHandler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if host, _, err := net.SplitHostPort(r.Host); err == nil {
			r.Host = host
		}
		challenges.ServeHTTP(w, r)
	})
}

// retryObtain is the pause after a certificate could not be obtained. Authorities limit failed attempts.
const retryObtain = 15 * time.Minute

// awaitObtained is the pause after which a node looks again for a certificate that the leading node obtains.
const awaitObtained = 2 * time.Second

// Obtain obtains the certificates that are missing, so that the first client need not wait. A node that does not lead waits until
// the leading one has obtained them. It returns when all are there or the context ends. Renewals happen by themselves.
func (a *ACME) Obtain(ctx context.Context) {
	for {
		missing, pause := 0, awaitObtained
		for _, domain := range a.domains {
			got, err := a.Get(modernHello(domain))
			if errors.Is(err, errNotObtained) {
				missing++
				continue
			}
			if err != nil {
				missing++
				pause = retryObtain
				a.log.Error("no certificate was obtained", "domain", domain, "cause", err, "retry", retryObtain.String())
				continue
			}
			a.log.Info("certificate ready", "domain", domain, "expires", got.Leaf.NotAfter)
		}
		if missing == 0 {
			return
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// modernHello is the greeting of a client that accepts ECDSA, as all browsers do.
func modernHello(domain string) *tls.ClientHelloInfo {
	return &tls.ClientHelloInfo{
		ServerName: domain, SupportedVersions: []uint16{tls.VersionTLS13, tls.VersionTLS12}, SupportedCurves: []tls.CurveID{tls.CurveP256},
		CipherSuites:     []uint16{tls.TLS_AES_128_GCM_SHA256, tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256},
		SignatureSchemes: []tls.SignatureScheme{tls.ECDSAWithP256AndSHA256},
	}
}
