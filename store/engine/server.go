package engine

import "context"

// Memory keeps a small text over restarts of the process.
type Memory interface {
	// Read returns the text, or nil when there is none.
	Read() ([]byte, error)
	// Write replaces the text. It is durable when Write returns.
	Write(data []byte) error
	// Name names the memory in messages.
	Name() string
}

// Server is implemented by engines of a database server, whose disks and failovers are not theirs.
type Server interface {
	// CheckPrimary returns a Loss while the engine refuses the server that it reaches.
	CheckPrimary(ctx context.Context) error
	// CheckDurability returns an error when the server's configuration does not protect acknowledged writes from a loss of power.
	CheckDurability(ctx context.Context) error
	// CheckRole returns an error when the role of the connection may do more at the server than an engine needs.
	CheckRole(ctx context.Context) error
}
