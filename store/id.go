package store

import (
	"sync/atomic"

	"github.com/google/uuid"
)

// NilID is the id of no record.
const NilID = "00000000-0000-0000-0000-000000000000"

// NewID returns a new record id: a UUID of version 7 in lower case. Ids that this process creates later sort
// later, so that new rows land at the end of their index.
func NewID() string {
	if next := idSource.Load(); next != nil {
		if id := (*next)(); id != "" {
			return id
		}
	}
	return uuid.Must(uuid.NewV7()).String()
}

// idSource returns ids in place of NewID; nil in all processes but sandboxes that play a file.
var idSource atomic.Pointer[func() string]

// SetIDs makes NewID return what next returns, until restore is called: for sandboxes, which create the same records with the same ids
// each time. It is for the whole process. next must return a new UUID each time, or nothing for a random one.
func SetIDs(next func() string) (restore func()) {
	idSource.Store(&next)
	return func() { idSource.Store(nil) }
}
