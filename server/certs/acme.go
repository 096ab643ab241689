package certs

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
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
}

// ACME obtains certificates from a certificate authority and renews them. The owner of the server has accepted the terms of
// the authority.
type ACME struct {
	manager *autocert.Manager
	domains []string
	log     *slog.Logger
}

// NewACME returns the certificates of some domains. It does not use the network before the first handshake.
func NewACME(o ACMEOptions) (*ACME, error) {
	cache, err := newSealedCache(o.Dir, o.Key, o.Log)
	if err != nil {
		return nil, err
	}
	return &ACME{domains: o.Domains, log: o.Log, manager: &autocert.Manager{
		Prompt: autocert.AcceptTOS, Cache: cache, HostPolicy: autocert.HostWhitelist(o.Domains...), Email: o.Email,
		Client: &acme.Client{DirectoryURL: o.Directory, UserAgent: "kontor"},
	}}, nil
}

// Protocol is the application protocol of the challenge TLS-ALPN-01 (RFC 8737).
const Protocol = acme.ALPNProto

// Get returns the certificate of the domain in a handshake, and answers challenges. It rejects other domains.
func (a *ACME) Get(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	return a.manager.GetCertificate(hello)
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

// Obtain obtains the certificates that are missing, so that the first client need not wait. It returns when all are there or
// the context ends. Renewals happen by themselves.
func (a *ACME) Obtain(ctx context.Context) {
	for {
		missing := 0
		for _, domain := range a.domains {
			got, err := a.manager.GetCertificate(modernHello(domain))
			if err != nil {
				missing++
				a.log.Error("no certificate was obtained", "domain", domain, "cause", err, "retry", retryObtain.String())
				continue
			}
			a.log.Info("certificate ready", "domain", domain, "expires", got.Leaf.NotAfter)
		}
		if missing == 0 {
			return
		}
		timer := time.NewTimer(retryObtain)
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
