package commands

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"
)

// httpServer is what the lifecycle needs of the server.
type httpServer interface {
	Serve(net.Listener) error
	Shutdown(context.Context) error
}

// listen opens the address of server.listen. It comes before everything that writes: a start that fails because the port
// is taken leaves no trace.
func listen(ctx context.Context, address string) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err == nil {
		return listener, nil
	}
	var cause *os.SyscallError
	if errors.As(err, &cause) {
		err = cause.Err // without the name of the system call
	}
	return nil, fmt.Errorf("cannot listen on %s: %w", address, err)
}

// serveUntil answers requests until the context ends, and then lets running requests finish for as long as limit. Requests
// that take longer are cut: whoever asked for the stop will not wait longer, and what was acknowledged is stored.
func serveUntil(ctx context.Context, s httpServer, listener net.Listener, limit time.Duration, log *slog.Logger) error {
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(listener) }()
	select {
	case err := <-ended:
		if err == nil {
			err = errors.New("it ended by itself")
		}
		return fmt.Errorf("serve %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	log.Info("stopping", "limit", limit.String())
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTime(limit))
	defer cancel()
	err := s.Shutdown(stopping)
	if errors.Is(err, context.DeadlineExceeded) {
		log.Warn("requests were still running and are cut", "limit", limit.String())
		return nil
	}
	if err != nil {
		return fmt.Errorf("stop: %w", err)
	}
	return <-ended
}

// requestTime is the part of the limit of a stop that running requests have.
func requestTime(limit time.Duration) time.Duration { return limit - limit/5 }

// closingTime is the part of the limit of a stop that the modules have to end what they do and to write what is still in
// memory. The rest is for the database.
func closingTime(limit time.Duration) time.Duration { return limit / 10 }
