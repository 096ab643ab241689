package deliveries

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/wneessen/go-mail"
	"github.com/wneessen/go-mail/smtp"

	"kontor/modules/kit/outbox"
)

// Gateway sends the deliveries of one channel.
type Gateway interface {
	// Send sends a delivery. The id is the same at every attempt, so that the gateway can recognise a repetition. After an
	// error that is not a [SendError] the delivery is tried again.
	Send(ctx context.Context, d Delivery) error
}

// SendError is an error of a gateway that says how to go on.
type SendError = outbox.Error

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

// Webhook is the gateway for SMS. It posts each message to a URL as a JSON object.
type Webhook struct {
	address string
	token   string
	now     func() time.Time
	client  *http.Client
}

const webhookTimeout = 20 * time.Second

// NewWebhook returns a gateway for a URL. The token may be empty.
func NewWebhook(address, token string, now func() time.Time) *Webhook {
	return &Webhook{address: address, token: token, now: now, client: &http.Client{
		Timeout: webhookTimeout,
		// Redirects are not followed: the token is for this address only.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// sms is the body of a request to the gateway.
type sms struct {
	To   string `json:"to"`
	Text string `json:"text"`
	ID   string `json:"id"`
}

// Send sends one message. The delivery's id goes with it, so that the gateway can recognise a repetition.
func (g *Webhook) Send(ctx context.Context, d Delivery) error {
	body, err := json.Marshal(sms{To: d.Recipient, Text: d.Text, ID: d.ID})
	if err != nil {
		return &SendError{Permanent: true, Cause: err}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, g.address, bytes.NewReader(body))
	if err != nil {
		return &SendError{Permanent: true, Cause: errors.New("the address of the SMS gateway is not a URL")}
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Idempotency-Key", d.ID)
	if g.token != "" {
		request.Header.Set("Authorization", "Bearer "+g.token)
	}
	response, err := g.client.Do(request)
	if err != nil {
		return withoutURL(err)
	}
	defer response.Body.Close()
	const maxAnswer = 64 << 10
	_, _ = io.CopyN(io.Discard, response.Body, maxAnswer) // so that the connection can be reused
	return g.check(response)
}

// check returns nil for 2xx, a temporary error for 5xx, 408 and 429, and a permanent one for other statuses.
func (g *Webhook) check(response *http.Response) error {
	status := response.StatusCode
	if status >= 200 && status < 300 {
		return nil
	}
	temporary := status >= 500 || status == http.StatusRequestTimeout || status == http.StatusTooManyRequests
	return &SendError{Permanent: !temporary, RetryAfter: g.retryAfter(response.Header.Get("Retry-After")),
		Cause: fmt.Errorf("the SMS gateway answered %d", status)}
}

// retryAfter returns the pause of the header Retry-After, which holds seconds or a date (RFC 9110, section 10.2.3).
func (g *Webhook) retryAfter(header string) time.Duration {
	if seconds, err := strconv.Atoi(header); err == nil && seconds > 0 {
		return time.Duration(min(seconds, int(outbox.MaxRetryAfter/time.Second))) * time.Second
	}
	if at, err := http.ParseTime(header); err == nil {
		return max(0, at.Sub(g.now()))
	}
	return 0
}

// withoutURL removes the URL, which may contain a secret, from an error.
func withoutURL(err error) error {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return failed.Err
	}
	return err
}
