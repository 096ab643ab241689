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

// NewSMTP makes a gateway of a URL such as smtp://user:password@mail.example:587 or smtps://mail.example. trust is nil
// but in tests.
func NewSMTP(address, from string, now func() time.Time, trust *tls.Config) (*SMTP, error) {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || u.Scheme != "smtp" && u.Scheme != "smtps" {
		return nil, errors.New("the address of the mail server is no smtp:// or smtps:// URL") // without the URL: it may hold a password
	}
	g := &SMTP{host: u.Hostname(), port: submissionPort, implicit: u.Scheme == "smtps", from: from, now: now, tls: trust}
	if g.implicit {
		g.port = implicitPort
	}
	if u.Port() != "" {
		if g.port, err = strconv.Atoi(u.Port()); err != nil {
			return nil, errors.New("the port of the mail server is no number")
		}
	}
	g.user = u.User.Username()
	g.password, _ = u.User.Password()
	if g.tls == nil {
		g.tls = &tls.Config{ServerName: g.host, MinVersion: tls.VersionTLS12}
	}
	return g, nil
}

// Send hands one mail over. The Message-ID is made of the delivery's id: a mail that is sent again after its answer was
// lost can be recognised.
func (g *SMTP) Send(ctx context.Context, d Delivery) error {
	message, err := g.message(d)
	if err != nil {
		return &Refusal{Permanent: true, Cause: err}
	}
	client, err := g.client(ctx)
	if err != nil {
		return err
	}
	return smtpRefusal(client.DialAndSendWithContext(ctx, message))
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

// client makes a connection's configuration. A password is never sent in clear: with one, STARTTLS is a must.
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
		// The library's own choice does not know that a connection of ours is encrypted.
		options = append(options, mail.WithSMTPAuthCustom(&encryptedAuth{gateway: g}))
	default:
		options = append(options, mail.WithSMTPAuth(mail.SMTPAuthAutoDiscover), mail.WithUsername(g.user), mail.WithPassword(g.password))
	}
	return mail.NewClient(g.host, options...)
}

// encryptedAuth signs in on a connection that is encrypted from the first byte, by what the server offers.
type encryptedAuth struct {
	gateway *SMTP
	smtp.Auth
}

// Start chooses the mechanism.
func (a *encryptedAuth) Start(server *smtp.ServerInfo) (mechanism string, first []byte, err error) {
	g := a.gateway
	if a.Auth = smtp.PlainAuth("", g.user, g.password, g.host, false); !slices.Contains(server.Auth, "PLAIN") {
		a.Auth = smtp.LoginAuth(g.user, g.password, g.host, false)
	}
	return a.Auth.Start(server)
}

// dialer connects, and cuts the connection when the attempt is over, whatever the protocol waits for. The context that
// the library passes ends with the dialling.
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
		context.AfterFunc(attempt, func() { _ = connection.Close() }) // closing it twice does no harm
		return connection, nil
	}
}

// smtpRefusal tells what will never be taken from what may be taken later. What a server says about sender, recipient
// or message with 5xx is final (RFC 5321, section 4.2.1); what it says about us, such as a wrong password, is put right
// by the operator.
func smtpRefusal(err error) error {
	if err == nil {
		return nil
	}
	sent, ok := errors.AsType[*mail.SendError](err)
	if !ok {
		return err
	}
	switch sent.Reason {
	case mail.ErrSMTPMailFrom, mail.ErrSMTPRcptTo, mail.ErrSMTPData, mail.ErrSMTPDataClose:
		return &Refusal{Permanent: sent.ErrorCode() >= 500, Cause: err}
	case mail.ErrGetSender, mail.ErrGetRcpts, mail.ErrNoUnencoded:
		return &Refusal{Permanent: true, Cause: err}
	default:
		return err
	}
}
