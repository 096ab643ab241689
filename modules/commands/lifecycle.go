package commands

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"syscall"
	"time"
)

// httpServer is what serveUntil needs of [kontor/server.Server].
type httpServer interface {
	Serve(net.Listener) error
	Shutdown(context.Context) error
}

// listen opens the address of server.listen. Callers open it before they write anything, so that a start whose port is in
// use changes nothing.
func listen(ctx context.Context, address string) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err == nil {
		return listener, nil
	}
	var cause *os.SyscallError
	if errors.As(err, &cause) {
		err = cause.Err // without the name of the system call
	}
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("cannot listen on %s: %w; end the other program, or choose another address with --server.listen or --metrics.listen", address, err)
	}
	return nil, fmt.Errorf("cannot listen on %s: %w", address, err)
}

// serveUntil serves requests until the context ends, and then shuts down within limit. Requests that take longer are
// aborted; acknowledged writes are stored already.
func serveUntil(ctx context.Context, s httpServer, listener net.Listener, limit time.Duration, log *slog.Logger) error {
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(listener) }()
	select {
	case err := <-ended:
		if err == nil {
			err = errors.New("the server ended unexpectedly")
		}
		return fmt.Errorf("serve %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	log.Info("stopping", "limit", limit.String())
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout(limit))
	defer cancel()
	err := s.Shutdown(stopping)
	if errors.Is(err, context.DeadlineExceeded) {
		log.Warn("requests were still running and are aborted", "limit", limit.String())
		return nil
	}
	if err != nil {
		return fmt.Errorf("stop: %w", err)
	}
	return <-ended
}

// drainTimeout returns the part of the shutdown limit that is for running requests.
func drainTimeout(limit time.Duration) time.Duration { return limit - limit/5 }

// closeTimeout returns the part of the shutdown limit in which the modules stop their work and write what they hold in
// memory. The rest is for closing the database.
func closeTimeout(limit time.Duration) time.Duration { return limit / 10 }
