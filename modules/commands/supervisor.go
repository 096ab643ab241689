package commands

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

// supervisor reports to the service manager that the process is ready and makes progress, as sd_notify(3) describes. It
// reports only after the probe has succeeded: the manager restarts a process that is frozen or whose probe hangs.
type supervisor struct {
	send  func(state string) error
	every time.Duration // interval of keep-alive messages; 0 means only readiness is reported
	probe func(ctx context.Context) error
	log   *slog.Logger
}

const (
	// pingsPerTimeout is the number of keep-alive messages per watchdog timeout.
	pingsPerTimeout = 3
	// readyRetry is the interval of probes until the first success where no watchdog is configured.
	readyRetry = time.Second
)

// newSupervisor reads the configuration of the service manager from the environment. It returns nil where no manager runs.
func newSupervisor(environ []string, probe func(ctx context.Context) error, log *slog.Logger) (s *supervisor, closeSocket func(), err error) {
	environment := map[string]string{}
	for _, entry := range environ {
		if name, value, ok := strings.Cut(entry, "="); ok {
			environment[name] = value
		}
	}
	path := environment["NOTIFY_SOCKET"]
	if path == "" {
		return nil, func() {}, nil
	}
	socket, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return nil, nil, fmt.Errorf("NOTIFY_SOCKET: %w", err)
	}
	s = &supervisor{probe: probe, log: log}
	s.send = func(state string) error {
		_, err := io.WriteString(socket, state)
		return err
	}
	if pid := environment["WATCHDOG_PID"]; pid == "" || pid == strconv.Itoa(os.Getpid()) {
		if microseconds, err := strconv.ParseInt(environment["WATCHDOG_USEC"], 10, 64); err == nil && microseconds > 0 {
			s.every = time.Duration(microseconds) * time.Microsecond / pingsPerTimeout
		}
	}
	return s, func() { _ = socket.Close() }, nil // nothing is buffered
}

// run reports readiness once, and then sends a keep-alive message after each probe that succeeds, until the context ends.
func (s *supervisor) run(ctx context.Context) {
	pause := s.every
	if pause == 0 {
		pause = readyRetry
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ready := false; ; timer.Reset(pause) {
		select {
		case <-ctx.Done():
			s.notify("STOPPING=1")
			return
		case <-timer.C:
		}
		if err := s.probe(ctx); err != nil {
			if ctx.Err() == nil {
				s.log.Warn("the probe failed; no keep-alive message is sent to the service manager", "cause", err)
			}
			continue
		}
		if !ready {
			ready = true
			s.notify("READY=1")
		}
		if s.every == 0 {
			<-ctx.Done()
			continue
		}
		s.notify("WATCHDOG=1")
	}
}

func (s *supervisor) notify(state string) {
	if err := s.send(state); err != nil {
		s.log.Warn("the service manager could not be notified", "state", state, "err", err)
	}
}

// httpProbe returns a probe that sends a request on a new connection. A response of 503 counts as success, so that an
// overload does not end the process.
func httpProbe(listener net.Addr, overTLS bool, timeout time.Duration) func(ctx context.Context) error {
	client, origin := ownClient(listener.String(), overTLS, probeName, timeout)
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, origin+"/healthz", nil)
		if err != nil {
			return err
		}
		answer, err := client.Do(request)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusOK && answer.StatusCode != http.StatusServiceUnavailable {
			return fmt.Errorf("/healthz returned status %d", answer.StatusCode)
		}
		return nil
	}
}
