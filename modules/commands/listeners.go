package commands

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"time"

	"golang.org/x/net/netutil"

	"kontor/server"
	"kontor/server/certs"
	"kontor/server/settings"
)

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
		if l.redirect, err = listen(ctx, plain); err != nil {
			l.close()
			return nil, err
		}
		l.redirect = netutil.LimitListener(l.redirect, maxRedirects)
	}
	address := r.Settings.Metrics.Listen
	if address == "" {
		return l, nil
	}
	if l.metrics, err = listen(ctx, address); err == nil {
		l.metrics = netutil.LimitListener(l.metrics, maxScrapes)
		return l, nil
	}
	if r.Source("metrics.listen") != settings.FromDefault {
		l.close()
		return nil, err
	}
	l.warning = fmt.Sprintf("no metrics for Prometheus: %v; set metrics.listen to another address, or to nothing", err)
	return l, nil
}

// again opens the addresses that a round of a sandbox has closed, besides the main one.
func (l *listeners) again(ctx context.Context) (err error) {
	if l.metrics != nil {
		if l.metrics, err = listen(ctx, l.metrics.Addr().String()); err != nil {
			return err
		}
		l.metrics = netutil.LimitListener(l.metrics, maxScrapes)
	}
	if l.redirect != nil {
		if l.redirect, err = listen(ctx, l.redirect.Addr().String()); err != nil {
			return err
		}
		l.redirect = netutil.LimitListener(l.redirect, maxRedirects)
	}
	return nil
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
