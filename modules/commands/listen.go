package commands

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/net/netutil"

	"kontor/modules/kit/change"
	"kontor/modules/reach/webhooks"
	"kontor/server"
	"kontor/server/certs"
	"kontor/server/client"
	"kontor/server/settings"
	"kontor/store"
)

type listenCommand struct {
	URL, Token, After, Forward, Secret string
	Types                              []string
	Record, JSON                       bool
}

func (l *commandLine) listen() *cobra.Command {
	c := &listenCommand{}
	cmd := &cobra.Command{
		Use: "listen --token=<token>", Short: "Print the changes of a running server, or forward them as webhooks.",
		Long: `The command is for the development of programs that receive events. It shows
what the service account of the token may read, and continues without a gap when
the connection is cut. With --forward, an event that the receiver does not
accept is sent again until it does, and later events wait. Servers deliver
events by webhooks instead, see docs/webhooks.md.`,
		Example: "kontor listen --token @token\nkontor listen --token @token --types 'customers.*' --forward http://localhost:3000/hooks",
		Args:    arguments(), RunE: l.run(c.Run),
	}
	f := cmd.Flags()
	f.StringVar(&c.URL, "url", "", "Address (`URL`) of the server; default: the one of the data directory.")
	f.StringVar(&c.Token, "token", "", "`Token` of a service account, or @FILE to read it from a file: other users can see flags.")
	f.StringSliceVar(&c.Types, "types", nil, "`Types` of events, or patterns such as customers.*; separated by commas. Default: all.")
	f.StringVar(&c.After, "after", "", "Begin after an event, by its `id`, or at a time. Default: with the next event.")
	f.BoolVar(&c.Record, "record", false, "Include each record as it is now.")
	f.StringVar(&c.Forward, "forward", "", "Send each event as a webhook to this `URL`, which may be on this machine.")
	f.StringVar(&c.Secret, "secret", "", "`Secret` that signs what is forwarded, whsec_…; default: a random one, which is printed.")
	f.BoolVar(&c.JSON, "json", false, "Print each event as one line of JSON.")
	required(cmd, "token")
	return cmd
}

// Run follows the feed until it is interrupted.
func (c *listenCommand) Run(ctx context.Context, p Process, r *settings.Result) error {
	server, err := clientOf(ctx, c.Token, c.URL, r.Settings)
	if err != nil {
		return err
	}
	print := c.printer(p.Stdout)
	if c.Forward != "" {
		forward, err := c.forwarder(p)
		if err != nil {
			return err
		}
		shown := print
		print = func(ctx context.Context, e *client.ChangeEvent) error {
			return errors.Join(shown(ctx, e), forward(ctx, e))
		}
	}
	return c.follow(ctx, p, server, print)
}

// follow calls use for each event.
func (c *listenCommand) follow(ctx context.Context, p Process, server *client.Client, use func(context.Context, *client.ChangeEvent) error) error {
	params := client.EventsListParams{After: c.After, Types: strings.Join(c.Types, ",")}
	if c.Record {
		params.Include = "record"
	}
	for frame, err := range server.Events.Stream(ctx, params) {
		switch {
		case ctx.Err() != nil:
			return nil // interrupted
		case err != nil:
			return fmt.Errorf("the events cannot be read: %w", err)
		case frame.Open != nil:
			fmt.Fprintf(p.Stderr, "listening after %s\n", frame.Open.Cursor)
		case frame.Change != nil:
			if err := use(ctx, frame.Change); err != nil {
				return err
			}
		}
	}
	return nil
}

// printer returns a function that prints an event on one line.
func (c *listenCommand) printer(to io.Writer) func(context.Context, *client.ChangeEvent) error {
	return func(_ context.Context, e *client.ChangeEvent) error {
		if c.JSON {
			return json.NewEncoder(to).Encode(e)
		}
		_, err := fmt.Fprintf(to, "%s  %-28s %s  %s\n", e.Timestamp.Local().Format(time.TimeOnly), e.Type, e.RecID, e.ID)
		return err
	}
}

const (
	forwardTimeout  = 30 * time.Second
	forwardPause    = time.Second
	maxForwardPause = 30 * time.Second
)

// forwarder returns a function that sends an event until the receiver accepts it. The address is the developer's own, so that it is
// not restricted as those of webhooks are.
func (c *listenCommand) forwarder(p Process) (func(context.Context, *client.ChangeEvent) error, error) {
	if u, err := url.Parse(c.Forward); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("--forward must be an address such as http://localhost:3000/hooks")
	}
	text := c.Secret
	if text == "" {
		secret := make([]byte, 32)
		rand.Read(secret) // does not fail: it would end the program
		text = "whsec_" + base64.StdEncoding.EncodeToString(secret)
		fmt.Fprintf(p.Stderr, "the secret of the signatures is %s\n", text)
	}
	secret, err := webhooks.ParseSecret(text)
	if err != nil {
		return nil, fmt.Errorf("--secret: %w", err)
	}
	to := &http.Client{Timeout: forwardTimeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return func(ctx context.Context, e *client.ChangeEvent) error {
		for pause := forwardPause; ; pause = min(2*pause, maxForwardPause) {
			err := c.send(ctx, to, secret, e)
			if err == nil || ctx.Err() != nil {
				return nil //nolint:nilerr // the user has ended the command
			}
			fmt.Fprintf(p.Stderr, "%s: %v; it is sent again in %s\n", e.ID, err, pause)
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(pause):
			}
		}
	}, nil
}

