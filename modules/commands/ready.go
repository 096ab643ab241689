package commands

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"kontor/modules/app"
	"kontor/server/certs"
	"kontor/server/settings"
)

func (l *commandLine) ready() *cobra.Command {
	var timeout int
	cmd := &cobra.Command{
		Use: "ready", Short: "Ask the running server whether it is ready.",
		Long: `The command asks the server of the same settings on this machine. It exits with
0 when the server is ready, and with 1 when it is not or does not answer. It
needs no sign-in. Health checks of containers use it.`,
		Example: "kontor ready\nkontor ready --server.listen 127.0.0.1:9000", Args: arguments(),
		RunE: l.run(func(ctx context.Context, p Process, r *settings.Result) error {
			return askReady(ctx, p, &r.Settings.Server, timeout)
		}),
	}
	cmd.Flags().IntVar(&timeout, "timeout", 5, "`Seconds` to wait for the answer.")
	return cmd
}

const maxReadyTimeout = 3600

// askReady asks /readyz.
func askReady(ctx context.Context, p Process, s *settings.Server, timeout int) error {
	if timeout < 1 || timeout > maxReadyTimeout {
		return fmt.Errorf("--timeout must be from 1 to %d", maxReadyTimeout)
	}
	if _, port, err := net.SplitHostPort(s.Listen); err == nil && port == "0" {
		return errors.New("server.listen has port 0, so the port of the server is not known; name it with --server.listen")
	}
	name := ""
	if len(s.Domain) > 0 {
		name = s.Domain[0]
	}
	client, origin := ownClient(s.Listen, s.OverTLS(), name, time.Duration(timeout)*time.Second)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, origin+"/readyz", nil)
	if err != nil {
		return err
	}
	answer, err := client.Do(request)
	if err != nil {
		if opened, ok := errors.AsType[*net.OpError](err); ok && opened.Op == "dial" {
			return fmt.Errorf("no server answers at %s; is it running with these settings?", origin)
		}
		return fmt.Errorf("the server at %s did not answer: %w", origin, errors.Unwrap(err))
	}
	defer answer.Body.Close()
	return p.readiness(origin, answer)
}

// readiness prints that the server is ready, or returns what is missing.
func (p Process) readiness(origin string, answer *http.Response) error {
	const maxBody = 64 << 10
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxBody))
	if err != nil {
		return fmt.Errorf("the server at %s did not finish its answer: %w", origin, err)
	}
	var state struct {
		Status string            `json:"overall_status"`
		Checks map[string]string `json:"checks"`
	}
	if json.Unmarshal(body, &state) != nil || state.Status == "" {
		return fmt.Errorf("the server at %s is not Kontor: /readyz returned status %d", origin, answer.StatusCode)
	}
	if answer.StatusCode == http.StatusOK {
		text := "ready"
		if warnings := checksWith(state.Checks, "warning"); len(warnings) > 0 {
			text += "; warning: " + strings.Join(warnings, ", ")
		}
		return p.say("%s", text)
	}
	failed := checksWith(state.Checks, "failed")
	if len(failed) == 0 {
		return fmt.Errorf("the server at %s is shutting down", origin)
	}
	return fmt.Errorf("the server at %s is not ready; failed: %s", origin, strings.Join(failed, ", "))
}

// checksWith returns the names of the checks with a result, sorted.
func checksWith(checks map[string]string, result string) (names []string) {
	for check, r := range checks {
		if r == result {
			names = append(names, check)
		}
	}
	slices.Sort(names)
	return names
}

// transport is how clients reach the server: by TLS that ends here, or by plain HTTP.
type transport struct {
	config  *tls.Config                          // nil: plain HTTP
	handler func(next http.Handler) http.Handler // wraps the answers over plain HTTP; nil: none
	obtain  func(context.Context)                // obtains certificates; nil: none
	expires func() time.Time                     // end of the certificate; nil: none
}

