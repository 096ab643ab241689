package outbox

import (
	"context"
	"fmt"

	"kontor/store"
)

// Next returns when the next attempt follows after a time; nil: none is planned.
func (b *Outbox[R]) Next(ctx context.Context, after store.Time) (next *store.Time, err error) {
	scope := b.o.Scope
	if scope != "" {
		scope += " AND "
	}
	err = b.o.DB.QueryRow(ctx, `SELECT MIN(next_attempt_at) FROM `+b.o.Table+` WHERE `+scope+`status IN ('queued', 'retrying') AND next_attempt_at > $1`, after).Scan(&next)
	if err != nil {
		return nil, fmt.Errorf("read the next attempt of %s: %w", b.o.Table, err)
	}
	return next, nil
}

// Settle waits until everything was attempted that was due when it was called: until a round that began since then has found nothing
// to do, and no attempt is being made. It returns at once if the worker does not run.
func (b *Outbox[R]) Settle(ctx context.Context) error {
	if !b.running.Load() {
		return nil
	}
	asked := make(chan struct{})
	b.mu.Lock()
	b.asked = append(b.asked, asked)
	b.mu.Unlock()
	b.WakeUp()
	select {
	case b.hurry <- struct{}{}:
	default:
	}
	select {
	case <-asked:
	case <-b.ended:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// settled runs a round, and answers those calls of Settle that came before it if it had nothing to do.
func (b *Outbox[R]) settled(round func() (more bool, err error)) (more bool, err error) {
	b.mu.Lock()
	waiting := len(b.asked)
	b.mu.Unlock()
	claims := b.claims.Load()
	more, err = round()
	idle := !more && claims == b.claims.Load() && len(b.slots) == 0
	if waiting == 0 || !idle && err == nil { // a failed round is not waited for: the next may fail, too
		return more, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, asked := range b.asked[:waiting] {
		close(asked)
	}
	b.asked = b.asked[waiting:]
	return more, err
}
