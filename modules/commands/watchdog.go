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

// supervisor tells the service manager that the process is ready and that it still makes progress, as sd_notify(3)
// describes it. It says so only after the probe has succeeded: a process that is frozen, or whose probe hangs, is silent and
// is replaced.
type supervisor struct {
	send  func(state string) error
	every time.Duration // between two signs of life; 0: only readiness is awaited
	probe func(ctx context.Context) error
	log   *slog.Logger
}

const (
	// pingsPerTimeout is how many signs of life fall into the time after which the manager gives up.
	pingsPerTimeout = 3
	// readyRetry is the pause between probes until the first one succeeds, where no watchdog sets it.
	readyRetry = time.Second
)

// newSupervisor reads what the service manager wants to know; nil where there is none.
func newSupervisor(environ []string, probe func(ctx context.Context) error, log *slog.Logger) (*supervisor, func(), error) {
	given := map[string]string{}
	for _, entry := range environ {
		if name, value, ok := strings.Cut(entry, "="); ok {
			given[name] = value
		}
	}
	path := given["NOTIFY_SOCKET"]
	if path == "" {
		return nil, func() {}, nil
	}
	socket, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return nil, nil, fmt.Errorf("NOTIFY_SOCKET: %w", err)
	}
	s := &supervisor{probe: probe, log: log}
	s.send = func(state string) error {
		_, err := io.WriteString(socket, state)
		return err
	}
	if pid := given["WATCHDOG_PID"]; pid == "" || pid == strconv.Itoa(os.Getpid()) {
		if microseconds, err := strconv.ParseInt(given["WATCHDOG_USEC"], 10, 64); err == nil && microseconds > 0 {
			s.every = time.Duration(microseconds) * time.Microsecond / pingsPerTimeout
		}
	}
	return s, func() { _ = socket.Close() }, nil // nothing is buffered
}

// run reports readiness once and then a sign of life after each probe that succeeds, until the context ends.
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
			s.tell("STOPPING=1")
			return
		case <-timer.C:
		}
		if err := s.probe(ctx); err != nil {
			if ctx.Err() == nil {
				s.log.Warn("the service manager gets no sign of life", "cause", err)
			}
			continue
		}
		if !ready {
			ready = true
			s.tell("READY=1")
		}
		if s.every == 0 {
			<-ctx.Done()
			continue
		}
		s.tell("WATCHDOG=1")
	}
}

func (s *supervisor) tell(state string) {
	if err := s.send(state); err != nil {
		s.log.Warn("the service manager could not be told", "state", state, "err", err)
	}
}

// answers returns a probe that makes a request on a connection of its own, as a client would. Being turned away for want of
// room is an answer: a flood must not end the process.
func answers(listener net.Addr, timeout time.Duration) func(ctx context.Context) error {
	address := listener.String()
	if tcp, ok := listener.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		host := "127.0.0.1"
		if tcp.IP.To4() == nil {
			host = "::1"
		}
		address = net.JoinHostPort(host, strconv.Itoa(tcp.Port))
	}
	client := &http.Client{Timeout: timeout, Transport: &http.Transport{DisableKeepAlives: true}}
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/healthz", nil)
		if err != nil {
			return err
		}
		answer, err := client.Do(request)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusOK && answer.StatusCode != http.StatusServiceUnavailable {
			return fmt.Errorf("/healthz answered %d", answer.StatusCode)
		}
		return nil
	}
}
