package deliveries_test

import (
	"context"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net"
	"net/mail"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"kontor/modules/reach/deliveries"
	"kontor/store/storetest"
	"kontor/store/testenv"
)

func send(g *deliveries.SMTP) error {
	ctx, cancel := context.WithTimeout(context.Background(), testenv.Limit())
	defer cancel()
	return g.Send(ctx, deliveries.Delivery{ID: "0193a000-0000-7000-8000-000000000001", Recipient: "zoë@example.ch", Subject: "Grüezi – ça va?",
		Text: "Ihr Code lautet 012345 für Zürich.", HTML: "<p>Ihr Code lautet <strong>012345</strong> für Zürich.</p>"})
}

func TestSMTP_SendsTextAndHTMLInUTF8(t *testing.T) {
	p := newMailServer(t, false)
	g, err := deliveries.NewSMTP("smtp://"+p.address, "bank@kontor.example", time.Now, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Limit())
	defer cancel()
	if err := g.Send(ctx, deliveries.Delivery{ID: "0193a000-0000-7000-8000-000000000001", Recipient: "anna@example.ch", Subject: "Grüezi – ça va?",
		Text: "Zürich\n\n.\nEnde", HTML: "<p>Zürich</p>"}); err != nil {
		t.Fatal(err)
	}
	mail, err := mail.ReadMessage(strings.NewReader(p.received()[0]))
	if err != nil {
		t.Fatal(err)
	}
	if id := mail.Header.Get("Message-ID"); id != "<0193a000-0000-7000-8000-000000000001@kontor>" {
		t.Errorf("got Message-ID %s", id)
	}
	subject, err := new(mime.WordDecoder).DecodeHeader(mail.Header.Get("Subject"))
	if err != nil || subject != "Grüezi – ça va?" {
		t.Errorf("got subject %q, %v", subject, err)
	}
	_, params, err := mime.ParseMediaType(mail.Header.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	parts := multipart.NewReader(mail.Body, params["boundary"])
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

func TestSMTP_AuthenticatesOnlyAfterSTARTTLS(t *testing.T) {
	p := newMailServer(t, true)
	p.set(func(p *mailServer) { p.name = "anna:geheim" })
	if err := send(p.gateway(t, "smtp://anna:geheim@")); err != nil {
		t.Fatal(err)
	}
	if len(p.received()) != 1 || p.signedIn != 1 {
		t.Errorf("got %d mails, %d sign-ins", len(p.received()), p.signedIn)
	}
	if err := send(p.gateway(t, "smtp://anna:falsch@")); err == nil || permanent(err) {
		t.Errorf("a wrong password: got %v, want a temporary error", err)
	}
	plain := newMailServer(t, false)
	if err := send(plain.gateway(t, "smtp://anna:geheim@")); err == nil || plain.signedIn != 0 || len(plain.received()) != 0 {
		t.Errorf("without TLS: got %v, want no password to be sent", err)
	}
}

func TestSMTP_UsesImplicitTLS(t *testing.T) {
	p := openMailServer(t, true, true)
	p.set(func(p *mailServer) { p.name = "anna:geheim" })
	if err := send(p.gateway(t, "smtps://anna:geheim@")); err != nil || len(p.received()) != 1 || p.signedIn != 1 {
		t.Errorf("got %v, %d mails, %d sign-ins", err, len(p.received()), p.signedIn)
	}
}

func permanent(err error) bool {
	r, ok := errors.AsType[*deliveries.SendError](err)
	return ok && r.Permanent
}

func TestSMTP_TellsPermanentErrorsFromTemporaryOnes(t *testing.T) {
	p := newMailServer(t, false)
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
		p.set(func(p *mailServer) { p.rcpt, p.data = c.rcpt, c.data })
		if err := send(g); err == nil || permanent(err) != c.final {
			t.Errorf("%s: got %v, permanent %t, want %t", name, err, permanent(err), c.final)
		}
	}
	if len(p.received()) != 0 {
		t.Error("a mail was accepted")
	}
}

func TestSMTP_StopsWhenTheServerIsTooSlow(t *testing.T) {
	p := newMailServer(t, false)
	hold := make(chan struct{})
	defer close(hold)
	p.set(func(p *mailServer) { p.hold = hold })
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	err := p.gateway(t, "smtp://").Send(ctx, deliveries.Delivery{ID: "x", Recipient: "anna@example.ch", Text: "x"})
	if err == nil || permanent(err) {
		t.Errorf("got %v", err)
	}
}

func TestQueue_SendsDespiteAMailServerThatIsDownRejectsOrDisconnects(t *testing.T) {
	p := newMailServer(t, false)
	down, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	unreachable, err := deliveries.NewSMTP("smtp://"+down.Addr().String(), "bank@kontor.example", time.Now, nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = down.Close()
	h := newQueueTest(t, deliveries.Options{Email: unreachable})
	id := h.enqueue("email", "secret 012345")
	if s := h.until(id, "retrying"); s.text == "" {
		t.Error("the text was removed before it was sent")
	}
	_ = h.Close(context.Background())

	p.set(func(p *mailServer) { p.die = true })
	h.restart(deliveries.Options{Email: p.gateway(t, "smtp://")})
	h.pass(time.Hour)
	eventually(t, func() bool { s := h.state(id); return s.status == "retrying" && s.attempts >= 2 })
	p.set(func(p *mailServer) { p.die = false })
	h.untilItEnds(id)
	if s := h.state(id); s.status != "sent" || s.text != "" {
		t.Errorf("got %+v, want it to be sent and its secret removed", s)
	}
	mails := p.received()
	if len(mails) < 2 {
		t.Fatalf("got %d mails, want the one that got no answer and its repetition", len(mails))
	}
	first, last := mails[0], mails[len(mails)-1]
	if idOf(t, first) != idOf(t, last) {
		t.Error("the repetition cannot be recognised by its Message-ID")
	}
}

func TestQueue_LeavesNoCodeInTheDataDirectory(t *testing.T) {
	p := newMailServer(t, false)
	h := newQueueTest(t, deliveries.Options{})
	const code = "738051"
	stored := func() bool {
		for _, content := range storetest.Contents(t, h.db) {
			if strings.Contains(content, "secret "+code) {
				return true
			}
		}
		return false
	}
	p.set(func(p *mailServer) { p.die = true })
	h.restart(deliveries.Options{Email: p.gateway(t, "smtp://")})
	id := h.enqueue("email", "secret "+code)
	h.until(id, "retrying")
	if stored() {
		t.Error("the code is in plain text in the data directory before it is sent")
	}
	p.set(func(p *mailServer) { p.die = false })
	h.untilItEnds(id)
	if s := h.state(id); s.status != "sent" {
		t.Fatalf("got %+v", s)
	}
	if stored() {
		t.Error("the code is in plain text in the data directory after it was sent")
	}
	if mails := p.received(); !strings.Contains(mails[len(mails)-1], "secret "+code) {
		t.Error("the mail does not have the code")
	}
}

func idOf(t testing.TB, text string) string {
	t.Helper()
	m, err := mail.ReadMessage(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return m.Header.Get("Message-ID")
}

func TestNewSMTP_RejectsOtherURLsWithoutRepeatingThem(t *testing.T) {
	for _, address := range []string{"http://user:geheim@mail.example", "smtp://", "smtp://user:geheim@mail.example:x", "%"} {
		if _, err := deliveries.NewSMTP(address, "a@b.ch", time.Now, nil); err == nil || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s: got %v", address, err)
		}
	}
}
