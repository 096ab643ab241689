package sqlite

import (
	"kontor/store/clock"
	"kontor/store/engine"
)

// One process uses a data directory, which its lock ensures. So it leads, and has received every announcement.

// Remembers returns true.
func (e *Engine) Remembers() bool { return true }

// Shared returns false.
func (e *Engine) Shared() bool { return false }

// Leads returns true.
func (e *Engine) Leads() bool { return true }

// Nodes returns this process.
func (e *Engine) Nodes() []engine.Node { return []engine.Node{e.self} }

// Clock returns the clock that the database was opened with.
func (e *Engine) Clock() clock.Clock { return e.clock }
