package deliveries_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"math/big"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"kontor/modules/reach/deliveries"
)

// mailServer is a real SMTP server whose answers a test sets.
type mailServer struct {
	mu       sync.Mutex
	mails    []string
	rcpt     error         // answer to RCPT
	data     error         // answer to DATA
	hold     chan struct{} // DATA waits for it
	die      bool          // the connection is closed once the mail was received
	signedIn int
	name     string // user and password, if the server requires them

	address string
	trust   *tls.Config
}

func newMailServer(t testing.TB, secure bool) *mailServer {
	t.Helper()
	return openMailServer(t, secure, false)
}

// openMailServer starts a server with TLS after STARTTLS, from the first byte, or not at all.
func openMailServer(t testing.TB, secure, implicit bool) *mailServer {
	t.Helper()
	p := &mailServer{}
	server := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) { return &mailSession{p, c}, nil }))
	server.ErrorLog = log.New(io.Discard, "", 0)
	if secure {
		server.TLSConfig, p.trust = certificate(t)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.address = listener.Addr().String()
	if implicit {
		listener = tls.NewListener(listener, server.TLSConfig)
	}
	go func() { _ = server.Serve(listener) }() // ends with the test
	t.Cleanup(func() { _ = server.Close() })
	return p
}

// certificate returns a configuration for a server, and one for a client that trusts it.
func certificate(t testing.TB) (server, client *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(parsed)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}, &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"}
}

// mailSession is one SMTP session.
type mailSession struct {
	office *mailServer
	conn   *smtp.Conn
}

func (d *mailSession) Reset() {}

func (d *mailSession) Logout() error { return nil }

func (d *mailSession) AuthMechanisms() []string { return []string{sasl.Plain} }

func (d *mailSession) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		d.office.mu.Lock()
		defer d.office.mu.Unlock()
		if user+":"+password != d.office.name {
			return smtp.ErrAuthFailed
		}
		d.office.signedIn++
		return nil
	}), nil
}

func (d *mailSession) Mail(string, *smtp.MailOptions) error { return nil }

func (d *mailSession) Rcpt(string, *smtp.RcptOptions) error {
	d.office.mu.Lock()
	defer d.office.mu.Unlock()
	return d.office.rcpt
}

func (d *mailSession) Data(r io.Reader) error {
	mail, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	d.office.mu.Lock()
	hold, die, answer := d.office.hold, d.office.die, d.office.data
	if answer == nil {
		d.office.mails = append(d.office.mails, string(mail))
	}
	d.office.mu.Unlock()
	if hold != nil {
		<-hold
	}
	if die {
		_ = d.conn.Conn().Close()
	}
	return answer
}

func (p *mailServer) set(change func(p *mailServer)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(p)
}

func (p *mailServer) received() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.mails...)
}

func (p *mailServer) gateway(t testing.TB, scheme string) *deliveries.SMTP {
	t.Helper()
	g, err := deliveries.NewSMTP(scheme+p.address, "bank@kontor.example", time.Now, p.trust)
	if err != nil {
		t.Fatal(err)
	}
	return g
}