// checkTLS checks the settings of TLS and the files that they name.
func checkTLS(s *settings.Server) error {
	switch {
	case (s.TLSCert == "") != (s.TLSKey == ""):
		return errors.New("server.tls_cert and server.tls_key must be set together")
	case s.TLSCert != "" && len(s.Domain) > 0:
		return errors.New("server.domain obtains certificates itself; remove server.tls_cert and server.tls_key, or server.domain")
	case s.OverTLS() && strings.HasPrefix(s.BaseURL, "http://"):
		return errors.New("server.base_url must begin with https://, because the server speaks TLS")
	case s.RedirectListen != "" && !s.OverTLS():
		return errors.New("server.redirect_listen needs server.domain, or server.tls_cert and server.tls_key")
	case s.TLSCert != "":
		_, err := certs.LoadFiles(s.TLSCert, s.TLSKey, time.Now, slog.New(slog.DiscardHandler))
		return err
	}
	return nil
}

// acmeDir is the directory in the data directory with account and certificates.
const acmeDir = "certificates"

// newTransport returns the transport of the settings. Certificates are kept in the data directory, encrypted, or in a database that
// several nodes share.
func newTransport(s *settings.Settings, m *app.Modules, log *slog.Logger) (*transport, error) {
	switch {
	case s.Server.TLSCert != "":
		files, err := certs.LoadFiles(s.Server.TLSCert, s.Server.TLSKey, time.Now, log)
		if err != nil {
			return nil, err
		}
		return &transport{config: tlsConfig(files.Get), expires: files.Expires}, nil
	case len(s.Server.Domain) > 0:
		options := certs.ACMEOptions{Domains: s.Server.Domain, Email: s.Server.ACMEEmail, Directory: s.Server.ACMEURL, Leads: m.DB.Leads, Log: log}
		if m.DB.Shared() {
			options.Cache = m.Certificates
		} else {
			options.Dir, options.Key = filepath.Join(s.Data.Dir, acmeDir), m.DB.Keyed("certificates", nil)
		}
		authority, err := certs.NewACME(options)
		if err != nil {
			return nil, err
		}
		probe, err := probeCertificate()
		if err != nil {
			return nil, err
		}
		config := tlsConfig(func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if hello.ServerName == probeName {
				return probe, nil
			}
			return authority.Get(hello)
		})
		config.NextProtos = append(config.NextProtos, certs.Protocol)
		return &transport{config: config, handler: authority.Handler, obtain: authority.Obtain, expires: authority.Expires}, nil
	}
	return &transport{}, nil
}

func tlsConfig(get func(*tls.ClientHelloInfo) (*tls.Certificate, error)) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, GetCertificate: get}
}

// probeName is the name that the watchdog asks for, because it must not depend on a certificate authority.
const probeName = "probe.kontor.invalid"

// probeCertificate returns a certificate that no client trusts.
func probeCertificate() (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("create a key: %w", err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{probeName}, NotAfter: time.Now().AddDate(10, 0, 0)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("create a certificate: %w", err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// maxRedirects bounds the connections to the address for plain HTTP.
const maxRedirects = 256

// redirectTo answers plain HTTP. It does not redirect requests that may carry a body: a client must not get used to sending
// secrets without TLS. The target does not depend on the header Host.
func redirectTo(baseURL string) http.Handler {
	origin := baseURL
	if u, err := url.Parse(baseURL); err == nil {
		origin = u.Scheme + "://" + u.Host
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Connection", "close")
			http.Error(w, "Use "+origin, http.StatusForbidden)
			return
		}
		path := r.URL.RequestURI()
		if !strings.HasPrefix(path, "/") { // such as "GET http:example.org"
			path = "/"
		}
		http.Redirect(w, r, origin+path, http.StatusPermanentRedirect) //nolint:gosec // the origin is a setting, and the path begins with a slash
	})
}

// start begins to obtain certificates and to answer plain HTTP. Call stop to end both.
func (t *transport) start(ctx context.Context, plain net.Listener, baseURL string, log *slog.Logger) (stop func()) {
	handler := redirectTo(baseURL)
	if t.handler != nil {
		handler = t.handler(handler) // before the first order, which offers the challenge over HTTP only then
	}
	ctx, cancel := context.WithCancel(ctx)
	if t.obtain != nil {
		go t.obtain(ctx)
	}
	if plain == nil {
		return cancel
	}
	closeServer := serveHTTP(plain, handler, log)
	return func() {
		cancel()
		closeServer()
	}
}
