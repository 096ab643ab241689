package notifications

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/wneessen/go-mail"
	"github.com/wneessen/go-mail/smtp"
)

// SMTP is the gateway for e-mail.
type SMTP struct {
	host     string
	port     int
	implicit bool // TLS from the first byte
	user     string
	password string
	from     string
	now      func() time.Time
	tls      *tls.Config
}

const (
	submissionPort = 587
	implicitPort   = 465
)

// NewSMTP returns a gateway for a URL such as smtp://user:password@mail.example:587 or smtps://mail.example. trust is nil
// except in tests.
func NewSMTP(address, from string, now func() time.Time, trust *tls.Config) (*SMTP, error) {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || u.Scheme != "smtp" && u.Scheme != "smtps" {
		return nil, errors.New("the address of the mail server is not an smtp:// or smtps:// URL") // without the URL: it may hold a password
	}
	g := &SMTP{host: u.Hostname(), port: submissionPort, implicit: u.Scheme == "smtps", from: from, now: now, tls: trust}
	if g.implicit {
		g.port = implicitPort
	}
	if u.Port() != "" {
		if g.port, err = strconv.Atoi(u.Port()); err != nil {
			return nil, errors.New("the port of the mail server is not a number")
		}
	}
	g.user = u.User.Username()
	g.password, _ = u.User.Password()
	if g.tls == nil {
		g.tls = &tls.Config{ServerName: g.host, MinVersion: tls.VersionTLS12}
	}
	return g, nil
}

// Send sends one e-mail. The Message-ID contains the delivery's id, so that a repetition after a lost answer can be
// recognised.
func (g *SMTP) Send(ctx context.Context, d Delivery) error {
	message, err := g.message(d)
	if err != nil {
		return &SendError{Permanent: true, Cause: err}
	}
	client, err := g.client(ctx)
	if err != nil {
		return err
	}
	return smtpSendError(client.DialAndSendWithContext(ctx, message))
}

func (g *SMTP) message(d Delivery) (*mail.Msg, error) {
	m := mail.NewMsg(mail.WithNoDefaultUserAgent())
	if err := m.From(g.from); err != nil {
		return nil, fmt.Errorf("sender: %w", err)
	}
	if err := m.To(d.Recipient); err != nil {
		return nil, fmt.Errorf("recipient: %w", err)
	}
	m.Subject(d.Subject)
	m.SetDateWithValue(g.now())
	m.SetMessageIDWithValue(d.ID + "@kontor")
	m.SetGenHeader("Auto-Submitted", "auto-generated")
	m.SetBodyString(mail.TypeTextPlain, d.Text)
	if d.HTML != "" {
		m.AddAlternativeString(mail.TypeTextHTML, d.HTML)
	}
	return m, nil
}

const smtpTimeout = 15 * time.Second // for connecting and for each answer

// client returns a client for one connection. With a password STARTTLS is mandatory: it must not be sent in the clear.
func (g *SMTP) client(ctx context.Context) (*mail.Client, error) {
	options := []mail.Option{
		mail.WithPort(g.port), mail.WithTimeout(smtpTimeout), mail.WithTLSConfig(g.tls), mail.WithDialContextFunc(g.dialer(ctx)),
		mail.WithHELO("kontor.localhost"),
	}
	switch {
	case g.implicit:
		options = append(options, mail.WithSSL())
	case g.user != "":
		options = append(options, mail.WithTLSPolicy(mail.TLSMandatory))
	default:
		options = append(options, mail.WithTLSPolicy(mail.TLSOpportunistic))
	}
	switch {
	case g.user == "":
	case g.implicit:
		// The library would not detect that this connection is encrypted.
		options = append(options, mail.WithSMTPAuthCustom(&encryptedAuth{gateway: g}))
	default:
		options = append(options, mail.WithSMTPAuth(mail.SMTPAuthAutoDiscover), mail.WithUsername(g.user), mail.WithPassword(g.password))
	}
	return mail.NewClient(g.host, options...)
}

// encryptedAuth authenticates on a connection that is encrypted from the first byte.
type encryptedAuth struct {
	gateway *SMTP
	smtp.Auth
}

// Start uses PLAIN if the server offers it, and LOGIN otherwise.
func (a *encryptedAuth) Start(server *smtp.ServerInfo) (mechanism string, first []byte, err error) {
	g := a.gateway
	if a.Auth = smtp.PlainAuth("", g.user, g.password, g.host, false); !slices.Contains(server.Auth, "PLAIN") {
		a.Auth = smtp.LoginAuth(g.user, g.password, g.host, false)
	}
	return a.Auth.Start(server)
}

// dialer returns a function that connects and closes the connection when the attempt ends, whatever the protocol waits
// for. The context that the library passes ends once the connection is there.
func (g *SMTP) dialer(attempt context.Context) mail.DialContextFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		plain := &net.Dialer{Timeout: smtpTimeout}
		var connection net.Conn
		var err error
		if g.implicit {
			connection, err = (&tls.Dialer{NetDialer: plain, Config: g.tls}).DialContext(ctx, network, address)
		} else {
			connection, err = plain.DialContext(ctx, network, address)
		}
		if err != nil {
			return nil, err
		}
		context.AfterFunc(attempt, func() { _ = connection.Close() }) // closing it twice is harmless
		return connection, nil
	}
}

// smtpSendError distinguishes permanent from temporary errors. A reply of 5xx about sender, recipient or message is final (RFC
// 5321, section 4.2.1). A reply about the client, such as a wrong password, is not: the operator can correct the setting.
func smtpSendError(err error) error {
	if err == nil {
		return nil
	}
	sent, ok := errors.AsType[*mail.SendError](err)
	if !ok {
		return err
	}
	switch sent.Reason {
	case mail.ErrSMTPMailFrom, mail.ErrSMTPRcptTo, mail.ErrSMTPData, mail.ErrSMTPDataClose:
		return &SendError{Permanent: sent.ErrorCode() >= 500, Cause: err}
	case mail.ErrGetSender, mail.ErrGetRcpts, mail.ErrNoUnencoded:
		return &SendError{Permanent: true, Cause: err}
	default:
		return err
	}
}
