package commands

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"kontor/modules/app"
	"kontor/server/client"
	"kontor/server/settings"
	"kontor/store/datadir"
)

// A server listens on a socket in its data directory, so that commands about keys and the sandbox work while it runs. The socket has mode
// 0600: a user who may open it can also read the master key.
//
// A connection carries one request, and the lines of its answer. Both are JSON.
const (
	controlSocket  = "kontor.sock"
	controlTimeout = 5 * time.Second // to send a request
	maxControl     = 4 << 20         // bytes of a request: a seed file in JSON
)

// controlAnswer is one line of an answer. The last one is Done or has an Error.
type controlAnswer struct {
	Text     string        `json:"text,omitempty"`
	Progress *sealProgress `json:"progress,omitempty"`
	Done     bool          `json:"done,omitempty"`
	Error    string        `json:"error,omitempty"`
}

// control serves the socket.
type control struct {
	modules  *app.Modules
	log      *slog.Logger
	listener net.Listener
	release  func()
	cancel   context.CancelFunc
	running  sync.WaitGroup
}

// startControl listens on the socket of a data directory, which this process has locked. A directory in which it cannot listen
// is served without the socket.
func startControl(ctx context.Context, m *app.Modules, dir string, log *slog.Logger) (stop func()) {
	path, release, err := socketPath(dir)
	if err == nil {
		err = os.Remove(path)
		if errors.Is(err, fs.ErrNotExist) {
			err = nil // otherwise it was left by a process that was killed
		}
	}
	var listener net.Listener
	if err == nil {
		listener, err = (&net.ListenConfig{Control: restrictSocket}).Listen(ctx, "unix", path)
	}
	if err == nil {
		err = os.Chmod(path, datadir.FileMode)
	}
	if err != nil {
		log.Warn("commands about keys cannot reach this server: its socket cannot be created", "err", err)
		release()
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	c := &control{modules: m, log: log, listener: listener, release: release, cancel: cancel}
	c.running.Go(func() { c.accept(ctx) })
	return c.stop
}

// stop closes the socket and waits for the requests. A rotation that is interrupted continues with the next start.
func (c *control) stop() {
	c.cancel()
	c.listener.Close()
	c.running.Wait()
	c.release()
}

func (c *control) accept(ctx context.Context) {
	for {
		conn, err := c.listener.Accept()
		if err != nil {
			return // closed
		}
		c.running.Go(func() {
			defer conn.Close()
			c.serve(ctx, conn)
		})
	}
}

// serve answers one request. The work continues when the client disconnects.
func (c *control) serve(ctx context.Context, conn net.Conn) {
	var request keyRequest
	_ = conn.SetReadDeadline(time.Now().Add(controlTimeout))
	if err := json.NewDecoder(io.LimitReader(conn, maxControl)).Decode(&request); err != nil {
		return
	}
	answers := json.NewEncoder(conn)
	answer := func(a controlAnswer) {
		_ = conn.SetWriteDeadline(time.Now().Add(controlTimeout))
		_ = answers.Encode(a) // the client may have gone
	}
	last := controlAnswer{Done: true}
	if err := request.run(asOperator(ctx, c.modules), c.modules, answer); err != nil {
		last = controlAnswer{Error: explain(err)}
		c.log.Error("command failed", "command", request.Command, "cause", err)
	}
	answer(last)
}

// errNoServer says that no server listens in a data directory.
var errNoServer = errors.New("no server is running")

// askServer sends a request to the server of a data directory. It returns errNoServer when there is none.
func askServer(ctx context.Context, dir string, request keyRequest, show func(controlAnswer)) error {
	path, release, err := socketPath(dir)
	defer release()
	if err != nil {
		return errNoServer
	}
	conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return errNoServer
	}
	if err != nil {
		return fmt.Errorf("the server of %s cannot be reached: %w", dir, datadir.Cause(err))
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if err := json.NewEncoder(conn).Encode(request); err != nil {
		return fmt.Errorf("the server of %s ended: %w", dir, err)
	}
	lines := json.NewDecoder(bufio.NewReader(conn))
	for {
		var a controlAnswer
		if err := lines.Decode(&a); err != nil {
			return fmt.Errorf("the server of %s ended before it answered; repeat the command: %w", dir, err)
		}
		switch {
		case a.Error != "":
			return errors.New(a.Error)
		case a.Done:
			return nil
		}
		show(a)
	}
}

// maxSocketPath is the length of a path that every system accepts for a socket.
const maxSocketPath = 100

// socketPath returns the path of the socket of a data directory. Linux reaches a long one through an open directory; call
// release when the path is not needed any more.
func socketPath(dir string) (path string, release func(), err error) {
	release = func() {}
	path = filepath.Join(dir, controlSocket)
	if len(path) <= maxSocketPath {
		return path, release, nil
	}
	if runtime.GOOS != "linux" {
		return "", release, fmt.Errorf("the path %s is too long for a socket", path)
	}
	d, err := os.Open(dir)
	if err != nil {
		return "", release, err
	}
	return "/proc/self/fd/" + strconv.Itoa(int(d.Fd())) + "/" + controlSocket, func() { d.Close() }, nil
}

// serverAt returns the address of a server and the transport of requests with a token to it. Without an address it is the server of
// the data directory, where that says it listens.
func serverAt(ctx context.Context, address string, s settings.Settings) (string, http.RoundTripper, error) {
	if address != "" {
		return address, http.DefaultTransport, nil
	}
	listens, err := askListening(ctx, s)
	if err != nil {
		return "", nil, err
	}
	own, origin := ownClient(listens, s.Server.OverTLS(), "", 0)
	return origin, provenServer(own.Transport.(*http.Transport), s, listens), nil
}

// clientOf returns a client of the server that serverAt names, with the token of a flag.
func clientOf(ctx context.Context, token, address string, s settings.Settings) (*client.Client, error) {
	token, err := readToken(token)
	if err != nil {
		return nil, err
	}
	address, transport, err := serverAt(ctx, address, s)
	if err != nil {
		return nil, err
	}
	return client.New(address, client.WithToken(token), client.WithTransport(transport))
}

// askListening asks the server of the data directory, by its socket, where it listens. Another program may have the port of the settings
// while that server does not run, and would get the token. Only those who may read the master key can answer on the socket.
func askListening(ctx context.Context, s settings.Settings) (listens string, err error) {
	err = errNoServer
	if s.Data.URL == "" {
		err = askServer(ctx, s.Data.Dir, keyRequest{Command: askListen}, func(a controlAnswer) { listens = a.Text })
	}
	if err != nil {
		return "", fmt.Errorf("the token is not sent, because the server of %s cannot be recognized; start it, or name the server with --url: %w", s.Data.Dir, err)
	}
	return listens, nil
}

// provenServer makes a transport recognize the server before each connection, also when the stream is opened again.
func provenServer(t *http.Transport, s settings.Settings, listens string) *http.Transport {
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		now, err := askListening(ctx, s)
		if err == nil && now != listens {
			err = fmt.Errorf("the token is not sent, because the server of %s listens on %s now; run the command again", s.Data.Dir, now)
		}
		if err != nil {
			return nil, err
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	return t
}

// readToken returns a token that a flag names, or the content of its file.
func readToken(flag string) (string, error) {
	name, ok := strings.CutPrefix(flag, "@")
	if !ok {
		return flag, nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return "", fmt.Errorf("read the token: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// ownClient returns a client of the server at a listen address, and the origin for its requests. It does not verify the
// certificate, because it connects to this machine by address; name is the name in the handshake.
func ownClient(listen string, overTLS bool, name string, timeout time.Duration) (client *http.Client, origin string) {
	transport := &http.Transport{DisableKeepAlives: true}
	client = &http.Client{Timeout: timeout, Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	origin = "http://" + dialable(listen)
	if overTLS {
		transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: true, ServerName: name, MinVersion: tls.VersionTLS12} //nolint:gosec // see above
		origin = "https://" + dialable(listen)
	}
	return client, origin
}

// dialable returns the address at which this machine reaches a listener.
func dialable(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return listen
	}
	switch address, err := netip.ParseAddr(host); {
	case host == "", err == nil && address.Is4() && address.IsUnspecified():
		host = "127.0.0.1"
	case err == nil && address.IsUnspecified():
		host = "::1"
	}
	return net.JoinHostPort(host, port)
}

// sandboxTransport sends requests as the first administrator of a sandbox. It asks for a session by the socket, and for another one when
// that has ended.
type sandboxTransport struct {
	http.RoundTripper
	dir   string
	token string
}

// RoundTrip sends a request without a body.
func (t *sandboxTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	for asked := false; ; {
		if t.token == "" {
			asked = true
			if err := askServer(request.Context(), t.dir, keyRequest{Command: askSession}, func(a controlAnswer) { t.token = a.Text }); err != nil {
				return nil, err
			}
		}
		authorized := request.Clone(request.Context())
		authorized.Header.Set("Authorization", "Bearer "+t.token)
		response, err := t.RoundTripper.RoundTrip(authorized)
		if err != nil || response.StatusCode != http.StatusUnauthorized || asked {
			return response, err
		}
		response.Body.Close()
		t.token = ""
	}
}

// signOut ends the session. It would end by itself within an hour.
func (t *sandboxTransport) signOut(address string) {
	if t.token == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address+"/v1/logout", http.NoBody)
	if err != nil {
		return
	}
	request.Header.Set("Authorization", "Bearer "+t.token)
	if response, err := t.RoundTripper.RoundTrip(request); err == nil {
		response.Body.Close()
	}
}