// send sends an event once, as the server would.
func (c *listenCommand) send(ctx context.Context, to *http.Client, secret []byte, e *client.ChangeEvent) error {
	event := change.Event{ID: e.ID, Type: e.Type, Timestamp: store.TimeOf(e.Timestamp), RecType: e.RecType, RecID: e.RecID, Version: e.Version,
		Action: e.Action, Actor: e.Actor, Record: e.Record}
	body, err := event.Payload()
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.Forward, bytes.NewReader(body))
	if err != nil {
		return err
	}
	now := time.Now().Unix()
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Webhook-Id", e.ID)
	request.Header.Set("Webhook-Timestamp", strconv.FormatInt(now, 10))
	request.Header.Set("Webhook-Signature", webhooks.Signatures(e.ID, now, body, secret))
	answer, err := to.Do(request)
	if err != nil {
		return errors.Unwrap(err)
	}
	defer answer.Body.Close()
	_, _ = io.CopyN(io.Discard, answer.Body, 64<<10) // so that the connection can be used again
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		return fmt.Errorf("the receiver answered %d", answer.StatusCode)
	}
	return nil
}

// listeners are the open addresses of a server.
type listeners struct {
	main     net.Listener
	metrics  net.Listener // nil: none
	redirect net.Listener // for plain HTTP beside TLS; nil: none
	warning  string       // for the log of a start that succeeds
	starting *server.Starting
	ready    func() // ends what starting does
}

// maxScrapes bounds the connections to metrics.listen.
const maxScrapes = 8

// startPatience is how long requests wait for a start before they are answered with 503. Most starts are quicker.
const startPatience = time.Second

// answerDuringStart answers requests on the main address while the start takes long, until stop is called. With server.domain, the
// certificates are in the database, so that requests wait.
func (l *listeners) answerDuringStart(s *settings.Server, log *slog.Logger) (stop func(), err error) {
	if len(s.Domain) > 0 {
		return func() {}, nil
	}
	var config *tls.Config
	if s.TLSCert != "" {
		files, err := certs.LoadFiles(s.TLSCert, s.TLSKey, time.Now, log)
		if err != nil {
			return nil, err
		}
		config = tlsConfig(files.Get)
	}
	l.starting = server.NewStarting(l.main, config, log)
	timer := time.AfterFunc(startPatience, l.starting.Begin)
	return func() {
		timer.Stop()
		l.starting.Stop()
	}, nil
}

// report takes the progress of the start.
func (l *listeners) report(done, total int) {
	if l.starting != nil {
		l.starting.Report(done, total)
	}
}

// openListeners opens the addresses of the settings. If another program uses the default of metrics.listen, the server runs
// without that address: two servers on one machine are common.
func openListeners(ctx context.Context, r *settings.Result) (*listeners, error) {
	l := &listeners{}
	var err error
	if l.main, err = listen(ctx, r.Settings.Server.Listen); err != nil {
		return nil, err
	}
	if plain := r.Settings.Server.RedirectListen; plain != "" {
		if l.redirect, err = listenFor(ctx, plain, maxRedirects); err != nil {
			l.close()
			return nil, err
		}
	}
	address := r.Settings.Metrics.Listen
	if address == "" {
		return l, nil
	}
	if l.metrics, err = listenFor(ctx, address, maxScrapes); err == nil {
		return l, nil
	}
	if r.Source("metrics.listen") != settings.FromDefault {
		l.close()
		return nil, err
	}
	l.warning = fmt.Sprintf("no metrics for Prometheus: %v; set metrics.listen to another address, or to nothing", err)
	return l, nil
}

// listenFor opens an address for a number of connections.
func listenFor(ctx context.Context, address string, most int) (net.Listener, error) {
	listener, err := listen(ctx, address)
	if err != nil {
		return nil, err
	}
	return netutil.LimitListener(listener, most), nil
}

// again opens the addresses that a round of a sandbox has closed, besides the main one.
func (l *listeners) again(ctx context.Context) (err error) {
	if l.metrics != nil {
		if l.metrics, err = listenFor(ctx, l.metrics.Addr().String(), maxScrapes); err != nil {
			return err
		}
	}
	if l.redirect != nil {
		l.redirect, err = listenFor(ctx, l.redirect.Addr().String(), maxRedirects)
	}
	return err
}

// close closes the listeners that no server has closed.
func (l *listeners) close() {
	_ = l.main.Close() // the server may have closed it
	for _, other := range []net.Listener{l.metrics, l.redirect} {
		if other != nil {
			_ = other.Close()
		}
	}
}

// addressOf returns the address of a listener, "" for none.
func addressOf(l net.Listener) string {
	if l == nil {
		return ""
	}
	return l.Addr().String()
}
