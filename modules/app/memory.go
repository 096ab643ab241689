package app

import (
	"context"
	"sync/atomic"

	"kontor/modules/kit/revocable"
)

// memory says whether this process may use what it remembers of rights and keys. It implements [kontor/server.Memory].
type memory struct {
	*Modules
	loads revocable.Loader
}

// Remembers reports whether this process has received all announcements, and could read the changes, and whether no right has begun or
// ended since.
func (m *memory) Remembers() bool {
	return m.DB.Remembers() && m.DB.KeysCurrent() && !m.RBAC.TermsDue()
}

// held counts how often a module was held back because a right was due to begin or end.
type held struct{ changes, notifications, webhooks, imports, requests atomic.Int64 }

// termsDue returns a function that reports whether a right has begun or ended that the tables do not show yet. Streams and webhooks, which no
// request precedes, send nothing meanwhile: the job of this process writes the change.
func (m *Modules) termsDue(waits *atomic.Int64) func() bool {
	return func() bool {
		due := m.RBAC.TermsDue()
		if due {
			waits.Add(1)
		}
		return due
	}
}

// Renew reads the keys of the database and the policy again, as far as they have changed. Concurrent requests share one try.
func (m *memory) Renew(ctx context.Context) error {
	return m.loads.Do(ctx, func(ctx context.Context) error {
		if err := m.DB.RenewKeys(ctx); err != nil { // before what is sealed with them
			return err
		}
		return m.RBAC.Renew(ctx)
	})
}
