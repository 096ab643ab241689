package notifications_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"math/big"
	"mime"
	"mime/multipart"
	"net"
	"net/mail"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"kontor/modules/notifications"
)

// postOffice is a real SMTP server that does what a test wants.
type postOffice struct {
	mu       sync.Mutex
	letters  []string
	rcpt     error         // answer to RCPT
	data     error         // answer to DATA
	hold     chan struct{} // DATA waits for it
	die      bool          // the line is cut once the letter is in
	signedIn int
	name     string // user and password, where they are needed

	address string
	trust   *tls.Config
}

func newPostOffice(t testing.TB, secure bool) *postOffice {
	t.Helper()
	return openPostOffice(t, secure, false)
}

// openPostOffice opens one that speaks TLS after STARTTLS, from the first byte, or not at all.
func openPostOffice(t testing.TB, secure, implicit bool) *postOffice {
	t.Helper()
	p := &postOffice{}
	server := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) { return &desk{p, c}, nil }))
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

// certificate gives a server a certificate and a client the trust in it.
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

// desk is one session.
type desk struct {
	office *postOffice
	conn   *smtp.Conn
}

func (d *desk) Reset()        {}
func (d *desk) Logout() error { return nil }

func (d *desk) AuthMechanisms() []string { return []string{sasl.Plain} }

