package commands

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"kontor/server/settings"
)

// serverAt returns the address of a server and the transport of requests with a token to it. Without an address it is the server of
// these settings on this machine.
func serverAt(ctx context.Context, address string, s settings.Settings) (string, http.RoundTripper, error) {
	if address != "" {
		return address, http.DefaultTransport, nil
	}
	if err := recognizeServer(ctx, s); err != nil {
		return "", nil, err
	}
	own, origin := ownClient(s.Server.Listen, s.Server.OverTLS(), "", 0)
	return origin, provenServer(own.Transport.(*http.Transport), s), nil
}

// recognizeServer asks the server of the data directory, by its socket, whether it listens at the address of the settings. Another
// program may have the port while that server does not run, and would get the token. Only those who may read the master key can
// answer on the socket.
func recognizeServer(ctx context.Context, s settings.Settings) error {
	listens := ""
	err := errNoServer
	if s.Data.URL == "" {
		err = askServer(ctx, s.Data.Dir, keyRequest{Command: askListen}, func(a controlAnswer) { listens = a.Text })
	}
	switch {
	case err != nil:
		return fmt.Errorf("the token is not sent, because the server of %s cannot be recognized; start it, or name the server with --url: %w", s.Data.Dir, err)
	case listens != s.Server.Listen:
		return fmt.Errorf("the token is not sent, because the server of %s listens on %s; name it with --url", s.Data.Dir, listens)
	}
	return nil
}

// provenServer makes a transport recognize the server before each connection, also when the stream is opened again.
func provenServer(t *http.Transport, s settings.Settings) *http.Transport {
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if err := recognizeServer(ctx, s); err != nil {
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
