package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// errPool refuses a pool in which LISTEN has no effect.
var errPool = errors.New("the address of the database is that of a connection pool in transaction mode, on which LISTEN does not work; " +
	"use the address of PostgreSQL itself, or a pool in session mode")

// probeLimit is how long a notification may take to arrive.
const probeLimit = 3 * time.Second

// probe finds out whether notifications arrive through a pool that stands between the node and the server: one is sent over
// another connection.
func (s *session) probe(ctx context.Context) error {
	b := s.bus
	channel, arrived := "kontor_probe_"+strings.ToLower(s.id), make(chan struct{})
	s.mu.Lock()
	s.probing, s.probed = channel, arrived
	s.mu.Unlock()
	if _, err := s.link.all(ctx, func(answer answer) error { return s.link.query(`LISTEN `+channel, answer) }); err != nil {
		return fmt.Errorf("listen for a notification: %w", err)
	}
	other, err := b.config.Connect(ctx)
	if err != nil {
		return err
	}
	defer other.Close(ctx)
	if _, err := other.Exec(ctx, `NOTIFY `+channel).ReadAll(); err != nil {
		return fmt.Errorf("send a notification: %w", err)
	}
	over := make(chan struct{})
	stop := b.time.AfterFunc(probeLimit, func() { close(over) })
	defer stop()
	select {
	case <-arrived:
		return nil
	case <-over:
		return errPool
	case <-ctx.Done():
		return ctx.Err()
	}
}