func (d *desk) Auth(string) (sasl.Server, error) {
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

func (d *desk) Mail(string, *smtp.MailOptions) error { return nil }

func (d *desk) Rcpt(string, *smtp.RcptOptions) error {
	d.office.mu.Lock()
	defer d.office.mu.Unlock()
	return d.office.rcpt
}

func (d *desk) Data(r io.Reader) error {
	letter, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	d.office.mu.Lock()
	hold, die, answer := d.office.hold, d.office.die, d.office.data
	if answer == nil {
		d.office.letters = append(d.office.letters, string(letter))
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

func (p *postOffice) set(change func(p *postOffice)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(p)
}

func (p *postOffice) received() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.letters...)
}

func (p *postOffice) gateway(t testing.TB, scheme string) *notifications.SMTP {
	t.Helper()
	g, err := notifications.NewSMTP(scheme+p.address, "bank@kontor.example", time.Now, p.trust)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func send(g *notifications.SMTP) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return g.Send(ctx, notifications.Delivery{ID: "0193a000-0000-7000-8000-000000000001", Recipient: "zoë@example.ch", Subject: "Grüezi – ça va?",
		Text: "Ihr Code lautet 012345 für Zürich.", HTML: "<p>Ihr Code lautet <strong>012345</strong> für Zürich.</p>"})
}

func TestSMTP_SendsTextAndHTMLInUTF8(t *testing.T) {
	p := newPostOffice(t, false)
	g, err := notifications.NewSMTP("smtp://"+p.address, "bank@kontor.example", time.Now, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := g.Send(ctx, notifications.Delivery{ID: "0193a000-0000-7000-8000-000000000001", Recipient: "anna@example.ch", Subject: "Grüezi – ça va?",
		Text: "Zürich\n\n.\nEnde", HTML: "<p>Zürich</p>"}); err != nil {
		t.Fatal(err)
	}
	letter, err := mail.ReadMessage(strings.NewReader(p.received()[0]))
	if err != nil {
		t.Fatal(err)
	}
	if id := letter.Header.Get("Message-ID"); id != "<0193a000-0000-7000-8000-000000000001@kontor>" {
		t.Errorf("got Message-ID %s", id)
	}
	subject, err := new(mime.WordDecoder).DecodeHeader(letter.Header.Get("Subject"))
	if err != nil || subject != "Grüezi – ça va?" {
		t.Errorf("got subject %q, %v", subject, err)
	}
	_, params, err := mime.ParseMediaType(letter.Header.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	parts := multipart.NewReader(letter.Body, params["boundary"])
	for _, want := range []struct{ media, text string }{{"text/plain", "Zürich\r\n\r\n.\r\nEnde"}, {"text/html", "<p>Zürich</p>"}} {
		part, err := parts.NextPart()
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(part)
		if !strings.HasPrefix(part.Header.Get("Content-Type"), want.media+"; charset=UTF-8") || strings.TrimSpace(string(body)) != want.text {
			t.Errorf("got %s %q, want %s %q", part.Header.Get("Content-Type"), body, want.media, want.text)
		}
	}
}

func TestSMTP_SignsInOnlyBehindSTARTTLS(t *testing.T) {
	p := newPostOffice(t, true)
	p.set(func(p *postOffice) { p.name = "anna:geheim" })
	if err := send(p.gateway(t, "smtp://anna:geheim@")); err != nil {
		t.Fatal(err)
	}
	if len(p.received()) != 1 || p.signedIn != 1 {
		t.Errorf("got %d letters, %d sign-ins", len(p.received()), p.signedIn)
	}
	if err := send(p.gateway(t, "smtp://anna:falsch@")); err == nil || permanent(err) {
		t.Errorf("a wrong password: got %v, want an error that passes once the operator has put it right", err)
	}
	plain := newPostOffice(t, false)
	if err := send(plain.gateway(t, "smtp://anna:geheim@")); err == nil || plain.signedIn != 0 || len(plain.received()) != 0 {
		t.Errorf("without TLS: got %v, want the password to stay here", err)
	}
}

func TestSMTP_SpeaksTLSFromTheFirstByte(t *testing.T) {
	p := openPostOffice(t, true, true)
	p.set(func(p *postOffice) { p.name = "anna:geheim" })
	if err := send(p.gateway(t, "smtps://anna:geheim@")); err != nil || len(p.received()) != 1 || p.signedIn != 1 {
		t.Errorf("got %v, %d letters, %d sign-ins", err, len(p.received()), p.signedIn)
	}
}

func permanent(err error) bool {
	r, ok := errors.AsType[*notifications.Refusal](err)
	return ok && r.Permanent
}

func TestSMTP_TellsRefusalsForGoodFromOthers(t *testing.T) {
	p := newPostOffice(t, false)
	g := p.gateway(t, "smtp://")
	for name, c := range map[string]struct {
		rcpt, data error
		final      bool
	}{
		"no such mailbox": {rcpt: &smtp.SMTPError{Code: 550, Message: "no"}, final: true},
		"mailbox full":    {rcpt: &smtp.SMTPError{Code: 452, Message: "later"}},
		"spam":            {data: &smtp.SMTPError{Code: 554, Message: "no"}, final: true},
		"busy":            {data: &smtp.SMTPError{Code: 451, Message: "later"}},
	} {
		p.set(func(p *postOffice) { p.rcpt, p.data = c.rcpt, c.data })
		if err := send(g); err == nil || permanent(err) != c.final {
			t.Errorf("%s: got %v, permanent %t, want %t", name, err, permanent(err), c.final)
		}
	}
	if len(p.received()) != 0 {
		t.Error("a letter came through")
	}
}

func TestSMTP_IsCutWhenTheServerIsTooSlow(t *testing.T) {
	p := newPostOffice(t, false)
	hold := make(chan struct{})
	defer close(hold)
	p.set(func(p *postOffice) { p.hold = hold })
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	began := time.Now()
	err := p.gateway(t, "smtp://").Send(ctx, notifications.Delivery{ID: "x", Recipient: "anna@example.ch", Text: "x"})
	if err == nil || permanent(err) || time.Since(began) > 5*time.Second {
		t.Errorf("got %v after %s", err, time.Since(began))
	}
}

func TestQueue_ComesThroughWithAMailServerThatIsDownRefusesOrDies(t *testing.T) {
	p := newPostOffice(t, false)
	down, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody, err := notifications.NewSMTP("smtp://"+down.Addr().String(), "bank@kontor.example", time.Now, nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = down.Close()
	h := newHouse(t, notifications.Options{Email: nobody})
	id := h.enqueue("email", "secret 012345")
	if s := h.until(id, "retrying"); s.text == "" {
		t.Error("the text is gone before anybody has it")
	}
	_ = h.Close(context.Background())

	p.set(func(p *postOffice) { p.die = true })
	h.restart(notifications.Options{Email: p.gateway(t, "smtp://")})
	h.pass(time.Hour)
	eventually(t, func() bool { s := h.state(id); return s.status == "retrying" && s.attempts >= 2 })
	p.set(func(p *postOffice) { p.die = false })
	h.untilItEnds(id)
	if s := h.state(id); s.status != "sent" || s.text != "" {
		t.Errorf("got %+v, want it to be sent and its secret gone", s)
	}
	letters := p.received()
	if len(letters) < 2 {
		t.Fatalf("got %d letters, want the one that got no answer and its repetition", len(letters))
	}
	first, last := letters[0], letters[len(letters)-1]
	if idOf(t, first) != idOf(t, last) {
		t.Error("the repetition cannot be recognised by its Message-ID")
	}
}

func idOf(t testing.TB, letter string) string {
	t.Helper()
	m, err := mail.ReadMessage(strings.NewReader(letter))
	if err != nil {
		t.Fatal(err)
	}
	return m.Header.Get("Message-ID")
}

func TestNewSMTP_RefusesOtherAddressesWithoutRepeatingThem(t *testing.T) {
	for _, address := range []string{"http://user:geheim@mail.example", "smtp://", "smtp://user:geheim@mail.example:x", "%"} {
		if _, err := notifications.NewSMTP(address, "a@b.ch", time.Now, nil); err == nil || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s: got %v", address, err)
		}
	}
}
