package store

import "github.com/google/uuid"

// NilID is the id of no record.
const NilID = "00000000-0000-0000-0000-000000000000"

// NewID returns a new record id: a UUID of version 7 in lower case. Ids that this process creates later sort
// later, so that new rows land at the end of their index.
func NewID() string { return uuid.Must(uuid.NewV7()).String() }
